"""From the words of a command line to the Options of a command; what is wrong is refused in a sentence.

python-fire splits the words. It reads -n as a word, and keeps only the last of two equal options, so `prepared` has
looked at them before: each option becomes --name, and its second occurrence --name~2.
"""

from collections import Counter
from re import DOTALL, fullmatch

from .files import check_distinct, say
from .models import nearest
from .options import defaults_of, entries_of
from .values import Written, needs_a_value, parts


def plain(name):
    """The name of an option as python-fire passes it on."""
    return name.lstrip("-").replace("-", "_")


OF_OTHERS = """
-ngl -ngld -t -c -fa -e --color --sampling-seq --draft-min --gpu --do_sample -tp --gpu-memory-utilization
"""  # in the command lines of docs/coming_from.md: a note names them, and the command runs
UNUSED = {plain(name): name for name in OF_OTHERS.split()}


def prepared(words):
    """The words for python-fire, in which no two options have the same name."""
    seen, found = Counter(), []
    for word in words:
        if option := fullmatch(r"--?([A-Za-z][\w-]*)(=.*)?", word, DOTALL):
            name, value = option.groups(default="")
            name = name.replace("-", "_")
            seen[name] += 1
            word = f"--{name}{f'~{seen[name]}' * (seen[name] > 1)}{value}"
        found.append(word)
    return found


def read(command, name, words, texts):
    """The Options of a command (a module) from the other words, and from the options' texts (dict name -> text).

    All that is wrong with the words is in one ValueError.
    """
    entries, given, unused, problems = entries_of(command), {}, [], []
    for key, text in texts.items():
        key = ("no" * key.startswith("_") + key).partition("~")[0]
        try:
            if key in UNUSED:
                unused.append(UNUSED[key])
            else:
                given.setdefault(in_full(key, text, entries, name), []).append(text)
        except ValueError as error:
            problems.append(str(error))
    for word in words:
        option = getattr(command, "WORD", "")
        if not option or option in given or (option == "prompt" and " " not in word):
            problems.append(
                f"unexpected {word[:60]!r}: options are --name value, and a text of several words needs quotes"
            )
        else:
            given.setdefault(option, []).append(word)
    values, lists = {}, {}
    for option, some in given.items():
        try:
            several = values_of(option, entries[option], some, option in getattr(command, "LISTS", ()))
            values[option], lists[option] = next(iter(several.values())), several
        except ValueError as error:
            problems.append(f"--{option}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    lists = {option: lists[option] for option in entries if len(lists.get(option, ())) > 1}
    given = {option: some if entries[option].repeats else some[0] for option, some in given.items()}
    options = defaults_of(command).but(**values, command=name, given=given, lists=lists)
    check_files(options, entries)
    if unused:
        say(f"{', '.join(unused)}: no effect here")
    return options


def in_full(name, text, entries, command):
    """The full name of an option, given one of its names or a prefix."""
    if name in entries:
        return name
    found = [known for known, entry in entries.items() if name in map(plain, entry.also)]
    found = found or [known for known in entries if is_short_for(name, known)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"--{name} may be {' or '.join(f'--{known}' for known in found)}: write more of it")
    near = nearest(name, entries, 0.75)
    remedy = f"did you mean --{near}?" if near and can_read(entries[near], text) else f"see {command} --help"
    raise ValueError(f"unknown option --{name[:60]} for {command}: {remedy}")


def can_read(entry, text):
    try:
        entry.read(text)
    except ValueError:
        return False
    return True


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
