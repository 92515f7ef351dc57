"""The help, made of the entries of the options, the registries and the commands."""

from dataclasses import MISSING
from functools import partial
from textwrap import wrap

from .options import ENTRIES, GROUPS, Options
from .registry import DRAFTERS, RULES

WIDTH = 80  # columns
wrap = partial(wrap, break_on_hyphens=False)
AT = 24  # the column where explanations start
TITLE = """\
Generate a text twice: by the target model alone, and with a draft (speculative
decoding). Compare text and time.
"""
NOTE = (
    "Each takes ten seconds to two minutes with the bundled pair on two cores. Intervals are 95 % intervals over the "
    "prompts. The beginning of an option's name is enough where no other begins so. {program} help all explains the "
    "options of all commands, {program} --version prints the version."
)


def help_text(program, commands, command=None):
    """The page of a command; without one, that of the program: the options of the comparison, and all commands.

    Parameters
    ----------
    program : str
        How it is started: "python main.py".
    commands : dict name -> Command
    """
    if command and command.name != "generate":
        headings = GROUPS | {"prompt": "The main options"}
        return "\n".join([*title_of(command, program), *options_of(command, command.options, headings)]) + "\n"
    first = commands["generate"]
    starts = {"": "the bundled pair, no download", " COMMAND --help": "a command's options, and an example"}
    lines = [TITLE, *(f"    {program + start:34}{what}" for start, what in starts.items())]
    lines += [f"    {program} {first.example}", *options_of(first, first.options), "", "Commands"]
    for other in commands.values():
        lines += explained(other.name, other.help)
    return "\n".join([*lines, "", *wrap(NOTE.format(program=program), WIDTH)]) + "\n"


def help_on_all(program, commands):
    """What each command does, its defaults, and its options: explained where they are met first, then only named."""
    lines, known = [], commands["generate"].options
    for command in commands.values():
        if command.name != "generate":
            lines += ["", "", command.name.upper(), *title_of(command, program)]
            own = options_of(command, command.options - known, {})
            lines += ["", *own] if own else []
            defaults = " ".join(f"--{name} {value}" for name, value in command.defaults.items() if name in known)
            others = " ".join(f"--{name}" for name in ENTRIES if name in command.options & known)
            for words, names in (("Other defaults:", defaults), ("Also takes:", others)):
                lines += ["", *wrap(f"{words} {names}", WIDTH)] if names else []
            known = known | command.options
    return "\n".join(lines[2:]) + "\n"


def title_of(command, program):
    of_word = f" {ENTRIES[command.word].metadata['value']}" if command.word else ""
    examples = [f"    {program} {command.name}{of_word}"]
    examples += [f"    {program} {command.name} {command.example}"] if command.example else []
    return [*wrap(f"{command.help[0].upper()}{command.help[1:]}.", WIDTH), "", *examples]


def options_of(command, names, headings=GROUPS):
    """The lines on these options of a command, with its defaults, under headings."""
    lines, usual, heading = [], Options(), ""
    for name, option in ENTRIES.items():
        about = option.metadata
        heading = headings.get(name, heading)
        if name not in names:
            continue
        lines += ["", heading] if heading else []
        heading = ""
        default = command.defaults.get(name, getattr(usual, name) if option.default is not MISSING else "all")
        shown = "" if default in ("", None) or default is False else f" ({default})"
        text, *values = about["help"].split("\n")  # a line "VALUE: what it means" for each value worth a line
        registry = {"drafter": DRAFTERS, "verifier": RULES}.get(name, {})
        kinds = [(kind.name, kind.help) for kind in registry.values()] + [value.split(": ", 1) for value in values]
        lines += explained(f"--{name} {about['value']}", f"{text}{shown}{':' if kinds else ''}")
        for kind, what in kinds:
            lines += wrap(f"{kind:14}{what}", WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 20)
    return lines


def explained(name, text):
    """A name and its explanation beside it, or below it if the name is long."""
    lines = wrap(text, WIDTH - AT)
    if len(name) < AT - 1:
        return [f"{name:{AT}}{lines[0]}", *(" " * AT + line for line in lines[1:])]
    return [name, *(" " * AT + line for line in lines)]
