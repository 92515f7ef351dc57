"""The exercises of notebook 12. `read_off`, `silu` and `wte` are the notebook's."""

import numpy as np

from speculative.drafters.deterministic import one_hot


def accepted_by_rank(logits, tokens, n_ranks):
    """[n_ranks] float: how often the token is the most likely one, the second, and so on.

    logits : [n, n_vocab], a head's row for each position.
    tokens : [n] int, the token that the target took at each position.

    For logits [[3, 2, 1], [1, 2, 3]] and tokens [0, 1] it is [0.5, 0.5, 0]: once the most
    likely, once the second.
    """
    # The rank of a token is the number of tokens with larger logits.
    places = np.arange(len(tokens))
    ranks = (logits > logits[places, tokens][:, None]).sum(axis=1)
    return np.array([(ranks == rank).mean() for rank in range(n_ranks)])


def hydra_head(head, h, seen):
    """Logits [n, n_vocab] of a Hydra head.

    head : dict, "a" and "w" [(i + 1) * n_embd, n_embd].
    h : [n, n_embd], the hidden states (normalised).
    seen : [n, i] int, for each of them the i tokens that follow its own.

    wte[tokens] are embeddings, read_off(y) makes logits from y [n, n_embd], silu is
    defined above.
    """
    # wte[seen] is [n, i, n_embd]: reshape puts the embeddings of a row one after the other.
    x = np.concatenate([h, wte[seen].reshape(len(h), -1)], axis=1)  # noqa: F821
    return read_off(x @ head["a"] + silu(x @ head["w"]))  # noqa: F821


class Recycler:
    """A Drafter that learns from the target's rows."""

    def __init__(self, n_vocab, shape, n_followers=4):
        self.n_vocab, self.shape, self.n_followers = n_vocab, shape, n_followers
        self.followers = {}  # token -> its n_followers most likely followers, in order

    def observe(self, tokens, logits, parents):
        """Note the followers of the token before each row; called after each target call.

        tokens : list of int, the text and then the n draft tokens.
        logits : [n + 1, n_vocab], row 0 after the text, row i + 1 after draft token i.
        parents : [n] int64, those of the draft.

        If a token has several rows, the last one counts.
        """
        # The last n + 1 tokens have the rows; later rows replace earlier ones.
        for token, row in zip(tokens[len(tokens) - len(logits) :], logits):
            self.followers[token] = np.argsort(-row, kind="stable")[: self.n_followers].tolist()

    def propose(self, tokens, K, rng):
        """A speculative.Draft with one-hot rows, for example as `one_hot` makes it.

        Node j of the shape has the follower of rank self.shape.ranks[j] of its parent's
        token (if the parent self.shape.parents[j] is -1, of the text's last token). Leave
        out a node whose parent was left out, whose follower is not known, or which is
        deeper than K. If nothing is known, the draft has no tokens.
        """
        # `place` has the nodes of the shape that are in the draft: where, at which depth, with which token.
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
