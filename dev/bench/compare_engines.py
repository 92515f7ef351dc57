"""The same pair in three engines (this library, transformers and llama.cpp):

    python dev/bench/compare_engines.py acceptance [GGUF]
        how much each rule accepts, at temperature 1; nothing is timed
    python dev/bench/compare_engines.py speed GGUF [TARGET DRAFT [N_TOKENS REPEATS [K]]]
        the times of the same greedy texts; the engines take turns

GGUF is the folder of dev/bench/make_gguf.py; TARGET and DRAFT are tiny-target and tiny-draft, or other folders with a
GPT-2, whose GGUF files have their names. Needs `pip install xllamacpp`, a llama.cpp server in a wheel; speed also needs
torch and transformers. If llama-cpp-python is installed, it is compared as well; this builds it for the machine's
processor, which takes about twenty minutes:

    CMAKE_ARGS="-DGGML_NATIVE=ON" pip install --no-binary llama-cpp-python llama-cpp-python

Every engine has as many threads as the process may use cores; on Linux `taskset -c 0` gives it one.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import gpt2np
from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler, exact_match, rejection

K, N_TOKENS = 3, 120
N_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
TALES = Path(gpt2np.__file__).parent / "tiny" / "held_out.txt"


def prompts(tokenizer, n, length=32):
    """Prefixes of tales that neither bundled model was trained on."""
    tokens = tokenizer.encode(TALES.read_text(encoding="utf-8")[-60_000:])
    return [tokens[i * len(tokens) // n :][:length] for i in range(n)]


class LlamaCpp:
    """llama.cpp's server, in this process.

    Parameters
    ----------
    target, draft : Path
        GGUF files; None for `draft` means that there is no draft model.
    K : int
        The draft length.
    probabilistic : bool
        --spec-draft-sampling probabilistic: samples the draft tokens, and verifies by rejection sampling.
    """

    def __init__(self, target, draft=None, probabilistic=False, K=K):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path, params.n_parallel, params.n_ctx, params.verbosity = str(target), 1, 512, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = N_CORES
        if draft:
            model = params.speculative.draft
            model.mparams.path, model.n_max, model.probabilistic = str(draft), K, probabilistic
            model.cpuparams.n_threads = model.cpuparams_batch.n_threads = N_CORES
            params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        self.server = xllamacpp.Server(params)

    def __call__(self, prompt, n_tokens=N_TOKENS, temperature=0, seed=0):
        """(text, n_accepted, n_drafted)."""
        answer = self.server.handle_completions({
            "prompt": prompt, "max_tokens": n_tokens, "temperature": temperature, "samplers": ["temperature"],
            "seed": seed, "cache_prompt": False, "ignore_eos": True,
        })  # fmt: skip
        if "choices" not in answer:
            raise SystemExit(f"llama.cpp: {answer}")
        timings = answer["timings"]
        return answer["choices"][0]["text"], timings.get("draft_n_accepted", 0), timings.get("draft_n", 0)


# ------------------------------------------------------------------------------------------------ acceptance


def acceptance(gguf=None):
    """A line for each rule: accepted over drafted tokens, and tokens per call of the target."""
    target, tokenizer = gpt2np.load("tiny-target")
    draft, texts = gpt2np.load("tiny-draft")[0], prompts(tokenizer, 12)
    print(f"tiny-target with tiny-draft, temperature 1, K = {K}, {len(texts)} prompts, {N_TOKENS} tokens each\n")
    print(f"{'rule':48}{'accepted / drafted':>20}{'tokens per call':>17}")
    rules = {
        "rejection, draft drawn at temperature 1": (rejection, 1),
        "exact_match, greedy draft": (exact_match, 0),
        "rejection, greedy draft": (rejection, 0),
        "exact_match, draft drawn at temperature 1": (exact_match, 1),
    }
    for name, (verifier, temperature) in rules.items():
        drafter = ModelDrafter(draft, sampling=Sampling(temperature))
        sampler = SpeculativeSampler(target, drafter, verifier=verifier, K=K)
        stats = [sampler.generate(prompt, N_TOKENS, seed).stats for seed, prompt in enumerate(texts)]
        report(name, sum(s.accepted for s in stats), sum(s.drafted for s in stats), sum(s.target_calls for s in stats))
    for sampling in ("greedy", "probabilistic") if gguf else ():
        files = (Path(gguf) / f"tiny-{role}.gguf" for role in ("target", "draft"))
        engine = LlamaCpp(*files, probabilistic=sampling == "probabilistic")
        counts = [engine(prompt, temperature=1, seed=seed)[1:] for seed, prompt in enumerate(texts)]
        report(f"llama.cpp, --spec-draft-sampling {sampling}", *map(sum, zip(*counts)))


def report(name, accepted, drafted, calls=None):
    per_call = f"{12 * N_TOKENS / calls:17.2f}" if calls else ""
    print(f"{name:48}{accepted:6} / {drafted:<6}{accepted / drafted:5.3f}{per_call}")


# ------------------------------------------------------------------------------------------------ speed


def speed(gguf, target="tiny-target", draft="tiny-draft", n_tokens=N_TOKENS, repeats=3, K=K):
    """Milliseconds per token of each way to the same greedy text; the ways take turns.

    A speedup is over the same engine alone; gpt2np's over the faster of itself and plain NumPy. Prefill is included.
    """
    files = [Path(gguf) / f"{Path(name).name}.gguf" for name in (target, draft)]
    if missing := [str(file) for file in files if not file.exists()]:
        raise SystemExit(f"{missing[0]} is missing: for the bundled pair, run dev/bench/make_gguf.py {gguf}")

    import torch
    import transformers
    import xllamacpp

    from gpt2np.files.loading import find_folder
    from speculative.models import TransformersModel

    n_tokens, repeats, K, greedy = int(n_tokens), int(repeats), int(K), Sampling(0)
    (ours, tokenizer), (our_draft, _) = gpt2np.load(target), gpt2np.load(draft)
    torch.set_num_threads(N_CORES)
    theirs, assistant = (
        transformers.GPT2LMHeadModel.from_pretrained(find_folder(name, None), dtype=torch.float32).eval()
        for name in (target, draft)
    )
    config = assistant.generation_config
    config.num_assistant_tokens, config.num_assistant_tokens_schedule = K, "constant"
    config.assistant_confidence_threshold = 0
    adapted = TransformersModel(theirs), TransformersModel(assistant)

    def here(target, draft=None):
        sampler = AutoregressiveSampler(target, sampling=greedy)
        if draft:
            sampler = SpeculativeSampler(target, ModelDrafter(draft, sampling=greedy), K=K, sampling=greedy)
        return lambda prompt: tokenizer.decode(sampler.generate(prompt, n_tokens).tokens.tolist())

    def generate(prompt, **options):
        ids = torch.tensor([prompt])
        tokens = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=n_tokens, pad_token_id=0,
            eos_token_id=None, **options,
        )  # fmt: skip
        return tokenizer.decode(tokens[0, len(prompt) :].tolist())

    def llama_cpp(*files):
        engine = LlamaCpp(*files, K=K)
        return lambda prompt: engine(prompt, n_tokens)[0]

    ways = {
        "gpt2np, alone": here(ours),
        "plain NumPy, alone": here(gpt2np.GPT2(ours.params, ours.hparams, strategy="plain")),
        "gpt2np, with the draft": here(ours, our_draft),
        "transformers, alone": generate,
        "transformers, assisted": lambda prompt: generate(prompt, assistant_model=assistant),
        "our loop over transformers, alone": here(adapted[0]),
        "our loop over transformers, with the draft": here(*adapted),
        "llama.cpp, alone": llama_cpp(files[0]),
        "llama.cpp, with the draft": llama_cpp(*files),
    }
    system_info = {"llama.cpp": xllamacpp.get_system_info()}
    if find_spec("llama_cpp"):
        import llama_cpp

        from speculative.models import LlamaCppModel

        other = [LlamaCppModel(file, n_ctx=512, n_threads=N_CORES, n_threads_batch=N_CORES) for file in files]
        ways |= {
            "our loop over llama-cpp-python, alone": here(other[0]),
            "our loop over llama-cpp-python, with the draft": here(*other),
        }
        system_info["llama-cpp-python"] = llama_cpp.llama_print_system_info().decode()
    times, same = {name: [] for name in ways}, dict.fromkeys(ways, 0)
    texts = prompts(tokenizer, 3)
    for i, prompt in enumerate([texts[0], *texts * repeats]):  # the first is to warm up
        outputs = {}
        for name, way in ways.items():
            started = perf_counter()
            outputs[name] = way(prompt)
            times[name] += [1000 * (perf_counter() - started) / n_tokens] * (i > 0)
            same[name] += (outputs[name] == outputs["gpt2np, alone"]) * (i > 0)
    print(f"{target} with {draft}, greedy, K = {K}, {n_tokens} tokens, cores: {N_CORES}\n")
    print(f"{'':48}{'ms per token':>13}{'least':>8}{'speedup':>9}   same text")
    for name, ms in times.items():
        engine = name.rpartition(",")[0]
        bases = [engine, *["plain NumPy"] * (engine == "gpt2np")]
        alone = min(median(times[f"{base}, alone"]) for base in bases)
        print(f"{name:48}{median(ms):13.2f}{min(ms):8.2f}{alone / median(ms):9.2f}", end="")
        print(f"   {same[name]} of {len(ms)}")
    print("\nllama.cpp: float32 weights")
    for build, told in system_info.items():
        print(f"{build}: {told.strip().strip('|').strip()}")


if __name__ == "__main__":
    commands = {"acceptance": acceptance, "speed": speed}
    if len(sys.argv) < 2 or sys.argv[1] not in commands or sys.argv[1:] == ["speed"]:
        raise SystemExit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
