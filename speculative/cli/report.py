"""A report in a file: each part of an experiment is written when it is finished, and found there the next time.

The file is a complete JSON object at every moment: each new version replaces the old one in one step. It holds the
command, the settings, the machine, the version, the strategy, checksums of the files read, notes, the load average, the
parts, and finally the report. A run resumes only if command, settings, machine, version and checksums agree.
"""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from json import dumps, loads
from pathlib import Path
from time import perf_counter

import numpy as np
from tqdm import tqdm

import gpt2np
import speculative
from gpt2np.kernels import matmul
from speculative.trace.terminal import visible

from .files import digest, read_text, replacing
from .streams import uninterrupted

OUTPUTS = {"json", "plot", "log", "spec_bench", "show", "trace", "timings"}  # not changing the measurements
REMEDY = "name another file, or delete it"
OTHERS = {  # other kinds of files
    "command": "holds a report of {}, expected one of {}",
    "machine": "was made on {}, and this is {}",
    "version": "was made by version {}, and this is {}",
}


def settings_of(options, names):
    """The options `names` as a dict, with checksums of the texts that they name."""
    settings = {name: getattr(options, name) for name in sorted(names - OUTPUTS)}
    if settings.get("prompt_file"):
        settings["prompt_file"] += checksum(read_text(options.prompt_file, "prompt_file"))
    if settings.get("corpus"):
        with suppress(ValueError):  # it may not be needed; where it is, the error is raised later
            settings["corpus"] += checksum(read_text(options.corpus))
    return settings


def checksum(text):
    return " sha256 " + sha256(text.encode()).hexdigest()[:16]


def load_average():
    """How many processes have wanted to run, on average over the last minute; 0.0 where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def machine():
    threads = os.environ.get("GPT2NP_THREADS")
    about = f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"
    return f"{about}, GPT2NP_THREADS={threads}" if threads else about


@cache
def library():
    """The version of the library, and a checksum of its sources, which also change between releases."""
    folders = [Path(package.__file__).parent for package in (gpt2np, speculative)]
    return f"{gpt2np.__version__}, sources {digest(*(p for folder in folders for p in sorted(folder.rglob('*.py'))))}"


def versions_of(engines):
    """The versions of those of these packages that are installed, in words that can follow "version 1.0"."""
    found = []
    for name in engines:
        with suppress(metadata.PackageNotFoundError):
            found.append(f", {name} {metadata.version(name)}")
    return "".join(found)


class Saved:
    """The parts of an experiment, saved in a file if one is named; to be used in a `with` statement.

    Parameters
    ----------
    path : str or bool
        A file; True or False keeps the parts nowhere.
    command : str
    settings : dict
    engines : sequence of str
        Other packages that are measured; their versions are part of `version`.

    Raises
    ------
    ValueError
        If the file holds anything but this command with these settings, on this machine, by this version.
    """

    def __init__(self, path, command, settings, engines=()):
        self.path = Path(path) if path and path is not True else None
        version = (library() if self.path else gpt2np.__version__) + versions_of(engines)
        self.head = {"command": command, "settings": plain(settings), "machine": machine(), "version": version}
        self.files, self.notes, self.parts, self.n_new, self.is_finished = {}, {}, {}, 0, False
        self.load_now = self.load_average = load_average()  # at the start; the largest of all runs that measured
        if self.path and self.path.exists():
            found = self.read()
            self.files, self.notes, self.parts = found["files"], found["notes"], found["parts"]
            if self.parts:
                self.load_average = found["load_average"]
            matmul.use(found["strategy"])  # else it would be chosen again by timing
        if path:  # otherwise not needed, and the probe takes a moment
            self.head["strategy"] = matmul.strategy()
        self.is_terminal, self.started = sys.stderr.isatty(), perf_counter()
        self.bar = tqdm(disable=True)  # until the number of parts is known

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.bar.close()
        if kind is KeyboardInterrupt and not str(error):
            raise KeyboardInterrupt(self.what_is_kept()) from None

    def what_is_kept(self):
        """The end of the sentence "interrupted; ..."."""
        if self.is_finished:
            kept = f"the whole report is in {self.path}" if self.path else "--json FILE.json would have kept the report"
            return f"all was measured, and {kept}"
        if self.path and self.parts:
            of_all = f" of {self.bar.total}" if self.bar.total else ""
            return f"{len(self.parts)}{of_all} parts are in {self.path}, and the same command resumes from there"
        if self.n_new and not self.path:
            return "what was measured is lost: --json FILE.json keeps each part as soon as it is finished"
        return "nothing was finished, so nothing is kept"

    def expect(self, n_parts):
        """Show a progress bar with this total, on a terminal."""
        done = self.bar.n
        self.bar.close()
        self.bar = tqdm(total=n_parts, initial=done, unit=" parts", leave=False, disable=not self.is_terminal)

    def read(self):
        """The contents of the file, if they fit."""
        try:
            found = loads(self.path.read_text(encoding="utf-8"))
            told = {name: found[name] for name in (*self.head, "strategy", "files", "notes", "load_average")}
            if found["checksum"] != seal(told, found["parts"]):
                raise ValueError("changed by hand, or damaged")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(f"--json: {self.path} is not a report that this program wrote: {REMEDY}") from None
        except OSError as error:
            raise ValueError(f"--json: cannot read {self.path} ({error.strerror}): {REMEDY}") from None
        for name, value in self.head["settings"].items():
            if (other := told["settings"].get(name)) != value and told["command"] == self.head["command"]:
                raise ValueError(f"--json: {self.path} was made with --{name} {other}, not {value}: {REMEDY}")
        for name, words in OTHERS.items():
            if told[name] != self.head[name]:
                raise ValueError(f"--json: {self.path} {words.format(told[name], self.head[name])}: {REMEDY}")
        return found

    def opened(self, name, *paths):
        """Record the contents of a model's files or a table; ValueError if parts were measured with other contents."""
        if self.path:
            held = digest(*paths)
            if self.files.setdefault(name, held) != held:
                raise ValueError(f"--json: {self.path} was made with other contents of {name}: {REMEDY}")

    def note(self, name, find):
        """What `find` returns, in plain JSON; found out once, so that a run that resumes goes on with the same."""
        if name not in self.notes:
            self.notes[name] = plain(find())
        return self.notes[name]

    def keep(self, name, measure):
        """The part of this name, in plain JSON; measured and written if it is missing."""
        if name not in self.parts:
            part = plain(measure())
            self.load_average = max(self.load_average, self.load_now)
            with uninterrupted():
                self.write(self.parts | {name: part})
                self.parts[name] = part
                self.n_new += 1
            if not self.is_terminal:  # a log: one line a part
                count = f"{len(self.parts)} of {self.bar.total}" if self.bar.total else f"{len(self.parts)} parts"
                print(f"{visible(name)}: {count}, {perf_counter() - self.started:.0f} s", file=sys.stderr, flush=True)
        self.bar.set_description(visible(name), refresh=False)
        self.bar.update()
        return self.parts[name]

    def whole(self, report):
        """The report, with the settings and the load average."""
        return {**self.head, "load_average": self.load_average, **report}

    def finish(self, report):
        """Write the whole report."""
        self.bar.close()
        with uninterrupted():
            self.write(self.parts, report)
            self.is_finished = True

    def write(self, parts, report=None):
        """Replace the file by one with everything so far; each part is a line."""
        if not self.path:
            return
        told = {**self.head, "files": self.files, "notes": self.notes, "load_average": self.load_average}
        top = {**told, "checksum": seal(told, parts), "finished": report is not None, **(report or {})}
        lines = ",\n".join(f"  {dumps(name)}: {dumps(part)}" for name, part in parts.items())
        text = dumps(top, indent=1, allow_nan=False)
        with replacing("json", self.path) as new:
            new.write_text(f'{text[:-2]},\n "parts": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


def plain(value):
    """The value after a round trip through JSON."""
    return loads(dumps(value, allow_nan=False))


def seal(told, parts):
    """A checksum of everything that a resumed run relies on."""
    return sha256(dumps([told, parts], sort_keys=True).encode()).hexdigest()[:16]
