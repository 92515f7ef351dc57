"""Run the commands of a page and put their output below them:

    python dev/bench/run_blocks.py docs/raw/avx512.md [TEXT]

Every fenced block of the page whose first line is `$ COMMAND` is run, in the order of the page, from the root of the
project, and its other lines are replaced by what the command printed. The page is written after each block. With TEXT,
only commands that contain it are run again. If a command fails, its block stays as it was, and the exit code is 1. All
measurements on a page should come from one machine: the line that begins with "Machine:" is replaced by one about this
machine if every block was run.
"""

import os
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(^```\n\$ )([^\n]+)(\n)(.*?)(^```$)", re.M | re.S)


def processor():
    """The name of the processor, as the system reports it."""
    try:
        return re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def machine():
    """One line about this machine and its software."""
    extensions = set(np.show_config(mode="dicts")["SIMD Extensions"]["found"])
    kernels = "AVX-512" if extensions & {"AVX512F", "AVX512_SKX", "X86_V4"} else "no AVX-512"
    return (
        f"Machine: {os.cpu_count()} cores, {processor()} ({kernels}), {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}; {date.today():%B %Y}."
    )


def output_of(command):
    """The output of a command of the page, None if it fails; `python` is the one that runs this script."""
    print(f"$ {command}", file=sys.stderr)
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PATH": path}
    )
    if run.returncode:
        return None
    return run.stdout.strip("\n") + "\n"


def run_blocks(path, text=""):
    """Run the page's commands that contain this text; returns those that failed."""
    parts, failed = BLOCK.split(path.read_text(encoding="utf-8")), []  # a text, then six parts for each block
    blocks = range(4, len(parts), 6)
    chosen = [i for i in blocks if text in parts[i - 2]]
    for i in chosen:
        if (output := output_of(parts[i - 2])) is None:
            failed.append(parts[i - 2])
        else:
            parts[i] = output
            path.write_text("".join(parts), encoding="utf-8")
    if len(chosen) == len(blocks) and not failed:
        page = re.sub(r"^Machine: .*$", lambda _: machine(), "".join(parts), flags=re.M)
        path.write_text(page, encoding="utf-8")
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    if failed := run_blocks(Path(sys.argv[1]), *sys.argv[2:]):
        raise SystemExit("\n".join(f"{command} failed: its block stays as it was" for command in failed))
