"""Rounding or a bug? How much a position's logits change with the number of positions computed together, and the first
token at which a greedy text with a draft differs from the one without.
"""

from dataclasses import asdict, replace

from speculative import AutoregressiveSampler, ModelDrafter, Sampling
from speculative.testing.widths import WIDTHS, Difference, first_difference, verdict, width_audit

from ..models import Models
from ..options import FILES, PAIR, PROMPTS, pick, whole
from ..page import table
from ..prompts import prompts_of
from ..settings import check_together, check_used

N_PLACES = 24
OPTIONS = pick(PAIR + "K n_tokens_to_generate " + PROMPTS + FILES, n_prompts=4)
OPTIONS["K"] = replace(OPTIONS["K"], read=whole(1))  # without its named values
EXAMPLES = ("", "--prompts known")


def run(options, report):
    n_tokens = options.n_tokens_to_generate
    if n_tokens < N_PLACES + max(WIDTHS):
        raise ValueError(f"--n_tokens_to_generate: expected {N_PLACES + max(WIDTHS)} or more, got {n_tokens}")
    check_used(options, [options.drafter])
    check_together(options)
    models = Models(options, report)
    (target, tokenizer), (_, draft, of_draft) = models.target(), models.draft(options)
    if (draft.n_vocab, of_draft.vocabulary) != (target.n_vocab, tokenizer.vocabulary):
        raise ValueError("widths needs a draft model with the target's vocabulary: choose two models of one family")
    prompts = [prompt.tokens for prompt in prompts_of(options, target, tokenizer)]
    alone = AutoregressiveSampler(target, sampling=Sampling(temperature=0)).generate(prompts[0], n_tokens)
    audit = width_audit(target, [*prompts[0], *alone.tokens.tolist()], n_places=N_PLACES)

    def difference(prompt):
        found = first_difference(target, ModelDrafter(draft), prompt, n_tokens, options.K)
        return found and asdict(found)

    report.expect(len(prompts))
    found = [report.keep(f"prompt {i}", lambda p=prompt: difference(p)) for i, prompt in enumerate(prompts, 1)]
    differences = {i: Difference(**one) for i, one in enumerate(found, 1) if one}
    sentence = verdict(audit, next(iter(differences.values()), None))
    cells = [
        {"rows together": str(w.m), "largest difference": f"{w.largest:.2g}",
         f"units of {audit.dtype}": f"{w.largest / audit.unit:,.3g}",
         "another most probable token": f"{w.flips} of {w.n_rows}"} for w in audit.widths
    ]  # fmt: skip
    page = f"""\
{options.target_model_size}, logits in {audit.dtype}: each row among m rows, against the same row alone

{table(cells)}

Greedy texts of {n_tokens} tokens with a draft, K = {options.K}: {found.count(None)} of {len(found)} equal.
{"".join(in_words(i, one, tokenizer) for i, one in differences.items())}{sentence}
"""
    report.finish({"widths": [asdict(w) for w in audit.widths], "differences": found, "verdict": sentence}, page)


def in_words(number, one, tokenizer):
    """The first position where two greedy texts differ, as a line."""
    a, b = (tokenizer.decode([token]) for token in (one.alone, one.drafted))
    place = f"prompt {number}, token {one.position + 1}: {a!r} without, {b!r} with"
    return f"{place}, {min(one.margins):.2g} apart; the row differs by {one.row:.2g}\n"
