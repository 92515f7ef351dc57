#!/usr/bin/env bash
# The measurements of a machine, into docs/raw/NAME.md: dev/bench/machines.sh NAME KERNELS
#
# It times passes with each strategy and each number of threads; the same texts by plain NumPy, this library,
# transformers and llama.cpp, with and without a draft; and drafters and draft lengths on more prompts. KERNELS are those
# of OpenBLAS: SkylakeX (AVX-512) or Haswell (AVX2). The larger pair and the GGUF files are made first.
# Run it while nothing else runs; it takes twenty to forty minutes on two cores. It needs the extras `peers`, and
# pip install xllamacpp gguf. Then add the page to RAW in dev/bench/summary.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE GPT2NP_MATMUL GPT2NP_THREADS OPENBLAS_NUM_THREADS
page=docs/raw/$1.md large=models/grown/355M small=models/grown/124M
[ -e $large ] || python dev/train/grow_pair.py models/grown 355M 124M
[ -e models/gguf/355M.gguf ] || python dev/bench/make_gguf.py models/gguf
[ -e models/gguf/355M.gguf ] || python dev/bench/make_gguf.py models/gguf $large $small

with="OPENBLAS_CORETYPE=$2"
cores=$(python -c "from gpt2np.kernels.cores import useful_cores as n; print(*(c for c in (1, 2, 4, 8, 16) if c <= n()), sep=',')")
pair="--target_model_size $large --draft_model_size $small --n_prompts 8 --n_tokens_to_generate 32"

block() { printf '\n```\n$ %s\n```\n' "$1"; }
{
    printf '# Raw output: %s\n\n' "$1"
    printf 'The output of the commands for [measurements.md](../measurements.md), written by `dev/bench/machines.sh %s`. ' "$*"
    printf 'The speed\nof a machine changes: compare numbers within a block, not between blocks.\n\nMachine: not measured yet\n'
    block "python dev/bench/kernels.py $2 $cores --sizes 355M --strategies panels,slabs,plain --repeats 5 --prompt_tokens 256"
    block "$with python dev/bench/compare_engines.py speed models/gguf tiny-target tiny-draft 120 3 3"
    block "$with python dev/bench/compare_engines.py speed models/gguf $large $small 24 3 2"
    block "$with python main.py compare --K 1,2,3,4,6,8 --n_prompts 36"
    block "$with python main.py compare --drafter none,model,prompt_lookup,recycling,heads,eagle,parallel --n_prompts 36"
    block "$with python main.py compare $pair --drafter model,eagle --K 1,2,3"
    block "$with python main.py compare --drafter model,prompt_lookup --verifier rejection,block,typical --temperature 0.5 --prompts tales,repeating --n_prompts 7 --n_tokens_to_generate 48"
    block "$with python main.py compare --drafter model,recycling,heads --tree 0,3,7,15 --K 4"
    block "$with python main.py compare --n_lanes 1,2,4,8,16,32 --n_prompts 32"
    block "$with python main.py --K auto"
    block "$with python main.py --K auto --target_model_size $large --draft_model_size $small --n_tokens_to_generate 32"
} > "$page"
python dev/bench/run_blocks.py "$page"
