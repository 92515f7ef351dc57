"""Models named by options. Every name is checked before the first model is loaded.

Next: builders.py
"""

from pathlib import Path
from time import perf_counter

import gpt2np
from gpt2np.files.loading import find_folder, read_tokenizer
from gpt2np.files.model_files import SIZES, SOURCES, WEIGHTS, files_of, find_on_disk


def check_models(option, names, request):
    """Raise ValueError unless each name is that of a model on disk, or one that can be downloaded."""
    for name in names:
        if name not in SIZES:
            try:
                files_of(find_folder(name, Path(request.models_dir), request.source))
            except OSError as error:
                raise ValueError(
                    f"--{option}: cannot read {error.filename} ({error.strerror}): name a folder that you may read"
                ) from None
            except ValueError as error:
                raise ValueError(f"--{option}: {error}") from None


def n_ctx_of(name, request):
    """How many tokens a model on disk has room for, without loading it."""
    folder = find_folder(name, Path(request.models_dir), request.source)
    layout, pair = files_of(folder)
    return read_tokenizer(folder / WEIGHTS[layout][0], *pair)[0].n_ctx


def load(name, request, parts):
    """(model, tokenizer, seconds). `parts` records the files."""
    models_dir, started = Path(request.models_dir), perf_counter()
    to_download = name in SIZES and not find_on_disk(name, models_dir)
    try:
        model, tokenizer = gpt2np.load(name, request.models_dir, request.source)
    except KeyboardInterrupt:
        if to_download and any(path.stat().st_size for path in (models_dir / name).rglob("*") if path.is_file()):
            kept = f"what was fetched so far is in {models_dir / name}, and the same command resumes from there"
            raise KeyboardInterrupt(kept) from None
        raise
    seconds = perf_counter() - started
    if parts.path:
        names = {file for files in SOURCES.values() for file in files}
        folder = find_folder(name, models_dir, request.source)
        parts.opened(name, *sorted(path for path in folder.iterdir() if path.name in names))
    return model, tokenizer, seconds
