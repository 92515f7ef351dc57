"""The models that options name. Names are checked before anything is loaded, and each model is loaded once."""

from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import gpt2np
from gpt2np.files.loading import BUNDLED, find_folder, model_to_find
from gpt2np.files.model_files import SIZES, files_of, find_on_disk
from gpt2np.files.params import read_config
from gpt2np.tokenizer import NumberTokenizer

from .engines import OTHERS, Engine
from .files import digest, say

# the draft model of each family: of the models with a vocabulary of this digest
SMALLEST = {"2d112e24d9c6533b": "tiny-draft", "e24f5f76e2638bc1": "124M"}
AS_SMALL = ("tiny-draft", "124M", "distilgpt2")  # the models that have no smaller one


def nearest(name, names, closeness=0.6):
    """The most similar of some names, or None; hyphens count as underscores, and case does not matter."""
    same = {known.lower().replace("-", "_"): known for known in names}
    matches = get_close_matches(name.lower().replace("-", "_"), same, 1, closeness)
    return same[matches[0]] if matches else None


def smallest(tokenizer):
    """The name of the smallest model with this vocabulary, or an empty text."""
    return SMALLEST.get(digest(*sorted(tokenizer.vocabulary, key=tokenizer.vocabulary.get)), "")


def model_name(name):
    """The name by which a model is known here; ValueError unless it is on disk or can be downloaded."""
    if name in BUNDLED or (known := model_to_find(name, None)):
        return name if name in BUNDLED else known
    try:
        if not Path(name).exists() and (near := nearest(name, [*BUNDLED, *SIZES])):
            raise ValueError(f"unknown model {name!r:.80}: did you mean {near}?")
        read_config(files_of(find_folder(name, None)).config)
    except OSError as error:
        raise ValueError(f"cannot read {error.filename} ({error.strerror}): name a folder that you may read") from None
    return name


class Models:
    """The models of one target, each loaded once: a function name -> (model, tokenizer).

    `options` are Options, of which target_model_size, models_dir and source are used.
    """

    def __init__(self, options):
        self.options, self.loaded, self.others = options, {}, {}

    def __call__(self, name):
        if name not in self.loaded:
            self.loaded[name] = ENGINES[self.options.engine].load(name, self.options)
        return self.loaded[name]

    def once(self, key, make):
        """The other things drafters need, made once: counts, heads, a different view of the target."""
        if key not in self.others:
            self.others[key] = make()
        return self.others[key]

    def all(self):
        """Every model that may have a cache."""
        return [
            *(model for model, _ in self.loaded.values()),
            *(x for x in self.others.values() if hasattr(x, "reset")),
        ]

    def target(self):
        return self(self.options.target_model_size)

    def draft(self, options):
        """(name, model, tokenizer) of --draft_model_size, by default the smallest model of the target's family."""
        name = options.draft_model_size or smallest(self.target()[1])
        if not name:
            raise ValueError(no_smaller(options.target_model_size))
        try:
            return name, *self(name)
        except gpt2np.DownloadError as error:
            if options.draft_model_size:
                raise
            sentence = f"{no_smaller(options.target_model_size)}; its usual draft is not on this disk: {error}"
            raise ValueError(sentence) from None

    def names_for(self, options):
        """The names of the models that call each other with these options, the target first."""
        return [self.options.target_model_size, *([self.draft(options)[0]] if options.drafter == "model" else [])]


class OfLanes(Models):
    """The models for one of several texts: lanes (dict name -> lane) replace some, the rest are as in `models`."""

    def __init__(self, models, lanes):
        super().__init__(models.options)
        self.models, self.loaded = models, {name: (lane, models(name)[1]) for name, lane in lanes.items()}

    def once(self, key, make):
        """As in `Models`; the result is shared by the texts unless it has a cache."""
        shared = self.models.others
        if key in shared and not hasattr(shared[key], "reset"):
            return shared[key]
        return super().once(key, make)


def load(name, options):
    """The model of this name, which may be downloaded, and its tokenizer."""
    with downloading(name, options):
        model, tokenizer = gpt2np.load(name, options.models_dir, options.source)
    if isinstance(tokenizer, NumberTokenizer):
        say(f"{name} has no tokenizer: its texts are lists of token ids")
    return model, tokenizer


ENGINES = {"numpy": Engine("this library: GPT-2", model_name, load), **OTHERS}


def with_names(options):
    """The Options with the names of the models in full; ValueError unless they may be models of --engine."""
    for option in ("target_model_size", "draft_model_size"):
        name = getattr(options, option)
        try:
            options = options.but(**{option: name and ENGINES[options.engine].checked(name)})
        except ValueError as error:
            raise ValueError(f"--{option}: {error}") from None
    return options


def looks_up(options):
    """Whether a model is looked up in --models_dir; only the names decide, not the models on this disk."""
    target, draft = options.target_model_size, options.draft_model_size
    draft = draft or ("" if target in BUNDLED else "124M")  # a folder's usual draft is not known before it is read
    names = [target, draft] if options.drafter == "model" else [target]
    return options.engine == "numpy" and any(model_to_find(name, options.models_dir) for name in names)


def named(name, model):
    """A model in a report: its name, and how large it is if it says so."""
    about = f"{name} ({model.about})" if hasattr(model, "about") else name
    return {"name": about, "parameters": model.n_params} if hasattr(model, "n_params") else {"name": about}


@contextmanager
def downloading(name, options):
    """Say of an interrupted download what is kept."""
    folder = Path(options.models_dir)
    model = model_to_find(name, folder)
    to_download = model and not find_on_disk(model, folder)
    try:
        yield
    except KeyboardInterrupt:
        if to_download and any(path.stat().st_size for path in (folder / model).rglob("*") if path.is_file()):
            kept = f"the download so far is in {folder / model}, and the same command resumes from there"
            raise KeyboardInterrupt(kept) from None
        raise


def no_smaller(target):
    """The sentence for a target without a default draft."""
    alone = f", or run it alone: python -m gpt2np TEXT --model_size {target}" if target in AS_SMALL else ""
    remedy = "name one with --draft_model_size, or add --drafter prompt_lookup"
    return f"no smaller model is known that drafts for {target}: {remedy}{alone}"
