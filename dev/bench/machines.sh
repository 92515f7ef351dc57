#!/usr/bin/env bash
# The measurements of a machine, into docs/raw/NAME.md: dev/bench/machines.sh NAME
#
# It times passes with each strategy and each number of threads, and texts with and without a draft, beside plain NumPy.
# The larger pair is made first, in models/grown. Run it while nothing else runs; it takes about ten minutes on two
# cores. Kernels that this processor cannot run are left out. Then add the page to RAW in dev/bench/summary.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE GPT2NP_MATMUL GPT2NP_THREADS OPENBLAS_NUM_THREADS
page=docs/raw/$1.md
[ -e models/grown/355M ] || python dev/train/grow_pair.py models/grown 355M 124M

kernels=
for name in SkylakeX Haswell; do
    if OPENBLAS_CORETYPE=$name python -c "import numpy; numpy.ones((99, 99)) @ numpy.ones((99, 99))"; then
        kernels=$kernels,$name
    fi
done
cores=$(python -c "from gpt2np.kernels.cores import useful_cores as n; print(*(c for c in (1, 2, 4, 8, 16) if c <= n()), sep=',')")
pair="--target_model_size models/grown/355M --draft_model_size models/grown/124M --n_prompts 8 --n_tokens_to_generate 32"

block() { printf '\n```\n$ %s\n```\n' "$1"; }
{
    printf '# Raw output: %s\n\n' "$1"
    printf 'The output of the commands for [measurements.md](../measurements.md), written by `dev/bench/machines.sh %s`. ' "$1"
    printf 'The speed\nof a machine changes: compare numbers within a block, not between blocks.\n\nMachine: not measured yet\n'
    block "python dev/bench/kernels.py ${kernels#,} $cores --sizes 355M --strategies panels,slabs,plain --repeats 5 --prompt_tokens 256"
    for name in ${kernels//,/ }; do
        set="OPENBLAS_CORETYPE=$name"
        block "$set GPT2NP_MATMUL=plain python main.py compare --drafter none --n_prompts 36"
        block "$set python main.py compare --K 1,2,3,4,6,8 --n_prompts 36"
        block "$set python main.py compare --drafter model,prompt_lookup,suffix,recycling,heads,eagle,parallel --n_prompts 36"
        block "$set GPT2NP_MATMUL=plain python main.py compare ${pair/--draft_model_size models\/grown\/124M/--drafter none}"
        block "$set python main.py compare $pair --drafter model,eagle --K 1,2,3"
    done
} > "$page"
python dev/bench/run_blocks.py "$page"
