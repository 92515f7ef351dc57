"""Run the commands of a page and put their output below them: python docs/run_blocks.py docs/measurements.md [TEXT]

Every fenced block of the page whose first line is `$ COMMAND` is run, in the order of the page, from the root of the
project, and its other lines are replaced by what the command printed. The line that begins with "Machine:" is replaced
by one about the machine that did it, so all measurements on a page should come from one machine. With TEXT, only
commands that contain it are run again. If a command fails, its block stays as it was, and the exit code is 1.
"""

import os
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
failed = []
BLOCK = re.compile(r"(^```\n\$ ([^\n]+)\n)(.*?)(^```$)", re.M | re.S)


def processor():
    """The name of the processor, as the system has it."""
    try:
        return re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def machine():
    """One line about this machine and what runs on it."""
    found = set(np.show_config(mode="dicts")["SIMD Extensions"]["found"])
    kernels = "AVX-512" if found & {"AVX512F", "AVX512_SKX", "X86_V4"} else "no AVX-512"
    return (
        f"Machine: {os.cpu_count()} cores, {processor()} ({kernels}), {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}; {date.today():%B %Y}."
    )


def output_of(command, before):
    """What a command of the page prints, or `before` if it fails; `python` is the one that runs this script."""
    print(f"$ {command}", file=sys.stderr)
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PATH": path}
    )
    if run.returncode:
        failed.append(f"{command} ended with exit code {run.returncode}: its block stays as it was")
        return before
    return run.stdout.strip("\n") + "\n"


def rewritten(page, text=""):
    """The page (str) with the outputs made again of the commands that contain this text."""
    page = re.sub(r"^Machine: .*$", lambda _: machine(), page, flags=re.M)
    return BLOCK.sub(
        lambda block: block[1] + (output_of(block[2], block[3]) if text in block[2] else block[3]) + block[4], page
    )


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text(encoding="utf-8"), *sys.argv[2:]), encoding="utf-8")
    if failed:
        raise SystemExit("\n".join(failed))
