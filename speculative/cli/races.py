"""The races of a comparison: the target alone and all settings with the same text of it take turns on each prompt."""

from functools import partial

from speculative.measuring.rows import Raced
from speculative.measuring.runs import N_LAPS, race, race_together, under
from speculative.measuring.table import OF_THE_TEXT
from speculative.measuring.twice import gap_between

from .drafters import LENGTHS, kind_of, rule_of
from .journal import load_average
from .models import Models
from .prompts import prompts_of
from .settings import alone, with_draft


def races_of(settings, journal, problems):
    """A list of `Raced`, in the order of the settings; those that do not work are added to the problems."""
    groups, raced, models = {}, [], None
    for one, label in settings:
        decides = [rule_of(one).one_text, *(getattr(one, name) for name in sorted(OF_THE_TEXT))]
        groups.setdefault(str(decides), []).append((one, label))
    by_target = sorted(groups.values(), key=lambda group: group[0][0].target_model_size)
    for number, group in enumerate(by_target, 1):
        first = group[0][0]
        if not models or models.options.target_model_size != first.target_model_size:
            models = Models(first)  # the models of the previous target are freed
        prompts = prompts_of(first, *models.target())
        n_parts = sum(N_LAPS if some[0][0].n_lanes else len(prompts) for some in groups.values())
        journal.expect(n_parts)
        raced += race_of(f"group {number}", group, prompts, models, journal, problems)
    labels = [label for _, label in settings]
    return sorted(raced, key=lambda each: labels.index(each.about["setting"]))


def race_of(name, settings, prompts, models, journal, problems):
    """The `Raced` of a group of settings, read from the journal as far as it is there."""
    first, entrants, abouts = settings[0][0], {}, {}
    tokens, keep = [prompt.tokens for prompt in prompts], under(name, journal.keep)
    for i, (one, label) in enumerate(settings, 1):
        try:
            entrants[i], about = with_draft(one, models, tokens[0], under(f"setting {i}", keep))
            abouts[i] = {"setting": label, **about}
        except ValueError as error:
            problems.setdefault(str(error), label)
    if first.n_lanes > len(prompts):
        entrants = {}
        problems.setdefault(f"--n_lanes {first.n_lanes} needs as many prompts: give --n_prompts {first.n_lanes}", label)
    if not entrants:
        return []
    told = {
        "target": first.target_model_size,
        "prompts": [[prompt.question_id, prompt.category, prompt.text] for prompt in prompts],
        "settings": [about["setting"] for about in abouts.values()],
    }
    journal.keep(name, lambda: told)
    runs = runs_of({"alone": alone(first, models), **entrants}, first, tokens, models, under(name, timed(journal)))
    return [
        Raced(
            abouts[i], rule_of(entrant.options).exactness,
            is_one_text=entrant.options.temperature == 0 or rule_of(entrant.options).one_text,
            K=length_of_chains(entrant.options), n_tokens=first.n_tokens_to_generate, prompts=told["prompts"],
            alone=runs["alone"], runs=runs[i],
            decode=entrant.tokenizer.decode, is_together=first.n_lanes > 0,
            gaps=gaps_of(entrant, tokens, runs["alone"], runs[i], under(f"setting {i}", keep)),
        )
        for i, entrant in entrants.items()
    ]  # fmt: skip


def timed(journal):
    """A `keep` that records the load of the machine with each part."""

    def keep(name, measure):
        return journal.keep(name, lambda: {"load": load_average(), "runs": measure()})["runs"]

    return keep


def runs_of(entrants, options, tokens, models, keep):
    """dict name -> list of Run: one for each prompt, or with --n_lanes one for each lap over all of them."""
    n_tokens, seed, n_lanes = options.n_tokens_to_generate, options.seed, options.n_lanes
    if not n_lanes:
        return race(entrants, tokens, n_tokens, seed=seed, caches=models.all(), keep=keep)
    seeds = [seed + i for i in range(len(tokens))]
    each = {name: partial(entrants[name].as_they_end, tokens, n_tokens, seeds, n_lanes) for name in entrants}
    return race_together(each, len(tokens), keep=keep)


def gaps_of(entrant, prompts, alone, runs, keep):
    """The result of `gap_between` for each greedy text of another engine that is not the target's own."""
    if entrant.options.engine == "numpy" or entrant.options.temperature > 0:
        return []

    def gap(prompt, ordinary, other):
        sampler = entrant.sampler(len(prompt))
        return {"gap": gap_between(ordinary, other, prompt, sampler.target, sampler.sampling)}

    texts = enumerate(zip(prompts, alone, runs), 1)
    return [
        keep(f"gap {i}", partial(gap, prompt, one.tokens, other.tokens))["gap"]
        for i, (prompt, one, other) in texts
        if one.tokens != other.tokens
    ]


def length_of_chains(options):
    """The length of each draft, if the drafts are chains of one length; otherwise None."""
    is_chain = not (options.K in LENGTHS or options.tree or options.n_lanes or kind_of(options).branches)
    return options.K if is_chain else None
