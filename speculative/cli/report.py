"""A report in a file: each part of an experiment is written when it is finished, and reused by the next run.

The file is a complete JSON object at every moment: each new version replaces the old one in one step. A run resumes
only if the command, its options, the machine, the version and everything recorded by `same` agree.
"""

import os
import platform
from functools import cache
from json import dumps, loads
from pathlib import Path

import numpy as np
from tqdm import tqdm

import gpt2np
import speculative
from gpt2np.kernels import matmul
from speculative.trace.terminal import visible

from .files import digest, replacing

OUTPUTS = ("json", "csv", "plot", "plot_size", "by", "best", "trace", "show", "timings")  # change no measurement
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


def load_average():
    """The average number of processes ready to run in the last minute; 0.0 if the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


class Report:
    """The parts of an experiment, kept in a file if one is named; use it in a `with` statement.

    Parameters
    ----------
    path : str or bool
        A file; True or False keeps the parts in memory only.
    command : str
    texts : dict
        The options, as they were typed.

    Raises
    ------
    ValueError
        If the file was not written by this command with these options, on this machine and by this version.
    """

    def __init__(self, path, command, texts):
        self.path, self.is_printed = Path(path) if isinstance(path, str) else None, path is True
        self.about = {"command": command, "machine": machine()}
        self.about |= {f"--{name}": text for name, text in texts.items() if name not in OUTPUTS}
        self.about |= {"version": version(), "matmul": matmul.strategy()} if path else {}
        self.found, self.parts, self.bar = {}, {}, tqdm(disable=True)
        self.load_now, self.load = load_average(), 0.0  # the load at the start; the largest in any run
        if self.path and self.path.exists():
            self.read()

    def read(self):
        try:
            old = loads(self.path.read_text(encoding="utf-8"))
            about, self.found, self.parts, self.load = old["about"], old["found"], old["parts"], old["load_average"]
            if old["seal"] != self.seal(about):
                raise ValueError("changed by hand, or damaged")
            matmul.use(about["matmul"])  # otherwise it would be chosen again, by timing
            self.about["matmul"] = about["matmul"]
        except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
            raise ValueError(f"--json: {self.path} is not a report of this program ({error!r:.60}): {REMEDY}") from None
        for name in {**about, **self.about}:
            old, new = (some.get(name, "none") for some in (about, self.about))
            if old != new:
                raise ValueError(f"--json: {self.path} was made with {name} {old}, and this is {new}: {REMEDY}")

    @property
    def busy(self):
        """A warning if other programs ran on the machine, otherwise an empty text."""
        load = self.load if self.parts else self.load_now
        return f"BUSY: load average {load:.1f} at the start" if load > (os.cpu_count() or 1) else ""

    @property
    def where(self):
        """The machine, and whether it was busy."""
        return self.about["machine"] + (f"; {self.busy}" if self.busy else "")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.bar.close()
        if kind is KeyboardInterrupt and self.parts and not str(error):
            self.write()  # the last part may not be there yet
            n = f"{len(self.parts)} part{'s' * (len(self.parts) != 1)}"
            kept = f"{n} in {self.path}: the same command resumes from there"
            lost = "the measurements are lost: --json FILE.json keeps each part as soon as it is finished"
            raise KeyboardInterrupt(kept if self.path else lost) from None

    def expect(self, n_parts):
        """Show a progress bar with this total, on a terminal."""
        done = self.bar.n
        self.bar.close()
        self.bar = tqdm(total=n_parts, initial=done, unit=" parts", leave=False, disable=None)

    def same(self, name, value):
        """Record a value, such as the prompts; ValueError if the file was made with a different one."""
        if self.found.setdefault(name, value) != value:
            raise ValueError(f"--json: {self.path} was made with different {name}: {REMEDY}")

    def same_contents(self, name, *contents):
        """`same` for texts, or for the files at these paths; nothing is read if no file keeps the parts."""
        if self.path:
            self.same(f"contents of {name}", digest(*contents))

    def keep(self, name, measure):
        """The part of this name, in plain JSON; measured and written if it is missing."""
        if name not in self.parts:
            part = loads(dumps(measure(), allow_nan=False))
            self.load = max(self.load, self.load_now)
            self.parts[name] = part
            self.write()
        self.bar.set_description(name, refresh=False)
        self.bar.update()
        return self.parts[name]

    def seal(self, about):
        """A checksum of everything a resumed run relies on."""
        return digest(dumps([about, self.found, self.parts, self.load], sort_keys=True))

    def write(self, **result):
        """Replace the file by one with everything so far; each part is a line."""
        if self.path:
            told = {"about": self.about, "found": self.found, "load_average": self.load}
            told |= {"seal": self.seal(self.about), "finished": bool(result)}
            top = dumps({**told, **result}, indent=1, allow_nan=False)
            lines = ",\n".join(f"  {dumps(name)}: {dumps(part)}" for name, part in self.parts.items())
            with replacing(self.path) as new:
                new.write_text(f'{top[:-2]},\n "parts": {{\n{lines}\n }}\n}}\n', encoding="utf-8")

    def finish(self, result, page):
        """Write the whole report; print its page, or with --json alone the report itself. Call this last."""
        self.bar.close()
        self.write(**result)
        print(dumps({**self.about, **result}, indent=1) if self.is_printed else visible(page).removesuffix("\n"))
