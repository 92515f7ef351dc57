"""From the words of a command line to the Options of a command; what is wrong is refused in a sentence.

python-fire splits the words. It reads -n as a word, and keeps only the last of two equal options, so `prepared` has
looked at them before: each option becomes --name, and its second occurrence --name~2.
"""

from collections import Counter
from re import DOTALL, fullmatch, sub

from .files import check_distinct, say
from .models import nearest
from .options import defaults_of, entries_of
from .values import Written, needs_a_value, parts


def plain(name):
    """The name of an option as python-fire passes it on."""
    return name.lstrip("-").replace("-", "_")


# words in docs/coming_from.md that change nothing here: the command runs, and a note names them
OF_OTHERS = ("-ngl", "-ngld", "-c", "-fa", "--color", "--sampling-seq", "--draft-min", "--gpu", "-tp")
OF_OTHERS += ("--gpu-memory-utilization", "-t", "--do_sample")
REMARKS = {"-t": "; the temperature is --temperature", "--do_sample": "; --temperature 1 samples, 0 does not"}
SPELLED = {plain(name): name for name in OF_OTHERS}
ESCAPE = ("e", "escape")  # of llama.cpp: backslashes in a prompt are escapes, as always in -p


def prepared(words):
    """The words for python-fire, in which no two options have the same name."""
    seen, renamed = Counter(), []
    for word in words:
        if option := fullmatch(r"--?([A-Za-z][\w-]*)(=.*)?", word, DOTALL):
            name, value = option.groups(default="")
            name = name.replace("-", "_")
            seen[name] += 1
            word = f"--{name}{f'~{seen[name]}' * (seen[name] > 1)}{value}"
        renamed.append(word)
    return renamed


def read(command, name, words, texts):
    """The Options of a command (a module) from the other words, and from the options' texts (dict name -> text).

    All that is wrong with the words is in one ValueError.
    """
    entries, typed, unknown, problems, names = entries_of(command), {}, [], [], {}
    texts = [(("no" * key.startswith("_") + key).partition("~")[0], text) for key, text in texts.items()]
    for key, text in texts:
        options = options_like(key, entries)
        if len(options) == 1:
            typed.setdefault(options[0], []).append(text)
            names[options[0]] = f"--{key.replace('_', '-')} (here --{options[0]})" if key in aliases(entries) else ""
        elif options:
            problems.append(f"--{key} may be {' or '.join(f'--{option}' for option in options)}: write more of it")
        elif key not in (*SPELLED, *ESCAPE):
            unknown.append(key[:60])
    for word in words:
        option = getattr(command, "WORD", "")
        if not option or (option in typed if option != "prompt" else " " not in word):
            problems.append(
                f"unexpected {word[:60]!r}: options are --name value, and a text of several words needs quotes"
            )
        else:
            typed.setdefault(option, []).append(word)
    texts = dict(texts)
    if {"p", *ESCAPE} & texts.keys() and "prompt" in typed:
        typed["prompt"] = [unescaped(text) for text in typed["prompt"]]
    values, lists = {}, {}
    for option, option_texts in typed.items():
        try:
            several = values_of(option, entries[option], option_texts, option in getattr(command, "LISTS", ()))
            values[option], lists[option] = next(iter(several.values())), several
        except ValueError as error:
            problems.append(f"{names.get(option) or f'--{option}'}: {error}")
    if texts.get("do_sample", "").lower() in ("false", "0") and values.get("temperature"):
        problems.append("--do_sample: write --temperature 0")
    if unknown:
        problems.append(refusal_of(unknown, entries, name))
    if problems:
        raise ValueError("; ".join(problems))
    lists = {option: lists[option] for option in entries if len(lists.get(option, ())) > 1}
    typed = {
        option: option_texts if entries[option].repeats else option_texts[0] for option, option_texts in typed.items()
    }
    options = defaults_of(command).but(**values, command=name, given=typed, lists=lists)
    check_files(options, entries)
    if ignored := [SPELLED[key] for key in texts if key in SPELLED]:
        say(f"{', '.join(ignored)}: no effect here{''.join(REMARKS.get(name, '') for name in ignored)}")
    return options


def aliases(entries):
    """dict name in other programs -> the option's name here."""
    return {plain(also): name for name, entry in entries.items() for also in entry.also}


def options_like(name, entries):
    """The options that a name may mean: a full name, a name in other programs, or a prefix."""
    if name in (*entries, *SPELLED, *ESCAPE):
        return [name] * (name in entries)
    same = aliases(entries).get(name)
    return [same] if same else [known for known in entries if is_short_for(name, known)]


def refusal_of(unknown, entries, command):
    """A sentence about unknown options."""
    names = ", ".join(f"--{name}" for name in unknown)
    nearby = [f"--{near}" for near in (nearest_option(name, entries) for name in unknown) if near]
    question = f"did you mean {' and '.join(nearby)}?"
    if len(unknown) == 1:
        return f"unknown option {names} for {command}: {question if nearby else f'see {command} --help'}"
    where = f"see {command} --help, and docs/coming_from.md for other programs"
    return f"unknown options {names} for {command}{f' ({question})' * bool(nearby)}: {where}"


def nearest_option(name, entries):
    """The shortest name, here or in other programs, with this word in it; otherwise the most similar one, or None."""
    names = [*entries, *aliases(entries)]
    return min((known for known in names if name in known.split("_")), key=len, default=nearest(name, entries, 0.75))


def unescaped(text):
    r"""A prompt as llama.cpp reads it, where \n is a line break."""
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return sub(r"\\([nrt\\\"'])", lambda match: escapes.get(match[1], match[1]), text)


def is_short_for(name, known):
    """Whether a name leaves out only trailing letters of the last word of a known name, of which one stays."""
    return known.startswith(name) and len(name) > known.rfind("_") + 1


def values_of(name, entry, texts, is_list):
    """dict text -> value of an option that was given with these texts: one, or all of a list."""
    if len(texts) > 1 and not entry.repeats:
        raise ValueError("it is given twice: leave one of them out")
    if {"True", "False"} & {*texts} and needs_a_value(entry.read):  # python-fire's words for a missing value
        raise ValueError(f"expected a value; write one that starts with a hyphen as --{name}='-...'")
    if entry.repeats:
        return {"": tuple(map(entry.read, texts))}
    return {part: entry.read(part) for part in (parts(texts[0], entry.read) if is_list else texts)}


def check_files(options, entries):
    """Raise ValueError if an option names a file to write that another option names as well."""
    texts = {name: text for name, text in options.given.items() if isinstance(text, str)}
    is_file = {name for name in texts if isinstance(entries[name].read, Written) and texts[name] != "True"}
    check_distinct({name: texts[name] for name in is_file}, texts)
