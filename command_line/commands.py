"""The experiments as commands: options, the file that keeps the parts, the page, the plot.

Next: experiments.py
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from . import tables
from .experiments import alpha_table, calibrate, compare_sizes, drafters, gamma_table, method_table, prompts
from .plan import Plan
from .request import as_text, read
from .saved import Saved, settings_of
from .views import show


@dataclass(frozen=True)
class Experiment:
    """A command: what it measures (request, parts) -> report, and how it is shown."""

    measure: Callable
    page: Callable
    options: set
    defaults: dict = field(default_factory=dict)

    def run(self, words, options):
        name = self.measure.__name__
        request = read(words, options, self.options, Plan, **self.defaults)
        parts = Saved(request.json, name, settings_of(request, self.options))
        try:
            report = parts.finish(self.measure(request, parts))
        except KeyboardInterrupt:
            parts.bar.close()
            if not parts.path:
                raise
            raise KeyboardInterrupt(f"the same command goes on from {parts.path}") from None
        show(report, self.page, request.json is True)
        if request.log:
            tables.write_log(report, request.log)
        if request.plot:
            from . import plots

            plots.draw(report, request.plot)

    def command(self):
        """The function that fire calls."""
        return as_text(lambda *words, **options: self.run(words, options))


MODELS = {
    "target_model_size",
    "draft_model_size",
    "corpus",
    "ngram_table",
    "n_max",
    "exit_layer",
    "models_dir",
    "source",
}
SAMPLING = {"top_k", "top_p", "min_p", "repetition_penalty", "seed"}
COMMON = MODELS | SAMPLING | {"n_tokens_to_generate", "n_prompts", "json", "plot"}
LISTS = {"prompts", "prompt_file"}
ONE_SIZE = COMMON | {"temperature"}
SIZES = (COMMON | {"target_sizes"}) - {"target_model_size"}

EXPERIMENTS = {
    experiment.measure.__name__: experiment
    for experiment in (
        Experiment(calibrate, tables.calibration, ONE_SIZE | {"drafter"}, {"n_tokens_to_generate": 64}),
        Experiment(drafters, tables.drafters, ONE_SIZE, {"n_tokens_to_generate": 64, "n_prompts": 4}),
        Experiment(
            prompts, tables.prompts, ONE_SIZE | LISTS | {"drafter", "K", "verifier", "log"},
            {"prompts": "known", "n_prompts": 8},
        ),
        Experiment(
            gamma_table, tables.gamma, COMMON | LISTS | {"drafter", "temperatures", "max_K"},
            {"n_tokens_to_generate": 100, "n_prompts": 12},
        ),
        Experiment(
            alpha_table, tables.alpha, SIZES | LISTS | {"temperatures"}, {"n_tokens_to_generate": 64, "n_prompts": 12}
        ),
        Experiment(
            method_table, tables.methods, ONE_SIZE | {"drafters", "verifiers", "K"},
            {"n_tokens_to_generate": 48, "n_prompts": 3, "temperature": 0.5},
        ),
        Experiment(
            compare_sizes, tables.sizes, SIZES | LISTS | {"temperature", "drafters", "K", "verifier"},
            {"n_prompts": 8, "drafters": "model,ngram"},
        ),
    )
}  # fmt: skip
COMMANDS = {name: experiment.command() for name, experiment in EXPERIMENTS.items()}
