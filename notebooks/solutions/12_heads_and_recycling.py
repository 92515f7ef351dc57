"""The exercises of notebook 12. `read_off`, `silu` and `wte` are the notebook's."""

import numpy as np

from speculative import Draft


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
    def __init__(self, target, shape, n_followers=4):
        self.target, self.n_vocab, self.n_ctx = target, target.n_vocab, target.n_ctx
        self.parents, self.ranks = shape
        self.n_followers, self.followers = n_followers, {}

    def __call__(self, tokens, n_last=1, parents=()):
        """Later rows replace earlier ones."""
        tree = {"parents": parents} if len(parents) else {}
        logits = self.target(tokens, n_last=n_last, **tree)
        for token, row in zip(tokens[len(tokens) - n_last :], logits):
            self.followers[int(token)] = np.argsort(-row, kind="stable")[: self.n_followers].tolist()
        return logits

    def propose(self, tokens, K, rng):
        """`place` has the nodes of the shape that are in the draft: where, on which level, with which token."""
        drafted, parents, place = [], [], {-1: (-1, 0, int(tokens[-1]))}
        for node, (parent, rank) in enumerate(zip(self.parents, self.ranks)):
            if parent not in place:
                continue
            above, level, token = place[parent]
            known = self.followers.get(token, [])
            if level < K and rank < len(known):
                place[node] = len(drafted), level + 1, known[rank]
                drafted.append(known[rank])
                parents.append(above)
        probs = np.zeros((len(drafted), self.n_vocab))
        probs[np.arange(len(drafted)), drafted] = 1
        return Draft(np.array(drafted, np.int64), probs, np.array(parents, np.int64))
