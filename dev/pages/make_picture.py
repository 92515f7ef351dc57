"""Draw docs/method.png, the picture of the README: how rejection sampling turns one distribution into another.

    python dev/pages/make_picture.py

It needs the extra `notebooks`, for matplotlib. It is the picture of notebook 05, with the same numbers, on a wide page.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[2]


def main():
    os.chdir(ROOT / "notebooks")
    sys.path.insert(0, os.getcwd())
    from figures import exactness

    p, q = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.4, 0.3]])
    exactness.q_into_p(["king", "fox", "wolf", "bear"], p, q, accepted="accepted", size=(8.6, 3.1))
    plt.savefig(ROOT / "docs" / "method.png", facecolor="w", dpi=160)


if __name__ == "__main__":
    main()
