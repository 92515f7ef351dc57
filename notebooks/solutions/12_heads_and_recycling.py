"""The exercises of notebook 12. `read_off`, `silu` and `wte` are the notebook's."""

import numpy as np

from speculative.drafters.deterministic import one_hot


def accepted_by_rank(logits, tokens, n_ranks):
    """The rank of a token is the number of tokens with larger logits."""
    places = np.arange(len(tokens))
    ranks = (logits > logits[places, tokens][:, None]).sum(axis=1)
    return np.array([(ranks == rank).mean() for rank in range(n_ranks)])


def hydra_head(head, h, seen):
    """wte[seen] is [n, i, n_embd]: reshape puts the embeddings of a row one after the other."""
    x = np.concatenate([h, wte[seen].reshape(len(h), -1)], axis=1)  # noqa: F821
    return read_off(x @ head["a"] + silu(x @ head["w"]))  # noqa: F821


class Recycler:
    def __init__(self, n_vocab, shape, n_followers=4):
        self.n_vocab, self.shape, self.n_followers = n_vocab, shape, n_followers
        self.followers = {}

    def observe(self, tokens, logits, parents):
        """The last n + 1 tokens have the rows; later rows replace earlier ones."""
        for token, row in zip(tokens[len(tokens) - len(logits) :], logits):
            self.followers[token] = np.argsort(-row, kind="stable")[: self.n_followers].tolist()

    def propose(self, tokens, K, rng):
        """`place` has the nodes of the shape that are in the draft: where, at which depth, with which token."""
        drafted, parents, place = [], [], {-1: (-1, 0, tokens[-1])}
        for node, (parent, rank) in enumerate(zip(self.shape.parents, self.shape.ranks)):
            if parent not in place:
                continue
            above, depth, token = place[parent]
            known = self.followers.get(token, [])
            if depth < K and rank < len(known):
                place[node] = len(drafted), depth + 1, known[rank]
                drafted.append(known[rank])
                parents.append(above)
        return one_hot(drafted, self.n_vocab, parents)
