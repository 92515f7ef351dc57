"""Detects whether code draws from one of the generators that belong to the whole process."""

import pickle
import random
import sys

import numpy as np


def global_states():
    """dict name -> state of np.random, of the module random and, if it is imported, of torch."""
    states = {
        "np.random (the global generator, as in np.random.rand or np.random.choice)": pickle.dumps(
            np.random.get_state(legacy=False)
        ),
        "the module random": random.getstate(),
    }
    torch = sys.modules.get("torch")
    if hasattr(torch, "random"):  # false if torch is None or not fully imported
        states["torch's own generator (as in torch.rand or torch.multinomial)"] = (
            torch.get_rng_state().numpy().tobytes()
        )
    return states


def changed(before, after):
    """The names of the generators that have been drawn from, given the states before and after."""
    return [name for name, state in before.items() if after[name] != state]
