"""A report in a file: each part of an experiment is written down when it is finished, and found there the next time.

The file is one JSON object at every moment, since a new one takes the place of the old one at once. It holds what was
asked for, the parts, and at the end the report.
"""

import os
import sys
from hashlib import sha256
from json import JSONDecodeError, dumps, loads
from pathlib import Path

from tqdm import tqdm

from gpt2np import matmul

from .request import machine

OUTPUTS = {"json", "plot", "log", "show", "trace"}  # options that change nothing that is measured
INPUTS = ("prompt_file", "corpus")  # options that name a text


def settings_of(request, names):
    """The options `names` of a request as a dict, and of the texts that they name a checksum."""
    settings = {name: getattr(request, name) for name in sorted(names - OUTPUTS)}
    for name in INPUTS:
        path = Path(settings.get(name) or ".")
        if path.is_file():  # else it is not needed, or refused where it is
            settings[name] += " sha256 " + sha256(path.read_bytes()).hexdigest()[:16]
    return settings


class Saved:
    """The parts of an experiment, kept in a file where one is named.

    Parameters
    ----------
    path : str or bool
        A file; else the parts are kept for nobody.
    command : str
    settings : dict

    Raises
    ------
    ValueError
        If the file holds something else than this command with these settings on this machine.
    """

    def __init__(self, path, command, settings):
        self.path = Path(path) if path and path is not True else None
        self.head, self.parts = {"command": command, "settings": loads(dumps(settings)), "machine": machine()}, {}
        if self.path and self.path.exists():
            found = self.read()
            self.parts = found["parts"]
            matmul.use(found["strategy"])  # else it would be chosen anew, by the clock
        self.head["strategy"] = matmul.strategy()
        self.bar = tqdm(unit=" parts", leave=False, disable=not sys.stderr.isatty())

    def expect(self, n_parts):
        """Let the bar end there."""
        self.bar.total = n_parts
        self.bar.refresh()

    def read(self):
        """What is in the file, if it is of this kind."""
        remedy = "name another file, or delete it"
        try:
            found = loads(self.path.read_text(encoding="utf-8"))
            command, settings, where, *_ = (found[name] for name in (*self.head, "strategy", "parts"))
        except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            raise ValueError(f"--json: {self.path} is no report of main.py: {remedy}") from None
        if command != self.head["command"]:
            raise ValueError(
                f"--json: {self.path} holds a report of {command}, expected one of {self.head['command']}: {remedy}"
            )
        for name, value in self.head["settings"].items():
            if (other := settings.get(name)) != value:
                raise ValueError(f"--json: {self.path} was made with --{name} {other}, not {value}: {remedy}")
        if where != self.head["machine"]:
            raise ValueError(f"--json: {self.path} was made on {where}, and this is {self.head['machine']}: {remedy}")
        return found

    def keep(self, name, measure):
        """The part of this name, in plain JSON; measured and written down if it is not there yet."""
        if name not in self.parts:
            self.parts[name] = loads(dumps(measure(), allow_nan=False))
            self.write()
        self.bar.set_description(name, refresh=False)
        self.bar.update()
        return self.parts[name]

    def finish(self, report):
        """The whole report, with what was asked for; written down, too."""
        self.bar.close()
        self.write(report)
        return {**self.head, **report}

    def write(self, report=None):
        """Put everything so far in the place of the old file; each part is a line of it."""
        if not self.path:
            return
        top = dumps({**self.head, "finished": report is not None, **(report or {})}, indent=1, allow_nan=False)
        parts = ",\n".join(f"  {dumps(name)}: {dumps(part)}" for name, part in self.parts.items())
        new = self.path.with_name(self.path.name + ".part")
        new.write_text(f'{top[:-2]},\n "parts": {{\n{parts}\n }}\n}}\n', encoding="utf-8")
        os.replace(new, self.path)
