"""From the words of a command line to a command and an exit code; an error prints one sentence and exits with code 2.

python-fire splits the words into the command, --name value, --name=value and --flag; all values arrive as texts.
words.py reads them, and refuses unknown names before anything runs; the help comes from help.py. Each module of
commands/ is a command: its docstring is the help, TAKES names its options, and `run(options)` runs it.
"""

import contextlib
import os
import signal
import sys
import threading
from importlib import import_module
from pkgutil import iter_modules

import fire
from tqdm import tqdm

import gpt2np
from speculative.trace.terminal import visible

from . import commands
from .brought import in_brief, line_of
from .help import first_page, page_of, whole_page
from .models import nearest
from .words import prepared, read

DEFAULT = "generate"  # the command that needs no word


def run():
    """Run the command that the process was started with, and leave with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as main.py leaves it during the imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # a closed stream
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    # tqdm's own lock also works across processes; when the command is killed, multiprocessing prints that it leaked
    tqdm.set_lock(threading.RLock())
    sys.stdout.reconfigure(errors="replace")  # a character that the terminal cannot show becomes a question mark
    code = main(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    try:
        sys.stdout.flush()
    except OSError:  # `main` has reported it; without this, Python reports it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def main(words):
    """Run the command of a command line; returns the exit code."""
    try:
        if "--" in words:
            raise ValueError("unexpected '--': options are --name value, and a text of several words needs quotes")
        is_prompt = words and " " in words[0] and not words[0].startswith("-")
        words = [*words] if words and not (is_prompt or words[0].startswith("-")) else [DEFAULT, *words]
        words = [*prepared(words), "--", "--separator=\0"]  # without it, a lone - separates calls
        fire.Fire(call, command=words)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        say(f"interrupted; {str(error) or 'nothing is kept'}")
        return 130
    except commands.Failed:
        return 1
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        return 0
    except RecursionError:
        say("a file is nested too deeply to be read: is it the right file?")
        return 2
    except (ValueError, OSError, MemoryError) as error:
        say(in_brief(error) if line_of(error) else sentence_on(error))
        return 2
    except (Exception, SystemExit) as error:
        if not line_of(error):
            raise
        say(in_brief(error))  # an error in the user's own drafter or verifier
        return 2
    return 0


@fire.decorators.SetParseFn(str)
def call(name, *words, **texts):
    """Run a command with the values of its options, given as texts."""
    known = sorted(module.name for module in iter_modules(commands.__path__))
    if "version" in texts:
        print(f"speculative-decoding-numpy {gpt2np.__version__}")
        return
    if name == "help":
        name, words, texts = [*words, DEFAULT][0], (), {"help": "True"}
    if name == "all":
        name, texts = DEFAULT, {"help": "all"}
    if name not in known:
        near = nearest(name, known)
        remedy = f"did you mean {near}?" if near else as_prompt(name, words)
        raise ValueError(f"unknown command {name[:60]!r}: {remedy}")
    module = import_module(f"{commands.__name__}.{name}")
    if {"help", "h"} & texts.keys():
        modules = [import_module(f"{commands.__name__}.{name}") for name in known]
        first = whole_page if texts.get("help") == "all" else first_page
        print(first(program(), module, modules) if name == DEFAULT else page_of(program(), module), end="")
    else:
        module.run(read(module, name, words, texts))


def as_prompt(name, words):
    """The remedy for a first word that is not a command."""
    text = " ".join([name, *words])
    is_text = words or not name
    return f"did you mean --prompt {text[:100]!r}?".replace("'", '"') if is_text else "see --help for the commands"


def sentence_on(error):
    """The message of an exception, with the file's name if it is a system error."""
    if getattr(error, "strerror", None):
        return f"cannot read or write {error.filename or 'standard output'} ({error.strerror})"
    return str(error) or "not enough memory"


def say(message):
    """Print one sentence on one line of standard error."""
    message = visible(message.replace("\n", "\u23ce"))
    message = message if len(message) <= 480 else message[:477] + "..."
    with contextlib.suppress(OSError):
        print(f"{os.path.basename(program().split()[-1])}: {message}", file=sys.stderr, flush=True)


def program():
    """How the program was started: "python main.py" in a checkout, otherwise the entry point's name."""
    return "python main.py" if os.path.basename(sys.argv[0]) == "main.py" else "speculative-decoding"
