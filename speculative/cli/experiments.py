"""From settings to experiments: one for all settings with the same text of the target, on the same prompts."""

from speculative.measuring.experiment import Experiment
from speculative.measuring.rows import Result, gap_between
from speculative.measuring.table import OF_THE_TEXT, in_words

from .drafters import rule_of
from .models import Models
from .prompts import prompts_of
from .samplers import Entrant


def experiments_of(settings, problems, **how):
    """Yield an `Experiment` for each text of the target; `how` may have laps and patience.

    A setting that turns out not to work is added to the problems. Experiments with one target follow each other, and
    its models are loaded once.
    """
    groups, models = {}, None
    for options, label in settings:
        decides = [rule_of(options).one_text, *(getattr(options, name) for name in sorted(OF_THE_TEXT))]
        groups.setdefault(str(decides), []).append((options, label))
    for number, group in enumerate(sorted(groups.values(), key=lambda group: group[0][0].target_model_size), 1):
        first, n_lanes = group[0][0], group[0][0].n_lanes
        if not models or models.options.target_model_size != first.target_model_size:
            models = Models(first)  # the models of the previous target are freed
        prompts, samplers = prompts_of(first, *models.target()), {}
        for options, label in group:
            try:
                if n_lanes > len(prompts):
                    raise ValueError(f"--n_lanes {n_lanes} needs as many prompts: give --n_prompts {n_lanes}")
                entrant = Entrant(options, models, label, n_prompt=len(prompts[0].tokens))
                samplers[name_of(label)] = entrant
            except ValueError as error:
                problems.setdefault(str(error), label)
        if samplers:
            samplers = {"alone": Entrant(first, models, drafts=False), **samplers}
            how |= {"caches": models.all(), "n_lanes": n_lanes, "name": f"group {number}"}
            yield Experiment(samplers, prompts, first.n_tokens_to_generate, first.seed, **how)


def name_of(label):
    """The name of a setting in an experiment, and so in a journal."""
    return in_words(label) or "with the draft"


def results_of(experiment, runs):
    """A list of `Result`, one for each setting, from what `Experiment.run` returns."""
    (_, alone), *others = runs.items()
    return [result_of(experiment, experiment.samplers[name], alone, of_setting) for name, of_setting in others]


def result_of(experiment, entrant, alone, runs):
    """Of another engine, the largest `gap_between` two greedy texts is added."""
    gaps, is_together = [], experiment.n_lanes > 0
    if entrant.options.engine != "numpy" and entrant.options.temperature == 0:
        for prompt, ordinary, other in zip(experiment.prompts, alone, runs):
            sampler = entrant.sampler(len(prompt.tokens))
            gaps.append(gap_between(ordinary.tokens, other.tokens, prompt.tokens, sampler.target, sampler.sampling))
    return Result(
        entrant.about, entrant.rule.exactness, entrant.is_one_text, None if is_together else entrant.chain_length,
        experiment.n_tokens, experiment.prompts, alone, runs, entrant.decode, max(filter(None, gaps), default=None),
        is_together,
    )  # fmt: skip
