"""From settings to experiments: one for all settings with the same text of the target, on the same prompts."""

from speculative.measuring.experiment import N_TOGETHER, Experiment
from speculative.measuring.rows import Result, gap_between
from speculative.measuring.table import OF_THE_TEXT

from .drafters import LENGTHS, kind_of, rule_of
from .models import Models
from .prompts import prompts_of
from .samplers import Entrant, with_draft


class Group:
    """Settings with the same text of the target: an `Experiment`, what is said of each setting, and its `Result`.

    The journal has a part for the group, with its prompts and the costs that were measured for --K auto, and one for
    each turn of the samplers; those that are there are not measured again.
    """

    def __init__(self, name, settings, models, journal, problems, **how):
        first, self.entrants, self.abouts = settings[0][0], {}, {}
        self.journal, self.name, self.prompts = journal, name, prompts_of(first, *models.target())
        tokens, n_lanes = [prompt.tokens for prompt in self.prompts], first.n_lanes
        costs = journal.parts.get(name, {}).get("costs", [])
        for one, label in settings:
            i = len(self.entrants)
            try:
                if n_lanes > len(tokens):
                    raise ValueError(f"--n_lanes {n_lanes} needs as many prompts: give --n_prompts {n_lanes}")
                if n_lanes and one.engine != "numpy":
                    raise ValueError(f"--n_lanes: --engine {one.engine} runs one text at a time")
                self.entrants[i], about = with_draft(one, models, tokens[0], costs[i] if costs else None)
                self.abouts[i] = {"setting": label, **about}
            except ValueError as error:
                problems.setdefault(str(error), label)
        samplers = {"alone": Entrant(first, models, drafts=False), **self.entrants}
        how |= {"caches": models.all(), "n_lanes": n_lanes, "name": f"{name}, "}
        self.experiment = Experiment(samplers, tokens, first.n_tokens_to_generate, first.seed, **how)

    def __len__(self):
        """The number of parts."""
        return 1 + (N_TOGETHER if self.experiment.n_lanes else len(self.prompts))

    def results(self, watch=None):
        """A list of `Result`, one for each setting that works."""
        if not self.entrants:
            return []
        about = {
            "target": self.experiment.samplers["alone"].options.target_model_size,
            "prompts": [[prompt.question_id, prompt.category, prompt.text] for prompt in self.prompts],
            "settings": [each["setting"] for each in self.abouts.values()],
            "costs": [each["costs"] for each in self.abouts.values()],
        }
        told = self.journal.keep(self.name, lambda: about)
        runs = self.experiment.run(self.journal.keep, watch)
        return [self.result(i, told, runs) for i in self.entrants]

    def result(self, i, told, runs):
        entrant, together = self.entrants[i], self.experiment.n_lanes > 0
        options, rule = entrant.options, rule_of(entrant.options)
        is_chain = not (options.K in LENGTHS or options.tree or kind_of(options).branches or together)
        return Result(
            self.abouts[i], rule.exactness, options.temperature == 0 or rule.one_text, options.K if is_chain else None,
            options.n_tokens_to_generate, told["prompts"], runs["alone"], runs[i], entrant.decode,
            gap_of(entrant, self.experiment.prompts, runs["alone"], runs[i]), together,
        )  # fmt: skip


def groups_of(settings, journal, problems, **how):
    """Yield a `Group` for each text of the target. Settings that turn out not to work are added to the problems.

    Those with one target follow each other, and its models are loaded once. `how` may have laps and patience.
    """
    groups, models = {}, None
    for one, label in settings:
        decides = [rule_of(one).one_text, *(getattr(one, name) for name in sorted(OF_THE_TEXT))]
        groups.setdefault(str(decides), []).append((one, label))
    for number, group in enumerate(sorted(groups.values(), key=lambda group: group[0][0].target_model_size), 1):
        if not models or models.options.target_model_size != group[0][0].target_model_size:
            models = Models(group[0][0])  # the models of the previous target are freed
        yield Group(f"group {number}", group, models, journal, problems, **how)


def gap_of(entrant, prompts, alone, runs):
    """The largest `gap_between` of the greedy texts of another engine that are not the target's own; else None."""
    if entrant.options.engine == "numpy" or entrant.options.temperature > 0:
        return None
    gaps = []
    for prompt, ordinary, other in zip(prompts, alone, runs):
        sampler = entrant.sampler(len(prompt))
        gaps.append(gap_between(ordinary.tokens, other.tokens, prompt, sampler.target, sampler.sampling))
    return max((gap for gap in gaps if gap is not None), default=None)
