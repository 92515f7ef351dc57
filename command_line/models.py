"""Models that options name: every name is checked before the first model is loaded.

Next: builders.py
"""

from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import gpt2np
from gpt2np.loading import SIZES, SOURCES, files_of, find_folder, find_on_disk


def check_models(option, names, request):
    """Raise ValueError unless each name is that of a model that is here, or can be downloaded."""
    for name in names:
        if name not in SIZES:
            try:
                with reading(option, name):
                    files_of(find_folder(name, Path(request.models_dir), request.source))
            except ValueError as error:
                raise ValueError(f"--{option}: {error}") from None


def load(option, name, request, parts):
    """(model, tokenizer, seconds); `parts` is told from which files."""
    models_dir, started = Path(request.models_dir), perf_counter()
    to_download = name in SIZES and not find_on_disk(name, models_dir)
    try:
        with reading(option, name):
            model, tokenizer = gpt2np.load(name, request.models_dir, request.source)
    except KeyboardInterrupt:
        if to_download:
            kept = f"what was fetched so far is in {models_dir / name}, and the same command goes on from there"
            raise KeyboardInterrupt(kept) from None
        raise
    seconds = perf_counter() - started
    if parts.path:
        names = {file for files in SOURCES.values() for file in files}
        folder = find_folder(name, models_dir, request.source)
        parts.opened(name, *sorted(path for path in folder.iterdir() if path.name in names))
    return model, tokenizer, seconds


@contextmanager
def reading(option, name):
    """An OSError while a model is read says which model, and for which option."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"--{option}: cannot read {error.filename or name} ({error.strerror or error})") from None
