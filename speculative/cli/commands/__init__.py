"""The commands. Each is a module: its docstring is the help, OPTIONS the options, and run(options, report) runs it."""
