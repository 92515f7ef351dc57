"""What a language model around another one passes on: the call, with or without a tree, and `reset`.

Next: by_paths.py
"""

import inspect


def logits_of(model, tokens, n_last, parents):
    """model(tokens, n_last), with `parents` only for a tree; ValueError if the model takes chains only."""
    if len(parents) == 0:
        return model(tokens, n_last=n_last)
    if "parents" not in inspect.signature(model).parameters:
        raise ValueError("expected a chain, since the wrapped model takes no trees: use ByPaths(model)")
    return model(tokens, n_last=n_last, parents=parents)


def reset(model):
    """Reset the model's cache, if it has one."""
    if hasattr(model, "reset"):
        model.reset()
