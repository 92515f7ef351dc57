"""Windows (windows.py) for loops that draft trees: all is certain but the children of one node.

The drafter is the grader's own. At a node where target and draft are certain it puts the target's token among the
siblings at the rank that the case says, or leaves it out, which is a rejection; so the case says which path is
accepted. The children of the open node are drawn in one of the ways of check_verifier's cases (WAYS). Other nodes than those on
the accepted path have certain rows as well, so a case has about twenty paths.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..drafters.shapes import Shape
from ..interfaces import Draft
from ..models.by_paths import ByPaths
from ..tree import children, depths, is_chain, path
from . import windows
from .cases import WAYS
from .windows import FULL, N_VOCAB, NTH, SURE, Window

SHAPES = {  # the parents of a tree, in the order of its depths or along its branches; and the nodes that are accepted
    "three siblings": ([-1, -1, -1], [0, 1, 2]),
    "two, then one": ([-1, -1, 0, 1], [2, 3]),
    "one, then two": ([-1, 0, 0], [1, 2]),
    "two, then two": ([*Shape.widths(2, 2).parents], [2, 3, 4, 5]),
    "by branches": ([-1, 0, 1, 0, -1, 4, 4], [2, 3, 5, 6]),
    "three deep": ([*Shape.widths(2, 1, 2).parents], [4, 5, 6, 7]),
    "one branch is short": ([-1, -1, 1, 2, 2], [0, 3, 4]),
}
BEFORE = [(), (FULL,), (0,), (FULL, FULL), (1,), (0, FULL)]


@dataclass
class TreeWindow(Window):
    """A case: as Window, with the shape of the tree and the node that is accepted where all is certain.

    K is the depth of the tree, and `opened` the depth of the open node on the path to the accepted one.
    """

    shape: str = ""
    leaf: int = 0
    way: str = "drawn without replacement"

    def __post_init__(self):
        self.parents = SHAPES[self.shape][0]
        self.nodes = path(self.parents, self.leaf)
        whole, self.K = self.K, len(self.nodes)  # a round that is accepted as a whole adds one token for each of these
        super().__post_init__()
        self.cut, self.K = self.refused, whole
        last = len(self.prompt) + self.n_tokens
        self.refused = {*range(len(self.prompt), last)} - self.lengths  # nothing is open beside the accepted path

    def __str__(self):
        return f"{super().__str__()}, trees with parents {self.parents} whose siblings are {self.way}"

    def rank(self, depth):
        """The rank among its siblings of the node that is accepted at this depth."""
        if depth >= len(self.nodes):
            return 0
        node = self.nodes[depth]
        return children(self.parents, self.parents[node]).index(node)


class WindowTree:
    """The drafter of a window."""

    def __init__(self, window, target, draft, sampling):
        self.window, self.target, self.draft, self.sampling = window, target, draft, sampling
        self.model = ByPaths(draft)

    def propose(self, tokens, K, rng):
        parents, text = self.window.parents, [int(token) for token in tokens]
        depth, texts, rows = [*depths(parents), -1], {-1: text}, {}  # the last is that of the text, node -1
        for node in range(-1, len(parents)):
            below = children(parents, node) if node in texts and depth[node] + 1 < K else []
            siblings = self.siblings(texts[node], len(below), depth[node] + 1, rng) if below else []
            for child, (token, row) in zip(below, siblings):
                texts[child], rows[child] = [*texts[node], int(token)], row
        nodes = sorted(rows)
        drafted = np.array([texts[node][-1] for node in nodes], np.int64)
        above = np.array([[-1, *nodes].index(parents[node]) - 1 for node in nodes], np.int64)
        self.target.tree = None if is_chain(above) else [*text, *drafted]
        return Draft(drafted, np.reshape([rows[node] for node in nodes], (len(nodes), N_VOCAB)), above)

    def siblings(self, text, k, depth, rng):
        """Up to k children, each (token, the distribution it comes from)."""
        if self.draft.probs(text).max() < 1:
            return WAYS[self.window.way](self.sampling(self.draft(text), text)[0], k, rng)
        sure = int(self.target.table.probs(text).argmax())
        others = [(sure + 1) % N_VOCAB, (sure + 2) % N_VOCAB]
        if len(text) not in self.window.cut:
            others.insert(self.window.rank(depth), sure)
        return [(token, SURE[token]) for token in others[:k]]


def tree_windows(look_back=True, stops=True):
    """Each node that can be accepted in each shape, open at each depth of its path, and the rest in turn."""
    samplings = [one for one in windows.SAMPLINGS if look_back or one.repetition_penalty == 1 and not one.processors]
    places = [
        (shape, leaf, depth)
        for shape, (parents, leaves) in SHAPES.items() for leaf in leaves for depth in range(len(path(parents, leaf)) + 1)
    ]  # fmt: skip
    history = next((n for n, one in enumerate(samplings) if one.processors), 0)
    n_of = Counter()
    for n, (shape, leaf, depth) in enumerate(places):
        for again in range(2):  # once with a sampling that depends on the whole path, once with another
            m, n_of[shape, depth] = n + again * len(places), n_of[shape, depth] + 1
            yield TreeWindow(
                max(depths(SHAPES[shape][0])) + 1, (depth,), BEFORE[(n + 2 * again) % 6], (n + n // 4 + again) % 4,
                windows.PROMPTS[m % 4], samplings[history if again else n % len(samplings)],
                windows.STOPS[m // 2 % 3 * stops], near=windows.NEAR[m % 3], shape=shape, leaf=leaf,
                way=[*WAYS][n_of[shape, depth] % 4],
            )  # fmt: skip


def facts(window):
    """What can be said of a window, as parts of a sentence."""
    parents, on_the_way = window.parents, window.nodes[: window.opened[-1]]
    yield from (fact for fact in windows.facts(window) if not fact.startswith(("from draft", "with K")))
    yield "where a second or third sibling is accepted" if any(
        children(parents, parents[node])[0] != node for node in on_the_way
    ) else "where first siblings are accepted"
    yield from (f"after the {NTH[n]} accepted draft token of a round" for n in range(len(on_the_way)))
    if children(parents, [-1, *window.nodes][window.opened[-1]]):
        yield f"where siblings follow that are {window.way}"
        yield "where several siblings follow"
    yield from (f"with trees of depth {n} or more" for n in range(2, window.K + 1))
    yield f"with parents {parents}"
