"""Drafts with another tokenizer: tokens per call by the tokens that the two vocabularies share, for both ways to draft.

The drafts are n-grams, counted in the same text in each of the vocabularies, so that only the tokenizer differs;
and the draft model, for comparison.
"""

from pathlib import Path

import gpt2np
from gpt2np.tokenizer import END_OF_TEXT, byte_symbols, parse_merges
from speculative import ModelDrafter, NGramModel, SharedTokensModel, SpeculativeSampler, TextDrafter

from ..files import read_text
from ..inputs import draft_name, load, prompts_of, tales
from ..tables import Columns, described, where
from . import LISTS, SAMPLING, experiment, models_are_there, names, one_length, open_target, samplings, two_tokens

OTHER = Path(gpt2np.__file__).parent / "tiny" / "other_tokenizer.txt"
OWN = "target_model_size draft_model_size corpus n_max K temperatures n_tokens_to_generate n_prompts models_dir source"
N_SEEN = 20_000  # characters, in which the uses of tokens are counted


def measure(options, saved):
    context, about = open_target(options, saved)
    target, of_target = context.target, context.tokenizer
    text = read_text(options.corpus) if options.corpus else tales()[0]
    prompts, rows = prompts_of(options, of_target, target), []
    drafts = {name: ngrams(text, tokenizer, options.n_max) for name, tokenizer in vocabularies(of_target).items()}
    if name := draft_name(options):
        drafts[name] = load(name, options, saved)[:2]
    saved.expect(len(drafts) * len(options.listed("temperatures")) * 2)
    for name, (model, tokenizer) in drafts.items():
        shared = SharedTokensModel(model, of_target, tokenizer, target.n_vocab)
        through = TextDrafter(ModelDrafter(model), of_target, tokenizer, n_vocab=target.n_vocab, n_ctx=model.n_ctx)
        ways, calls = {"shared": ModelDrafter(shared), "text": through}, {}
        for temperature, sampling in samplings(options).items():
            for way, drafter in ways.items():
                sampler = SpeculativeSampler(target, drafter, K=options.K, sampling=sampling)
                calls[f"{temperature}, {way}"] = saved.keep(
                    f"{name}, {temperature}, {way}",
                    lambda sampler=sampler: tokens_per_call(
                        sampler, prompts, options.n_tokens_to_generate, options.seed
                    ),
                )
        used, ids = tokenizer.encode(text[:N_SEEN]), {*shared.shared[1].tolist()}
        rows.append({
            "draft": name, "n_vocab": tokenizer.n_vocab, "bytes": len(text[:N_SEEN].encode()) / len(used),
            "shared": len(ids), "of_uses": sum(token in ids for token in used) / len(used), "calls": calls,
        })  # fmt: skip
    return {**about, "n_prompts": len(prompts), "K": options.K, "n_max": options.n_max, "rows": rows}


def tokens_per_call(sampler, prompts, n_tokens, seed):
    stats = [sampler.generate(prompt, n_tokens, seed + i).stats for i, prompt in enumerate(prompts)]
    return sum(one.n_tokens for one in stats) / sum(one.target_calls for one in stats)


def vocabularies(tokenizer):
    """dict name -> Tokenizer: the target's, those of its first merges, of merges learned elsewhere, and of bytes."""
    merges, others = [*tokenizer.ranks], parse_merges(OTHER.read_text(encoding="utf-8"))
    return {
        "the target's": tokenizer,
        "its merges, a half": of_merges(merges[: len(merges) // 2]),
        "its merges, a quarter": of_merges(merges[: len(merges) // 4]),
        "other merges": of_merges(others),
        "other merges, a half": of_merges(others[: len(others) // 2]),
        "bytes": of_merges([]),
    }


def of_merges(merges):
    """The Tokenizer of the bytes, these merges and `<|endoftext|>`, with ids in this order."""
    symbols = [*byte_symbols().values(), *map("".join, merges), END_OF_TEXT]
    return gpt2np.Tokenizer({symbol: i for i, symbol in enumerate(symbols)}, merges)


def ngrams(text, tokenizer, n_max):
    return NGramModel.from_tokens(tokenizer.encode(text), tokenizer.n_vocab, n_max), tokenizer


def table(report):
    rows, columns = report["rows"], []
    for name in rows[0]["calls"]:
        temperature, way = name.split(", ")
        above = (temperature,) if way == "shared" else ()
        columns.append((way, ">13" if above else ">8", f"{{calls[{name}]:.2f}}", *above))
    page = Columns(
        ("draft", "<22", "{draft}"),
        ("tokens", ">7", "{n_vocab}"),
        ("bytes each", ">12", "{bytes:.2f}"),
        ("shared", ">8", "{shared}"),
        ("of its uses", ">13", "{of_uses:.0%}"),
        *columns,
    ).page(rows)
    texts = f"{report['n_prompts']} texts of {report['n_tokens']} tokens"
    return f"""target  {described(report["target"])}; K = {report["K"]}; {texts}
{where(report)}

{page}

The numbers below a temperature are tokens per call of the target: 1 without a draft, at most {report["K"] + 1}.

draft        n-grams up to {report["n_max"]} tokens, counted in one text with each vocabulary; last, the draft model
other merges {OTHER.name}, learned from program code and its documentation, which write other words
shared       the tokens whose bytes both vocabularies have, and their share of the draft's tokens in its text;
             as a way to draft: the draft's distribution over these, renormalised
text         through the text: the draft's greedy text is encoded with the target's tokenizer
"""


COMMAND = experiment(
    "tokenizer_table",
    "drafts with another tokenizer: tokens per call by the tokens that the vocabularies share, for both ways to draft",
    measure,
    table,
    options=LISTS | SAMPLING | names(OWN) | {"json"},
    defaults={"n_tokens_to_generate": 48, "n_prompts": 4, "K": 4, "temperatures": "0,0.8"},
    checks=(models_are_there, one_length, two_tokens),
    example="--draft_model_size FOLDER --temperatures 0,1",
)
