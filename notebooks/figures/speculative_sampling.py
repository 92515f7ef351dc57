"""What notebook 05b shows: the code of the one-page method, and how many samples show a small mistake."""

import ast
import inspect

import matplotlib.pyplot as plt

from figures.palette import CORRECTED, P

plt.style.use("figures.mplstyle")


def code(*functions):
    """Print functions without their docstrings and comments, so that a line is short."""
    for function in functions:
        [node] = ast.parse(inspect.getsource(function)).body
        node.body = node.body[1:] if ast.get_docstring(node) else node.body
        print(ast.unparse(node), end="\n\n")


def errors_of_estimates(n_samples, right, wrong, bias):
    """The error of an estimate by number of samples, for the right rule and for one that is off by `bias`."""
    _, axis = plt.subplots(figsize=(6.4, 3.6), dpi=130)
    axis.loglog(n_samples, right, "o-", color=P.colour, markersize=4, label="right rule")
    axis.loglog(n_samples, wrong, "s--", color=CORRECTED.colour, markersize=4, label="misreported temperature")
    axis.axhline(bias, color=CORRECTED.colour, linestyle=":", label=f"misreported temperature, computed: {bias:.1e}")
    axis.legend(loc="lower left")
    axis.set(xlabel="samples", ylabel="largest error, mean of 50 runs", ylim=(5e-5, 0.1))
    axis.set_title("How many samples until a small mistake shows?")
