"""A user's file: the public face in its documented uses, for test_types.py. It is read by pyright and never runs."""
# ruff: noqa: F403, F405
# pyright: reportWildcardImportFromLibrary=false

import numpy as np

import gpt2np
import speculative
from speculative import *
from speculative.testing import *

target: gpt2np.GPT2
tokenizer: gpt2np.Tokenizer
try:
    target, tokenizer = gpt2np.load("tiny-target")
except (gpt2np.CheckpointError, gpt2np.DownloadError) as error:
    raise SystemExit(str(error)) from None
draft_model, _ = gpt2np.load("tiny-draft")
gpt2np.save(target, tokenizer, "a_new_folder")
tokens: list[int] = tokenizer.encode("Once upon a time")
logits = target(tokens, n_last=2)
logits = target(np.array(tokens), 3, parents=[-1, 0])
hidden, sizes = target.states(tokens), (target.n_vocab + target.n_ctx)
target.reset()
hparams: gpt2np.HParams = target.hparams
print(gpt2np.forward(tokens, target.params, hparams.n_head, n_last=1).shape, hparams.d_head)
lanes = target.lanes(2)
text: str = tokenizer.decode([logits[0].argmax()]) + tokenizer.decode(np.array([1, 2]))
stream = gpt2np.StreamDecoder(tokenizer)
print("".join(stream.push(token) for token in tokens) + stream.flush())

# the protocols
model: LanguageModel = target
model = TableModel.random(3)
model = NGramModel.from_tokens(tokens, n_vocab=target.n_vocab, n=2)
model = ByPaths(model)
model = gpt2np.EarlyExit(target, 2)
source: RandomSource = np.random.default_rng(0)
source = Gumbel(1)
rules: list[Verifier] = [rejection, block, traversal, exact_match, Typical(), Lenient(0.9)]
eagle: gpt2np.EagleBlock = gpt2np.load_eagle("tiny-target")
parallel: gpt2np.ParallelBlock = gpt2np.load_parallel("tiny-target")
in_one_pass: gpt2np.ParallelEagle = parallel.on(target)
heads: gpt2np.Heads = gpt2np.load_heads("tiny-target")
model = gpt2np.Eagle(target, eagle).draft_model(len(tokens))
drafters: list[Drafter] = [
    ModelDrafter(draft_model),
    ModelDrafter(TableModel([[0.5, 0.5], [0.25, 0.75]]), sampling=Sampling(0), threshold=0.3),
    NGramDrafter(NGramModel.from_tokens(tokens, target.n_vocab)),
    PromptLookupDrafter(target.n_vocab, 3),
    EarlyExitDrafter(gpt2np.EarlyExit(target, 2)),
    RecyclingDrafter(target.n_vocab, Shape.widths(2, 1)),
    HeadsDrafter(target, heads, Shape.best(7, np.ones((2, 3)))),
    EagleDrafter(target, eagle, Grown(8), siblings="top"),
    ParallelDrafter(target, parallel),
    TreeDrafter(draft_model, Shape.best(4, [0.6, 0.3])),
    ForcedDrafter(tokenizer.encode, target.n_vocab),
    TextDrafter(ModelDrafter(draft_model), tokenizer, tokenizer),
    ModelDrafter(SharedTokensModel(draft_model, tokenizer, tokenizer)),
]
for siblings in ("without", "drawn", "top"):
    drafters.append(TreeDrafter(ByPaths(TableModel.random(3)), Shape.chain(2), siblings=siblings))
print(PromptLookupDrafter(target.n_vocab).propose(tokens, 4, rng=None).tokens)

# samplers
sampler: Sampler = SpeculativeSampler(target, drafters[0], K=heuristic, verifier=block)
sampler = AutoregressiveSampler(target, sampling=Sampling(temperature=0.7, top_p=0.9))
fast = SpeculativeSampler(target, ModelDrafter(draft_model), K=4)
costs: Costs = measure_costs(target, ModelDrafter(draft_model), tokens, most=4)
fast = SpeculativeSampler(target, ModelDrafter(draft_model), K=CostModel(costs.c, costs.v))
penalties = [PresencePenalty(0.5, 3), FrequencyPenalty(0.5, n_prompt=3), NoRepeatNGram(3), MinTokens(2, 0, 3)]
grammar = Grammar("a|b", tokenizer.token_bytes, 0, n_prompt=1)
fast = SpeculativeSampler(target, ModelDrafter(draft_model), sampling=Sampling(0.7, 40, processors=penalties))
fast = SpeculativeSampler(target, ModelDrafter(draft_model), K=lambda rounds: 3 if len(rounds) > 2 else 1)
generation = fast.generate(tokens, 10, rng=0, stop_tokens={0}, stop=StopText("x", tokenizer.decode), keep_probs=True)
generation = fast.generate(generation.tokens, 3, np.random.default_rng(0), stop=lambda new: len(new) > 2)
generation = SpeculativeSampler(target, drafters[0], verifier=exact_match).generate(tokens, 3, Gumbel(1))
stats: Stats = generation.stats
print(stats.acceptance, stats.tokens_per_target_call, stats.seconds["draft"], stats.accepted_by_position[0])
for step in fast.rounds(tokens, 5, rng=np.random.default_rng(0)):
    print([residual(p, q).sum() for p, q in zip(step.target_probs, step.draft_probs)])
    print(step.n_accepted + 1, step.draft.parents[:1], step.tokens.tolist(), step.origins)
first: Round = next(fast.rounds(tokens, 5))
whole: Generation = collect(tokens, generation.rounds)
together = generate_together(AutoregressiveSampler, [target], [tokens, tokens], 4, rngs=[0, 1])
together = generate_together(
    lambda target, draft: SpeculativeSampler(target, ModelDrafter(draft)),
    [target, draft_model],
    [tokens, np.array(tokens)],
    [4, 5],
    [0, np.random.default_rng(1)],
    n_lanes=2,
    stop_tokens={0},
)
print([text.tokens.tolist() for text in together])


# a sampling, a verifier, a drafter and a model of one's own
def sampling(logits: np.ndarray, tokens: list[int]) -> np.ndarray:
    return Sampling(0.5)(logits)


def processor(logits, tokens):
    return logits - 1.0 * (len(tokens) > 3)


def bonus_only(draft: Draft, target_probs: np.ndarray, rng: np.random.Generator) -> Verdict:
    return Verdict(0, rng.choice(3, p=target_probs[0]))


def short_names(d, p, rng):
    accepted = [0] if rng.random() < p[0, d.tokens[0]] else []
    return Verdict(accepted, np.argmax(p[len(accepted)]))


class Strict:
    """A verifier."""

    exactness = "LOSSY"

    def __call__(self, draft: Draft, target_probs: np.ndarray, rng: RandomSource) -> Verdict:
        return Verdict(0, sample_token(target_probs[0], rng))


class Repeats:
    """A drafter."""

    def __init__(self, n_vocab: int):
        self.n_vocab = n_vocab

    def observe(self, tokens, logits, parents):
        self.last = tokens[-1]

    def propose(self, tokens: list[int], K: int, rng: np.random.Generator) -> Draft:
        return Draft(np.array(tokens[-1:] * K), np.eye(self.n_vocab)[tokens[-1:] * K])


class Untyped:
    """A drafter whose author writes no types."""

    def propose(self, ids, k, rng):
        return Draft(np.array([rng.integers(3)]), np.ones((1, 3)) / 3, parents=np.array([-1]))


class Constant:
    """A model."""

    n_vocab, n_ctx = 3, 64

    def __call__(self, tokens: list[int], n_last: int = 1) -> np.ndarray:
        return np.zeros((n_last, 3), np.float32)


class Tree:
    def __init__(self):
        self.n_vocab = 3
        self.n_ctx = 64

    def __call__(self, ids, n_last=1, parents=()):
        return np.zeros((n_last, 3), np.float32)


mine = SpeculativeSampler(Constant(), Repeats(3), verifier=Strict(), sampling=sampling)
mine = SpeculativeSampler(Tree(), Untyped(), verifier=short_names, sampling=Sampling(processors=[processor]))
mine = SpeculativeSampler(Tree(), Repeats(3), K=1, verifier=bonus_only)
mine = SpeculativeSampler(Tree(), TreeDrafter(Tree(), Shape.widths(2)), verifier=traversal)

# exact distributions, and the graders
found = exact_distribution(lambda rng: rng.random() < 0.5, max_leaves=10)
found = exact_distribution(lambda rng: mine.generate([0], 2, rng).tokens)
exact = TableModel.random(3).distribution([0], 2, Sampling(0.5))
print(total_variation(found, exact), found[0, 1], exact[0, 1], acceptance_probability([0.5, 0.5], [0.25, 0.75], 1))
try:
    exact_distribution(lambda rng: rng.normal())
except CannotEnumerate as error:
    print(error)
print(check_verifier(bonus_only), check_verifier(Strict(), trees=False), check_verifier(short_names, seed=1))
print(check_drafter(Repeats(3), n_vocab=3), check_drafter(Untyped()), check_language_model(Constant()))
check_sampler(SpeculativeSampler)
check_sampler(lambda target, drafter, K, sampling: SpeculativeSampler(target, drafter, K=K, sampling=sampling))


def decode(target_probs, draft_probs, draft_tokens, rng):
    return [*draft_tokens, rng.choice(len(target_probs[0]), p=target_probs[-1])]


def serve(target, drafter, prompts, n_tokens, rng, K):
    return [[0] * n for n in n_tokens]


check_function(decode, "target, draft, tokens, rng -> tokens", array=np.array)
check_batch(serve, seed=1)
print(audit_loop(lambda prompt, n_tokens: [0] * n_tokens, Constant(), n_tokens=1).verdict)
print(audit_samples(lambda n: [[0, 1]] * n, 2, rows={(): {0: 0.5, 1: 0.5}}, n_max=64).differs)
print(gpt2np.__version__, speculative.__version__)
