"""The commands. Each is a module: its docstring is the help, OPTIONS the options, and run(options, report) runs it."""


class Failed(Exception):
    """A command has printed its page, and what it looked at is wrong: exit code 1."""
