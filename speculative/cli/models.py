"""The models that options name. Names are checked before anything is loaded, and each model is loaded once."""

from contextlib import contextmanager
from difflib import get_close_matches
from json import loads
from pathlib import Path

import gpt2np
from gpt2np.files.loading import BUNDLED, find_folder
from gpt2np.files.model_files import SIZES, SOURCES, files_of, find_on_disk

from .engines import OTHERS, Engine

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
    if foreign := another_engines(Path(name)):
        engine = "llama_cpp" if name.endswith(".gguf") else "transformers"
        raise ValueError(f"{name} is {foreign}, and this is GPT-2 in NumPy: add --engine {engine}")
    try:
        if not Path(name).exists() and (near := nearest(name, [*BUNDLED, *SIZES])):
            raise ValueError(f"unknown model {name!r:.80}: did you mean {near}?")
        files_of(find_folder(name, None))
    except OSError as error:
        raise ValueError(f"cannot read {error.filename} ({error.strerror}): name a folder that you may read") from None
    return name


def another_engines(path):
    """The kind of model at a path meant for other engines, in words: a GGUF file, or a folder that is not a GPT-2."""
    if path.suffix == ".gguf":
        return "a GGUF file"
    try:
        kind = loads((path / "config.json").read_text(encoding="utf-8")).get("model_type", "gpt2")
    except (OSError, ValueError, AttributeError, RecursionError):  # files_of or load reports the error
        return None
    return None if kind == "gpt2" else f"a model of type {kind!r:.40}"


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
        name = options.draft_model_size or smallest(self.target()[0].n_vocab, options)
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


def load(name, options):
    """The model of this name, which may be downloaded, and its tokenizer."""
    with downloading(name, options):
        return gpt2np.load(name, options.models_dir, options.source)


def files_in_folder(name, options):
    """The files of the model of this name."""
    files = {file for files in SOURCES.values() for file in files}
    return sorted(path for path in folder_of(name, options).iterdir() if path.name in files)


ENGINES = {"numpy": Engine("this library: GPT-2", check_model_name, load, files_in_folder), **OTHERS}


def with_names(options):
    """The Options with the names of the models in full; ValueError unless they may be models of --engine."""
    for option in ("target_model_size", "draft_model_size"):
        names = options.lists.get(option, {"": getattr(options, option)})
        try:
            names = {text: name and ENGINES[options.engine].checked(name) for text, name in names.items()}
        except ValueError as error:
            raise ValueError(f"--{option}: {error}") from None
        options = options.but(**{option: next(iter(names.values()))})
        if option in options.lists:
            options = options.but(lists={**options.lists, option: names})
    return options


def smallest(n_vocab, options):
    """The draft model of a family, by its n_vocab; "" if there is none, as of the models of other engines."""
    return SMALLEST.get(n_vocab, "") if options.engine == "numpy" else ""


def named(name, model):
    """A model in a report: its name, and how large it is if it says so."""
    about = f"{name} ({model.about})" if hasattr(model, "about") else name
    return {"name": about, "parameters": model.n_params} if hasattr(model, "n_params") else {"name": about}


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
