"""The checks of the loop: the request, and whatever models, drafters, verifiers and draft length functions return.

Without them a mistake there would end in a text that looks like any other. Each check says who is at fault, what was
expected and what was returned, and takes microseconds. What is too expensive to check in every round is left to the
graders (testing/).
"""

import inspect
import operator

import numpy as np

from .interfaces import Draft, Verdict, takes_trees
from .tree import is_chain


def check_request(prompt, n_tokens, model):
    """The prompt as a new list of int; ValueError unless `model` can continue it by n_tokens."""
    if not (hasattr(model, "n_vocab") and hasattr(model, "n_ctx")):
        raise ValueError(
            f"expected a target with n_vocab and n_ctx, got {model!r:.80}: gpt2np.load returns (model, tokenizer)"
        )
    try:
        tokens = [operator.index(token) for token in prompt] if len(prompt) else []
    except TypeError:
        raise ValueError(
            f"expected a prompt of token ids, got {prompt!r:.100}: encode the text with the target's tokenizer"
        ) from None
    if not tokens:
        raise ValueError("the prompt has no tokens: start from at least one, such as <|endoftext|>")
    if min(tokens) < 0 or max(tokens) >= model.n_vocab:
        raise ValueError(
            f"expected prompt tokens from 0 to {model.n_vocab - 1}, got {min(tokens)} to {max(tokens)}: "
            "encode the text with the target's tokenizer"
        )
    n_tokens = as_whole(n_tokens, "n_tokens")
    if n_tokens < 0:
        raise ValueError(f"expected n_tokens of 0 or more, got {n_tokens}")
    if len(tokens) + n_tokens > model.n_ctx:
        room = model.n_ctx - len(tokens)
        remedy = f"generate at most {room} or shorten the prompt" if room > 0 else "shorten the prompt"
        raise ValueError(
            f"prompt has {len(tokens)} tokens and n_tokens is {n_tokens}, but n_ctx is {model.n_ctx}: {remedy}"
        )
    return tokens


def check_stop(stop_tokens, stop):
    """The stop tokens as a set of int; ValueError unless they are token ids and `stop` is None or a callable."""
    try:
        stop_tokens = frozenset(operator.index(token) for token in stop_tokens)
    except TypeError:
        raise ValueError(
            f"expected stop_tokens to be a collection of token ids, such as [0], got {stop_tokens!r:.100}"
        ) from None
    if stop is not None and not callable(stop):
        raise ValueError(
            f"expected stop to be a function of the new tokens, got {stop!r:.100}: for a text, "
            "stop=StopText(text, tokenizer.decode)"
        )
    return stop_tokens


def check_length(K, least, what):
    """A draft length as an int; ValueError unless it is a whole number of at least `least`."""
    try:
        K = operator.index(K)
    except TypeError:
        raise ValueError(f"expected {what} of {least} or more, a whole number, got {K!r:.100}") from None
    if K < least:
        raise ValueError(f"expected {what} of {least} or more, got {K}")
    return K


def as_whole(value, name):
    """A whole number as an int."""
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"expected {name} to be a whole number, got {value!r:.100}") from None


def check_logits(logits, n_last, n_vocab, whose):
    """Raise ValueError unless a model returned logits [n_last, n_vocab]."""
    if (shape := np.shape(logits)) != (n_last, n_vocab):
        remedy = "return one row of n_vocab logits for each of the last n_last tokens"
        if len(shape) > 1 and shape[-2] > n_last and shape[-1] == n_vocab:
            remedy = "these are the logits of more positions than were asked for, return only the last n_last rows"
        raise ValueError(
            f"{whose} returned logits of shape {shape} for n_last = {n_last}, expected (n_last, n_vocab) = "
            f"{(n_last, n_vocab)}: {remedy}"
        )


def check_draft(draft, k, n_vocab, room):
    """A copy of the draft; ValueError unless no path has more than k tokens, and each has its distribution.

    Of a tree, the first `room` tokens are kept, as many as the target's context holds.
    """
    try:
        tokens, probs, parents = np.asarray(draft.tokens), np.array(draft.probs, dtype=np.float64), parents_of(draft)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"the drafter must return Draft(tokens, probs); it returned {draft!r:.200}") from None
    n_drafted = len(tokens) if tokens.ndim == 1 else -1
    if n_drafted < 0 or (n_drafted and tokens.dtype.kind not in "iu"):
        raise ValueError(
            "the drafter must return tokens [k], whole numbers; it returned an array of shape "
            f"{tokens.shape} and dtype {tokens.dtype}"
        )
    if (depth := Draft(tokens, probs, check_parents(parents, n_drafted)).depth) > k:
        on_a_path = "" if parents is None else " on one path of its tree"
        raise ValueError(f"the drafter was asked for at most {k} tokens and proposed {depth}{on_a_path}")
    if probs.shape != (n_drafted, n_vocab):
        raise ValueError(
            f"expected draft probabilities of shape ({n_drafted}, {n_vocab}), one row over the target's vocabulary for "
            f"each token, got {probs.shape}: draft and target must share one vocabulary"
        )
    for token, row in zip(tokens.tolist(), probs):
        if not 0 <= token < n_vocab:
            raise ValueError(f"the drafter proposed token {token}: expected 0 to {n_vocab - 1}")
        if not 0 < row[token] <= 1 + 1e-9:  # false for NaN, too
            raise ValueError(
                f"the drafter proposed token {token} with probability {row[token]:.6g} in its row of probs: expected "
                "more than 0 and at most 1, as the row is the distribution that the token was drawn from"
            )
    # subtle: whether a token is cut off here depends on its place alone, not on the token, so the rest stays unbiased.
    kept = slice(n_drafted if parents is None else room)
    return Draft(tokens[kept].astype(np.int64), probs[kept], None if parents is None else parents[kept])


def parents_of(draft):
    """The parents of a draft [n], or None for a chain, also for one that is written as a tree."""
    parents = getattr(draft, "parents", None)
    return None if parents is None or is_chain(parents) else np.array(parents)


def check_parents(parents, n_drafted):
    """The parents; ValueError unless they are those of a tree of n_drafted tokens."""
    if parents is None:
        return None
    if parents.shape != (n_drafted,) or parents.dtype.kind not in "iu":
        raise ValueError(
            f"the drafter must return one parent for each of its {n_drafted} tokens, whole numbers; it returned "
            f"parents of shape {parents.shape} and dtype {parents.dtype}"
        )
    wrong = np.flatnonzero((parents < -1) | (parents >= np.arange(n_drafted)))
    if len(wrong):
        raise ValueError(
            f"the drafter returned {parents[wrong[0]]} as the parent of draft token {wrong[0]}: expected an earlier "
            "draft token, or -1 for the end of the text"
        )
    return parents


def check_tree(draft, verifier, target):
    """What the target's call gets besides the tokens: {} for a chain, {"parents": ...} for a tree.

    ValueError unless verifier and target take trees.
    """
    if draft.parents is None:
        return {}
    if not takes_trees(verifier):
        raise ValueError(
            f"the drafter proposed a tree, but the verifier {getattr(verifier, '__name__', verifier)} takes chains "
            "only: use rejection, exact_match or traversal, or set its attribute trees = True if it follows "
            "draft.children"
        )
    if "parents" not in inspect.signature(target).parameters:
        raise ValueError(
            "the drafter proposed a tree, but the target takes chains only: give its call the parameter parents, or "
            "use ByPaths(target)"
        )
    return {"parents": draft.parents.tolist()}


def check_probs(probs, n, n_vocab):
    """The result of `sampling`; ValueError unless it has n distributions over the vocabulary."""
    if np.shape(probs) != (n, n_vocab):
        raise ValueError(f"expected sampling to return probabilities of shape ({n}, {n_vocab}), got {np.shape(probs)}")
    sums = np.sum(probs, axis=-1)
    if not (abs(sums - 1) < 1e-4).all():  # false for NaN, too
        raise ValueError(f"expected sampling to return rows that add up to 1, got {sums[abs(sums - 1).argmax()]:.6g}")
    return probs


def check_parts(drafter, verifier, sampling):
    """ValueError unless these are a drafter, a verifier and a sampling, as far as their attributes tell."""
    if not hasattr(drafter, "propose"):
        raise ValueError(f"expected a drafter, with a method propose, got {drafter!r:.80}: ModelDrafter(model) is one")
    for what, part, example in (("verifier", verifier, "speculative.rejection"), ("sampling", sampling, "Sampling(0)")):
        if not callable(part) or inspect.isclass(part):
            raise ValueError(f"expected {what} to be callable and no class, such as {example}, got {part!r:.80}")


def check_verdict(verdict, draft, n_vocab):
    """The verdict with int; ValueError unless it accepts draft tokens on one path and adds one of the vocabulary."""
    n_drafted, nodes = len(draft.tokens), getattr(verdict, "nodes", None)
    try:
        n_accepted, next_token = operator.index(verdict.n_accepted), operator.index(verdict.next_token)
        nodes = nodes if nodes is None else tuple(operator.index(node) for node in nodes)
    except (AttributeError, TypeError):
        raise ValueError(
            f"the verifier must return Verdict(n_accepted, next_token), two whole numbers; it returned {verdict!r:.200}"
        ) from None
    if not 0 <= n_accepted <= n_drafted:
        raise ValueError(f"the verifier accepted {n_accepted} of {n_drafted} drafted tokens: expected 0 to {n_drafted}")
    accepted = tuple(range(n_accepted)) if nodes is None else nodes
    on_a_path = all(node in draft.children(above) for above, node in zip((-1, *accepted), accepted))
    if len(accepted) != n_accepted or not on_a_path:
        raise ValueError(
            f"the verifier accepted {n_accepted} draft tokens, nodes = {nodes}: expected Verdict.nodes to be the "
            "accepted ones in order, from the text down, each a child of the one before"
        )
    if not 0 <= next_token < n_vocab:
        raise ValueError(f"the verifier returned next_token {next_token}: expected a token from 0 to {n_vocab - 1}")
    return Verdict(n_accepted, next_token, None if draft.parents is None else accepted)
