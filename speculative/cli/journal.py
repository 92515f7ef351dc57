"""A journal: the file of a long run. The first line says what is run, and each further line is a finished part.

    {"journal": 1, "command": ..., "options": {...}, "machine": ..., "version": ..., "matmul": ..., "contents": {...}}
    {"part": "text 1", ...}

"contents" has the digests of the files and models that typed options name. The same command resumes: parts that are
there are not made again. It is refused if anything has changed that decides the results; the machine, and options that
only change what is shown, may differ. A file is locked while a run writes it, and no other file is ever touched.
"""

import errno
import os
import platform
from functools import cache
from json import dumps, loads
from pathlib import Path

import numpy as np
from tqdm import tqdm

import gpt2np
import speculative
from gpt2np.files.download import try_lock
from gpt2np.files.table import files_read
from gpt2np.kernels import matmul
from speculative.measuring.table import counted
from speculative.trace.terminal import visible

from .files import digest, say
from .models import ENGINES
from .options import all_entries

TINY = Path(gpt2np.__file__).parent / "tiny"  # the bundled models
HEAD, PART = b'{"journal": 1, ', b'{"part": '  # how the first line begins, and all others
REMEDY = "name a different file, or delete it"


@cache
def version():
    """The version of the library, and a checksum of its sources, which also change between releases."""
    folders = [Path(package.__file__).parent for package in (gpt2np, speculative)]
    return f"{gpt2np.__version__}, sources {digest(*(p for folder in folders for p in sorted(folder.rglob('*.py'))))}"


def machine():
    threads = os.environ.get("GPT2NP_THREADS")
    about = f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"
    return f"{about}, GPT2NP_THREADS={threads}" if threads else about


def contents_of(options):
    """dict name -> digest of each file, and each folder with a model, that a typed option names, as FILE.py:NAME too.

    Bundled models are files as well. Names on the hub, pipes and modules that a FILE.py imports are not looked at.
    """
    names = [name for name, entry in all_entries(options).items() if entry.names_files and name in options.given]
    texts = [text for name in names for text in (options.given[name], *options.given[name].split(","))]
    digests = {}
    for text in texts:
        places = text.rpartition(":")[0] if ".py:" in text else text, f"{options.models_dir}/{text}", TINY / text
        for path in map(Path, places):
            inside = [each.name for each in path.iterdir()] if path.is_dir() else []
            model = [path / name for name in inside if name in (*files_read(inside), f"{options.drafter}.safetensors")]
            files = model or [path / name for name in inside] or [path]
            if files := sorted(file for file in files if file.is_file()):
                digests[text] = digest(*files)
    return digests


class Journal:
    """The parts of a run, in a file if one is named; use it in a `with` statement.

    Without a name (an empty one, or a bool) the parts are in memory only. `about` has further items of the first line;
    `may_differ` names items and options (--NAME) that a resumed run need not share, apart from the machine. A file that
    is not a journal, belongs to a different run or is being written raises a ValueError, which ends with the remedy.
    """

    def __init__(self, path, options, *, about=None, may_differ=(), remedy=REMEDY):
        self.path, self.parts, self.file = Path(path) if isinstance(path, (str, Path)) and path else None, {}, None
        self.may_differ, self.remedy = ("machine", *may_differ), remedy
        views = {name for name, entry in all_entries(options).items() if entry.is_aside}
        typed = {f"--{name}": text for name, text in options.given.items() if name not in views}
        self.head = {"command": options.command, "options": typed, "machine": machine(), **(about or {})}
        if path:
            self.head |= {"version": version(), "matmul": matmul.strategy()}
            self.head |= {"engine": ENGINES[options.engine].versions()}
        if self.path:
            self.head["contents"] = contents_of(options)
        self.is_printed, self.bar = path is True, tqdm(disable=True)

    def __enter__(self):
        if self.path and self.path.exists():
            self.open("r+b")
            try:
                self.read(self.file.read())
            except BaseException:
                self.file.close()
                raise
        return self

    def __exit__(self, kind, error, traceback):
        self.bar.close()
        if self.file:
            self.file.close()
        if kind is KeyboardInterrupt and self.parts and not str(error):
            kept = f"{counted(len(self.parts), 'part')} in {self.path}: the same command resumes from there"
            lost = "the measurements are lost: --json FILE.jsonl keeps each part as soon as it is finished"
            raise KeyboardInterrupt(kept if self.path else lost) from None

    def open(self, mode):
        """Open and lock the file. The system releases the lock when the process ends, however it ends."""
        try:
            self.file = open(self.path, mode, buffering=0)  # noqa: SIM115
        except FileExistsError:
            raise ValueError(f"another run has just begun {self.path}: wait for it, or name a different file") from None
        if not try_lock(self.file):
            self.file.close()
            raise ValueError(f"another run is writing {self.path}: wait for it, or name a different file")

    def read(self, content):
        """Take over the parts. An incomplete last line is removed if it begins as one of ours."""
        n_whole = content.rfind(b"\n") + 1
        lines, cut = content[:n_whole].splitlines(), content[n_whole:]
        is_ours = content.startswith(HEAD) and (not lines or cut.startswith(PART) or PART.startswith(cut))
        if content and not is_ours:
            raise ValueError(f"{self.path} is not a journal of this program, and stays as it is: {self.remedy}")
        for number, line in enumerate(lines, 1):
            try:
                part = loads(line)
                if number > 1:
                    self.parts[part.pop("part")] = part
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise ValueError(f"{self.path}: line {number} is damaged: {self.remedy}") from None
            if number == 1:
                self.check(part)
        if cut:
            self.file.truncate(n_whole)

    def check(self, old):
        """Raise ValueError, naming the first difference, unless the first line is that of this run.

        The matmul strategy is taken from the line: it is chosen by timing, and rounds differently. Contents may have
        another name, such as a copy of a model.
        """
        new = self.head | {"matmul": old.get("matmul", self.head["matmul"])}
        for part in (name for name in new if name not in self.may_differ):
            before, now = ({part: head.get(part)} for head in (old, new))
            if isinstance(before[part], dict) and isinstance(now[part], dict):
                before, now = before[part], now[part]
            if part == "contents":
                before = {name: now[name] if now[name] in before.values() else before.get(name) for name in now}
            for name in (name for name in {**now, **before} if name not in self.may_differ):
                if before.get(name) != now.get(name):
                    made_with = f"{name} {before.get(name, 'none')}, and this is {now.get(name, 'none')}"
                    made_with = f"other contents of {name}" if part == "contents" else made_with
                    raise ValueError(f"{self.path} was made with {made_with}: {self.remedy}")
        if old.get("machine") != new["machine"]:
            say(f"{self.path} was begun on {old.get('machine')}, and goes on on {new['machine']}")
        matmul.use(new["matmul"])
        self.head = new

    def expect(self, n_parts):
        """Show a progress bar that ends after so many further parts, on a terminal."""
        done = self.bar.n
        self.bar.close()
        self.bar = tqdm(total=done + n_parts, initial=done, unit=" parts", leave=False, disable=None)

    def keep(self, name, measure):
        """The part of this name, a dict in plain JSON; measured and written if it is missing."""
        if name not in self.parts:
            part = loads(dumps(measure(), allow_nan=False))
            if self.path:
                self.append({"part": name, **part})
            self.parts[name] = part
        self.bar.set_description(name, refresh=False)
        self.bar.update()
        return self.parts[name]

    def append(self, line):
        """Write a line, after the first line if the file is new: all of it, or nothing."""
        if not self.file:
            self.open("xb")
        end = self.file.seek(0, os.SEEK_END)
        lines = [line] if end else [{"journal": 1, **self.head}, line]
        data = "".join(f"{dumps(each)}\n" for each in lines).encode()
        try:
            if self.file.write(data) < len(data):  # a full disk may take a part of it
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except BaseException as error:
            self.file.truncate(end)
            if isinstance(error, OSError):
                raise OSError(f"cannot write {self.path} ({error.strerror}): it ends with the part before") from error
            raise

    def finish(self, result, page):
        """Print the page, or with --json alone the first line and result() (dicts). Call this last."""
        self.bar.close()
        print(dumps({**self.head, **result()}, indent=1) if self.is_printed else visible(page).removesuffix("\n"))
