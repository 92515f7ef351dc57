"""Milliseconds of a round by the size of the draft, in chains and trees of the bundled pair:

    python dev/bench/sizes.py [PART]

A round should take a little longer with each size, and never many times as long. That is at risk where a matmul gets
large enough for several threads, of this library or of the BLAS. So the table is measured with each number of BLAS
threads (OPENBLAS_NUM_THREADS; "-": its default), with the other cores free and with one of them busy. Each row is
measured in its own process. Its sizes take turns, and the medians are shown. The last column is the largest ratio of
two neighbours. PART, such as `heads`, limits the table to the rows whose name contains it.
"""

import json
import os
import subprocess
import sys
from itertools import pairwise
from statistics import median
from time import perf_counter

import gpt2np
import speculative as s

SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
REPEATS, ROUNDS = 4, 8
GREEDY, WEIGHTS = s.Sampling(0), (0.66, 0.17, 0.06, 0.03, 0.02, 0.01)


def shape(n):
    return s.Shape.best(n, WEIGHTS)


def heads_drafter(target, heads, n):
    return s.HeadsDrafter(target, heads, s.Shape.best(n, s.HeadsDrafter(target, heads).weights()))


DRAFTERS = {  # (target, n draft tokens) -> drafter
    "model, chain": lambda target, n: s.ModelDrafter(gpt2np.load("tiny-draft")[0]),
    "model, tree": lambda target, n: s.TreeDrafter(gpt2np.load("tiny-draft")[0], shape(n)),
    "heads, tree": lambda target, n: heads_drafter(target, gpt2np.load_heads("tiny-target"), n),
    "recycling, tree": lambda target, n: s.RecyclingDrafter(target.n_vocab, shape(n), keep=True),
}


def measured(name):
    """Milliseconds of a round of this drafter, for each of SIZES."""
    target, tokenizer = gpt2np.load("tiny-target")
    prompt, times = tokenizer.encode("Once upon a time there was a king"), {n: [] for n in SIZES}
    samplers = {n: s.SpeculativeSampler(target, DRAFTERS[name](target, n), K=n, sampling=GREEDY) for n in SIZES}
    for _ in range(REPEATS):
        for n in SIZES:
            rounds = samplers[n].rounds(prompt, 400)
            next(rounds)  # with the prompt
            for _ in range(ROUNDS):
                started = perf_counter()
                if next(rounds, None) is None:
                    break
                times[n].append(1e3 * (perf_counter() - started))
    return [median(times[n]) for n in SIZES]


def row(name, blas_threads):
    """`measured` in a process with this many BLAS threads."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    environment |= {"OPENBLAS_NUM_THREADS": blas_threads} if blas_threads != "-" else {}
    command = [sys.executable, __file__, "--measure", name]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def main(part=""):
    print(f"{'':17}{'BLAS':>6}{'others':>8}{''.join(f'{n:>7}' for n in SIZES)}   largest step")
    for name in (name for name in DRAFTERS if part in name):
        for others in ("free", "busy"):
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])] if others == "busy" else []
            try:
                for blas_threads in ("1", "2", "-"):
                    times = row(name, blas_threads)
                    step = max(after / before for before, after in pairwise(times))
                    cells = "".join(f"{ms:>7.2f}" for ms in times)
                    print(f"{name:17}{blas_threads:>6}{others:>8}{cells}{step:>8.2f}", flush=True)
            finally:
                for process in busy:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        main(*sys.argv[1:])
