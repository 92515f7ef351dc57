"""`python dev/bench/passes.py` with the kernels of several processors and several numbers of threads, as one table:

    python dev/bench/kernels.py SkylakeX,Haswell 1,2 --sizes 355M --repeats 3

The first argument lists kernels of OpenBLAS that this processor can run (SkylakeX: AVX-512, Haswell: AVX2), the second
numbers of threads; the others go to passes.py. OpenBLAS reads its kernels once, so each pair runs in its own process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COUNTS = ("2", "5", "8", "9")  # the numbers of tokens that the table shows


def measured(kernels, n_threads, arguments):
    """The report of passes.py (dict), with these kernels and this many threads for everything."""
    threads = dict.fromkeys(("GPT2NP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), n_threads)
    run = subprocess.run(
        [sys.executable, "dev/bench/passes.py", *arguments, "--rows", "9", "--as_json"],
        cwd=ROOT, env={**os.environ, "OPENBLAS_CORETYPE": kernels, **threads}, stdout=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    if run.returncode:
        raise SystemExit(run.returncode)
    return json.loads(run.stdout)


def main(kernels, threads, *arguments):
    counts = "".join(f"{m:>7}" for m in COUNTS)
    print(f"{'kernels':12}{'threads':>7}  {'strategy':14}{'one token':>12}   V(m) / V(1){counts}{'prompt':>10}")
    for core in kernels.split(","):
        for n in threads.split(","):
            report = measured(core, n, arguments)
            for model in report["models"]:
                for name, entry in model["strategies"].items():
                    one = f"{1e3 * entry['seconds']['1'][1]:.1f} ms"
                    ratios = "".join(f"{entry['v'][m]:>7.2f}" for m in COUNTS)
                    prompt = f"{entry['seconds']['prompt'][1]:.2f} s"
                    chosen = f"{name} *" if name == model["chosen"] else name
                    print(f"{core:12}{n:>7}  {chosen:14}{one:>12}   {'':11}{ratios}{prompt:>10}", flush=True)
    print("*  the strategy that the library chose there, for this model")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
