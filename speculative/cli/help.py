"""The help, assembled from the docstrings of the commands and the entries of their options."""

from ast import get_docstring, parse
from functools import partial
from textwrap import wrap

from .options import OF_THE_PROGRAM, Options, all_entries, defaults_of, entries_of

wrap = partial(wrap, width=80, break_on_hyphens=False)
AT = 24  # the column where explanations start
TITLE = """\
Generate a text twice: by the target model alone, and with a draft (speculative
decoding). Compare text and time.

    {program:34}the bundled pair, no download
    {program} --draft_model_size 124M --target_model_size 355M --K 4
    {command:34}a command's options, and an example
"""
NOTE = (
    "An option may be cut within its last word: --n_tokens_to for --n_tokens_to_generate. Options of other programs: "
    "docs/coming_from.md. {program} --version prints the version."
)
FIRST = "The ten to know first"
HEADINGS = {  # the headings on the program's page: each is printed before the option that is its key
    "prompt": FIRST, "tree": "Drafting", "top_k": "Sampling and verification",
    "prompt_file": "Prompts, and the end of a text", "engine": "Engines and downloads", "json": "Output",
}  # fmt: skip


def docstring(module):
    """The docstring of a module; from its source where `python -OO` has left it out."""
    return module.__doc__ or get_docstring(parse(module.__spec__.loader.get_source(module.__name__)))


def first_page(program, module, modules):
    """One screen: the ten options to know first, in brief, and the commands."""
    lines = [TITLE.format(program=program, command=f"{program} COMMAND --help"), FIRST]
    for name, entry in [*entries_of(module).items()][:10]:
        lines += explained(f"--{name} {entry.value}", brief(module, name, entry))[:2]
    names = ", ".join(other.__name__.rpartition(".")[2] for other in modules)
    lines += ["", *wrap(f"Commands: {names}. All options: {program} --help all.")]
    return "\n".join(lines) + "\n"


def brief(module, name, entry):
    """The first sentence on an option, and its default."""
    default = getattr(defaults_of(module), name)
    text = entry.help.split("\n")[0].split(";")[0].split(" (")[0].split(": ")[0].removesuffix(":")
    return text if default in ("", None) or entry.repeats else f"{text} ({default})"


def whole_page(program, module, modules):
    """All options of the comparison of one text, and all commands."""
    lines, entries = [TITLE.format(program=program, command=f"{program} COMMAND --help")], entries_of(module)
    for name, entry in entries.items():
        lines += ["", HEADINGS[name]] if name in HEADINGS else []
        lines += lines_of(module, name, entry)
    lines += ["", "Commands"]
    for other in modules:
        lines += explained(other.__name__.rpartition(".")[2], " ".join(docstring(other).split("\n\n")[0].split()))
    lines += ["", "Names in other programs"]
    for name, entry in entries.items():
        lines += explained(f"--{name}", " ".join(entry.also)) if entry.also else []
    return "\n".join([*lines, "", *wrap(NOTE.format(program=program))]) + "\n"


def page_of(program, module):
    """The page of a command: its options that the program's page does not explain, and the names of the others."""
    name = module.__name__.rpartition(".")[2]
    text = "\n\n".join("\n".join(wrap(" ".join(part.split()))) for part in docstring(module).split("\n\n"))
    examples = [f"    {program} {name} {example}".rstrip() for example in getattr(module, "EXAMPLES", ("",))]
    lines, entries, lists = [text, "", *examples, ""], entries_of(module), getattr(module, "LISTS", ())
    shared = all_entries(Options)  # a command may give one of them a meaning of its own
    known = [name for name in entries if name in OF_THE_PROGRAM.split() and entries[name] == shared[name]]
    own_names = [name for name in entries if name not in known]
    for name in sorted(own_names, key=lambda name: name in shared):  # this command's options before shared ones
        lines += lines_of(module, name, entries[name])
    lines += [""] * bool(own_names)
    changed = getattr(module, "DEFAULTS", {}).items()
    for words, names in {
        "Also takes, and may be lists:": [f"--{name}" for name in known if name in lists],
        "Also takes:": [f"--{name}" for name in known if name not in lists],
        "Other defaults:": [f"--{name} {default}" for name, default in changed if name in known],
    }.items():
        lines += wrap(f"{words} {' '.join(names)}", subsequent_indent="    ") if names else []
    return "\n".join(lines + [f"See {program} --help all for these."] * bool(known)) + "\n"


def lines_of(module, name, entry):
    """The lines that explain an option, with its default."""
    default, is_list = getattr(defaults_of(module), name), name in getattr(module, "LISTS", ())
    text, *values = entry.help.split("\n")
    names = getattr(entry.read, "names", ())  # a registry has a line for each of its names
    values += [f"{name}: {names[name].help}" for name in names if isinstance(names, dict)]
    text += "; may be given several times" if entry.repeats else ""
    default = "; ".join(default) if entry.repeats else default
    text += "" if default in ("", None, ()) or default is False else f" ({default})"
    value = entry.value + ",..." if is_list else entry.value
    lines = explained(f"--{name} {value}", f"{text}{':' if values else ''}")
    for value in values:
        kind, meaning = value.split(": ", 1)
        lines += wrap(f"{kind:13} {meaning}", initial_indent=" " * 6, subsequent_indent=" " * 20)
    return lines


def explained(name, text):
    """A name and its explanation beside it, or below it if the name is long."""
    lines = [" " * AT + line for line in wrap(text, width=80 - AT)]
    return [name + lines[0][len(name) :], *lines[1:]] if len(name) < AT - 1 else [name, *lines]
