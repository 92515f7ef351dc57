"""From the words of a command line to a command, its output and an exit code.

An error ends in one sentence and exit code 2, an interruption in exit code 130.

python-fire splits the words into options, reads each as the kind of value that its entry in options.py names, and calls
the command. What it gets wrong for texts is settled before, in `checked`: it would complete nothing, take an unknown
option, read --noprompt as --prompt False, take an option without a value for True, give -- and - a meaning of their own
and offer a console.
"""

import contextlib
import errno
import os
import re
import signal
import sys

import fire

import gpt2np
from speculative.trace.terminal import visible

from .commands import find_commands
from .help import help_on_all, help_text
from .inputs import either, nearest
from .options import ENTRIES, FLAGS
from .streams import interrupt, open_streams

AN_OPTION = re.compile(r"--|-[A-Za-z]")  # -1 and - are values
DEFAULT = "generate"  # the command that needs no word
MOST = 480  # characters of a message


# ------------------------------------------------------------------------------------------------ the process


def run():
    """Run the command that the process was started with, and leave with its exit code."""
    sys.exit(run_safely(sys.argv[1:]))


def run_safely(words):
    """`main`, for streams that may be closed or full, and for Ctrl-C at any moment."""
    open_streams()
    try:
        if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):  # else it is ignored
            signal.signal(signal.SIGINT, interrupt)
        code = main(words)
    except KeyboardInterrupt:  # between the commands above
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    closed = {errno.EPIPE} | ({errno.EINVAL} if sys.platform == "win32" else set())  # the reader has left
    if (error := sys.stdout.error) and error.errno not in closed and code == 0:
        say(f"cannot write to standard output ({error.strerror})")
        code = 2
    return code


def main(words):
    """Run the command of a command line; returns the exit code."""
    try:
        answer(words)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        say(f"interrupted; {str(error) or 'nothing is kept'}")
        return 130
    except RecursionError:
        say("a file is nested too deeply to be read: is it the right file?")
        return 2
    except (ValueError, OSError, MemoryError) as error:
        if error is not getattr(sys.stdout, "error", None):  # which is reported at the end
            say(str(error) or "not enough memory")
            return 2
    return 0


def say(message):
    """Print one sentence on one line of standard error."""
    message = visible(message.replace("\n", "\u23ce"))
    message = message if len(message) <= MOST else message[: MOST - 3] + "..."
    with contextlib.suppress(OSError):
        print(f"{os.path.basename(program().split()[-1])}: {message}", file=sys.stderr, flush=True)


def program():
    """How the program was started: "python main.py" in a checkout, otherwise the entry point's name."""
    name = os.path.basename(sys.argv[0])
    return "python main.py" if name == "main.py" else "speculative-decoding"


# ------------------------------------------------------------------------------------------------ the words


def answer(words):
    """Do what the words ask for: print the help or the version, or call a command."""
    commands = find_commands()
    if words[:1] == ["help"] or {"--help", "-h"} & set(words):
        topic = [*words[words[:1] == ["help"] :], "--help"][0]
        if topic == "all":
            print(help_on_all(program(), commands), end="")
        else:
            command = None if AN_OPTION.match(topic) else command_of(topic, commands)
            print(help_text(program(), commands, command), end="")
    elif "--version" in words:
        print(f"speculative-decoding-numpy {gpt2np.__version__}")
    elif words and not AN_OPTION.match(words[0]):
        call(command_of(words[0], commands), words[1:])
    else:
        call(commands[DEFAULT], words)


def command_of(word, commands):
    if word in commands:
        return commands[word]
    near = nearest(word, commands)
    remedy = f"did you mean {near}?" if near else f"expected one of {', '.join(commands)}, or options, --name value"
    raise ValueError(f"unknown command {cut(word)!r}: {remedy}")


def call(command, words):
    """Let fire call the command: it splits --name=value, and the option's entry reads the value."""
    names = command.options | ({command.word} if command.word else set())
    readers = {name: ENTRIES[name].metadata["kind"].read for name in names}
    fire.Fire(fire.decorators.SetParseFns(**readers)(lambda **given: command(**given)), command=checked(words, command))


def checked(words, command):
    """The words as --name=value, names in full; ValueError where that is not what they are."""
    found = []
    if command.word and words and not AN_OPTION.match(words[0]):
        found, words = [f"--{command.word}={words[0]}"], words[1:]
    elif command.word == "file":
        raise ValueError(f"{command.name} takes a file: {command.name} {command.example.split()[0]}")
    while words:
        word, *words = words
        option = re.fullmatch(r"--([A-Za-z][\w-]*)(=.*)?", word, re.S)
        if not option:
            raise ValueError(
                f"unexpected {cut(word)!r}: a command comes first, options are --name value, and a text of several "
                "words needs quotes; see --help"
            )
        name, value = in_full(option[1].replace("-", "_"), command), option[2]
        if value is None and words and not AN_OPTION.match(words[0]):
            value, *words = [f"={words[0]}", *words[1:]]
        if value is None and name not in FLAGS:
            raise ValueError(f"{word} needs a value; write one that starts with a hyphen as {word}='-...'")
        found.append(f"--{name}{'=True' if value is None else value}")
    return found


def in_full(name, command):
    """The name of an option of the command, of which a beginning is enough that no other has."""
    longer = [known for known in sorted(command.options) if known.startswith(name)]
    if name in command.options or len(longer) == 1:
        return name if name in command.options else longer[0]
    if longer:
        raise ValueError(f"--{name} may be {either([f'--{known}' for known in longer])}: write more of it")
    near = nearest(name, command.options)
    remedy = f"did you mean --{near}?" if near else f"see {command.name} --help"
    raise ValueError(f"unknown option --{cut(name)} for {command.name}: {remedy}")


def cut(text):
    return text if len(text) <= 60 else text[:57] + "..."
