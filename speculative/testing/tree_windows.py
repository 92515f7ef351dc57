"""Windows (windows.py) for drafts that branch: all is certain but the children of one node.

The drafter is the grader's own. At a node where target and draft are certain it puts the target's token among the
siblings at the rank that the case says, or leaves it out, which is a rejection. So the case says which path is
accepted. The children of the open node are drawn in one of the ways of check_verifier's cases (WAYS). Rows beside the
accepted path are certain as well, so a case has about twenty paths, even for rules that draw a number for each prefix.
"""

from dataclasses import dataclass

import numpy as np

from ..drafters.shapes import Shape
from ..interfaces import Draft
from ..tree import children, depths, path
from . import windows
from .cases import WAYS
from .windows import BEFORE, CERTAIN, LEFT, N_VOCAB, NEAR, NTH, PROMPTS, SAMPLINGS, STOPS, Window

SHAPES = {  # the parents of a tree, in the order of its depths or along its branches; and the nodes that are accepted
    "three siblings": ([-1, -1, -1], [0, 1, 2]),
    "two, then one": ([-1, -1, 0, 1], [2, 3]),
    "one, then two": ([-1, 0, 0], [1, 2]),
    "two, then two": ([*Shape.widths(2, 2).parents], [2, 3, 4, 5]),
    "by branches": ([-1, 0, 1, 0, -1, 4, 4], [2, 3, 5, 6]),
    "three deep": ([*Shape.widths(2, 1, 2).parents], [4, 5, 6, 7]),
    "one branch is short": ([-1, -1, 1, 2, 2], [0, 3, 4]),
}
PLACES = [  # (shape, the node that is accepted where all is certain, the depth of the open node on the path to it)
    (shape, leaf, depth)
    for shape, (parents, leaves) in SHAPES.items() for leaf in leaves for depth in range(len(path(parents, leaf)) + 1)
]  # fmt: skip
ROUNDS = [rounds for several in BEFORE.values() for rounds in several[:2]]


@dataclass
class TreeWindow(Window):
    """A case: as `Window`, with the shape of the tree and the node that is accepted; K is the tree's depth."""

    shape: str = ""
    leaf: int = 0
    way: str = "drawn without replacement"

    def __post_init__(self):
        self.parents = SHAPES[self.shape][0]
        self.nodes = path(self.parents, self.leaf)
        depth, self.K = self.K, len(self.nodes)  # a round that is accepted as a whole adds a token for each of these
        super().__post_init__()
        self.cut, self.K = self.refused, depth
        last = len(self.prompt) + self.n_tokens
        self.refused = {*range(len(self.prompt), last)} - self.lengths  # nothing is open beside the accepted path

    def __str__(self):
        return f"{super().__str__()}, trees with parents {self.parents} whose siblings are {self.way}"

    def rank(self, depth):
        """The rank among its siblings of the node that is accepted at this depth."""
        node = self.nodes[depth] if depth < len(self.nodes) else 0
        return children(self.parents, self.parents[node]).index(node) if depth < len(self.nodes) else 0


class WindowTree:
    """The drafter of a window; `drafted` is the text with the draft tokens of its last draft, and their parents."""

    def __init__(self, window, target, draft, sampling=None):
        self.window, self.target, self.draft, self.sampling, self.drafted = window, target, draft, sampling, ([], [])

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
        above = [[-1, *nodes].index(parents[node]) - 1 for node in nodes]
        self.drafted = [*text, *drafted.tolist()], above
        probs = np.reshape([rows[node] for node in nodes], (len(nodes), N_VOCAB))
        return Draft(drafted, probs, np.array(above, np.int64))

    def siblings(self, text, k, depth, rng):
        """Up to k children, each (token, the distribution it comes from)."""
        row = self.draft.probs(text)
        if row.max() < 1:
            row = self.sampling(self.draft(text), text)[0] if self.sampling else row
            return WAYS[self.window.way](row, k, rng)
        certain = int(self.target.probs(text).argmax())
        tokens = [(certain + 1) % N_VOCAB, (certain + 2) % N_VOCAB]
        if len(text) not in self.window.cut:
            tokens.insert(self.window.rank(depth), certain)
        return [(token, CERTAIN[token]) for token in tokens[:k]]


def tree_windows(look_back=True, stops=True):
    """Each of PLACES, once with a sampling that depends on the whole path and once with another; the rest in turn."""
    samplings = SAMPLINGS if look_back else [each for each in SAMPLINGS if not windows.looks_back(each)]
    by_history = samplings[-2] if look_back else samplings[0]
    for again in (0, 1):
        for n, place in enumerate(PLACES):
            m = n + again * len(PLACES)
            yield tree_window(
                place, n + again, before=ROUNDS[m % len(ROUNDS)], left=LEFT[(n + n // 4 + again) % 4],
                prompt=PROMPTS[m % 4], sampling=by_history if again else samplings[n % len(samplings)],
                stops=STOPS[m // 2 % 3 * stops], near=NEAR[m % 3],
            )  # fmt: skip


def tree_window(place, n, before=(), left="more", prompt=(0, 1), **others):
    """The window with this open node, whose children are drawn in the n-th of the WAYS."""
    shape, leaf, depth = place
    K, way = max(depths(SHAPES[shape][0])) + 1, [*WAYS][n % len(WAYS)]
    return TreeWindow(K, (depth,), before, left, [*prompt], **others, shape=shape, leaf=leaf, way=way)


def facts(window):
    """What can be said of a window, as parts of a sentence."""
    parents, on_the_way = window.parents, window.nodes[: window.opened[-1]]
    yield from (fact for fact in windows.facts(window) if not fact.startswith(("from the", "with K")))
    is_first = all(children(parents, parents[node])[0] == node for node in on_the_way)
    yield "where first siblings are accepted" if is_first else "where a second or third sibling is accepted"
    yield from (f"after the {NTH[n]} accepted draft token of a round" for n in range(len(on_the_way)))
    if children(parents, [-1, *window.nodes][window.opened[-1]]):
        yield f"where siblings follow that are {window.way}"
        yield "where several siblings follow"
    yield from (f"with trees of depth {n} or more" for n in range(2, window.K + 1))
    yield f"with parents {parents}"
