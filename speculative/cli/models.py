"""The models that options name. Names are checked before anything is loaded, and each model is loaded once."""

from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import gpt2np
from gpt2np.files.loading import BUNDLED, find_folder, read_settings
from gpt2np.files.model_files import SIZES, files_of, find_on_disk
from gpt2np.tokenizer import NumberTokenizer

from .files import say

SMALLEST = {2048: "tiny-draft", 50257: "124M"}  # the draft model of each family, by its n_vocab


def nearest(name, names):
    """The most similar of some names, or None; hyphens count as underscores, and case does not matter."""
    same = {known.lower().replace("-", "_"): known for known in names}
    found = get_close_matches(name.lower().replace("-", "_"), same, 1)
    return same[found[0]] if found else None


def check_model_name(name):
    """The name; ValueError unless it names a model that is on disk or can be downloaded."""
    if name in (*BUNDLED, *SIZES):
        return name
    try:
        if not Path(name).exists() and (near := nearest(name, [*BUNDLED, *SIZES])):
            raise ValueError(f"unknown model {name!r:.80}: did you mean {near}?")
        read_settings(files_of(find_folder(name, None)))
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
            with downloading(name, self.options):
                self.loaded[name] = gpt2np.load(name, self.options.models_dir, self.options.source)
            if isinstance(self.loaded[name][1], NumberTokenizer):
                say(f"{name} has no tokenizer: its texts are lists of token ids")
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
        name = options.draft_model_size or SMALLEST.get(self.target()[0].n_vocab, "")
        if not name or (name == options.target_model_size and not options.draft_model_size):
            raise ValueError(no_smaller(options.target_model_size))
        return name, *self(name)

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


def folder_of(name, options):
    """The folder of the model of this name, which may be downloaded."""
    with downloading(name, options):
        return find_folder(name, Path(options.models_dir), options.source)


@contextmanager
def downloading(name, options):
    """Say of an interrupted download what is kept, and of one that fails what needs no download."""
    folder = Path(options.models_dir)
    to_download = name in SIZES and not find_on_disk(name, folder)
    try:
        yield
    except KeyboardInterrupt:
        if to_download and any(path.stat().st_size for path in (folder / name).rglob("*") if path.is_file()):
            kept = f"the download so far is in {folder / name}, and the same command resumes from there"
            raise KeyboardInterrupt(kept) from None
        raise
    except gpt2np.DownloadError as error:
        problem = str(error).partition("; try again")[0]  # the rest is for Python (see docs/models.md)
        other = "hub" if options.source == "openai" else "openai"
        raise ValueError(
            f"tiny-target and tiny-draft need no download; {name} does: {problem}; try again, or --source {other}: see "
            "docs/models.md"
        ) from None


def no_smaller(target):
    return (
        f"there is no smaller model to draft for {target}: choose a larger --target_model_size, name a draft with "
        "--draft_model_size, or draft without a model, for example with --drafter ngram"
    )
