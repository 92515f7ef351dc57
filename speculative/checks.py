"""The boundary of the loop: its calls to models, samplings, drafters and verifiers, and the request that starts it.

Each `ask_*` passes copies, which may be written to, and checks the result, so that the loop itself contains only the
method. Without the checks, a mistake in a user's code would produce a text that looks like any other. A check takes
microseconds. Its message names the culprit, the expected value and the actual value. Checks that are too expensive for
every round are left to the graders (testing/).
"""

import inspect
import operator

import numpy as np

from .interfaces import Draft, Verdict, takes_trees
from .tree import is_chain


def check_model(model, description):
    """The model; ValueError unless it has the attributes of a language model."""
    if not (hasattr(model, "n_vocab") and hasattr(model, "n_ctx")):
        raise ValueError(
            f"expected {description} with n_vocab and n_ctx, got {model!r:.80}: gpt2np.load(name) returns "
            "(model, tokenizer)"
        )
    return model


def check_request(prompt, n_tokens, model):
    """The prompt as a new list of int; ValueError unless `model` can continue it by n_tokens."""
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
    n_tokens = check_length(n_tokens, 0, "n_tokens")
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


def check_length(n, least, quantity):
    """A number as an int; ValueError unless it is a whole number of at least `least`."""
    try:
        n = operator.index(n)
    except TypeError:
        raise ValueError(f"expected {quantity} of {least} or more, a whole number, got {n!r:.100}") from None
    if n < least:
        raise ValueError(f"expected {quantity} of {least} or more, got {n}")
    return n


def ask_model(model, tokens, n_last=None, parents=(), whose="the target"):
    """The logits [n_last, n_vocab] of a language model; ValueError unless they have this shape.

    Without n_last the model's default of 1 is used; parents [n] are passed only if they branch.
    """
    arguments = {} if n_last is None else {"n_last": n_last}
    if not is_chain(parents):
        arguments["parents"] = list(parents)
    try:
        logits = model(list(tokens), **arguments)
    except TypeError as error:
        if "parents" not in arguments or "'parents'" not in str(error):
            raise
        raise ValueError(
            f"the drafter proposed a tree, but {whose} takes chains only: give its call the parameter parents, or use "
            f"ByPaths(model) for {whose}"
        ) from error
    n_last = n_last or 1
    if (shape := np.shape(logits)) != (n_last, model.n_vocab):
        remedy = "return one row of n_vocab logits for each of the last n_last tokens"
        if len(shape) > 1 and shape[-2] > n_last and shape[-1] == model.n_vocab:
            remedy = "these are the logits of more positions than were asked for, return only the last n_last rows"
        raise ValueError(
            f"{whose} returned logits of shape {shape} for n_last = {n_last}, expected (n_last, n_vocab) = "
            f"{(n_last, model.n_vocab)}: {remedy}"
        )
    return np.asarray(logits)


def ask_sampling(sampling, logits, tokens, parents=()):
    """The probabilities [n, n_vocab] that a sampling computes from these logits; ValueError unless rows add up to 1."""
    probs = sampling(logits.copy(), list(tokens), **({} if is_chain(parents) else {"parents": list(parents)}))
    if np.shape(probs) != logits.shape:
        raise ValueError(f"expected sampling to return probabilities of shape {logits.shape}, got {np.shape(probs)}")
    sums = np.sum(probs, axis=-1)
    if not (abs(sums - 1) < 1e-4).all():  # also false for NaN
        raise ValueError(f"expected sampling to return rows that add up to 1, got {sums[abs(sums - 1).argmax()]:.6g}")
    return probs


def ask_drafter(drafter, tokens, k, rng, target):
    """A copy of a drafter's `Draft` for this text; ValueError unless the target can be asked about it.

    No path may have more than k tokens, and each token needs a distribution. A tree that does not fit the target's
    context is cut to its first tokens.
    """
    draft = drafter.propose(list(tokens), k, rng)
    room, n_vocab = target.n_ctx - len(tokens), target.n_vocab
    try:
        drafted, probs = np.asarray(draft.tokens), np.array(draft.probs, np.float64)
        parents = getattr(draft, "parents", None)
        parents = None if parents is None else np.array(parents)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"the drafter must return Draft(tokens, probs); it returned {draft!r:.200}") from None
    n_drafted = len(drafted) if drafted.ndim == 1 else -1
    if n_drafted < 0 or (n_drafted and drafted.dtype.kind not in "iu"):
        raise ValueError(
            "the drafter must return tokens [k], whole numbers; it returned an array of shape "
            f"{drafted.shape} and dtype {drafted.dtype}"
        )
    draft = Draft(drafted.astype(np.int64), probs, parents if parents is None else checked_parents(parents, n_drafted))
    if (depth := draft.depth) > k:
        on_a_path = "" if draft.is_chain else " on one path of its tree"
        raise ValueError(f"the drafter was asked for at most {k} tokens and proposed {depth}{on_a_path}")
    if probs.shape != (n_drafted, n_vocab):
        raise ValueError(
            f"expected draft probabilities of shape ({n_drafted}, {n_vocab}), one row over the target's vocabulary for "
            f"each token, got {probs.shape}: draft and target must share one vocabulary"
        )
    for token, row in zip(draft.tokens.tolist(), probs):
        if not 0 <= token < n_vocab:
            raise ValueError(f"the drafter proposed token {token}: expected 0 to {n_vocab - 1}")
        if not 0 < row[token] <= 1 + 1e-9:  # also false for NaN
            raise ValueError(
                f"the drafter proposed token {token} with probability {row[token]:.6g} in its row of probs: expected "
                "more than 0 and at most 1, as the row is the distribution that the token was drawn from"
            )
    # subtle: only its position in the draft decides whether a token is cut off, so the rest stays unbiased
    return Draft(draft.tokens[:room], probs[:room], draft.parents[:room])


def show_drafter(drafter, tokens, logits, parents):
    """Pass a copy of the target's answer to a drafter that learns from it."""
    if hasattr(drafter, "observe"):
        drafter.observe(list(tokens), logits.copy(), parents.copy())


def checked_parents(parents, n_drafted):
    """The parents [n_drafted] as int64; ValueError unless they form a tree."""
    if parents.shape != (n_drafted,) or (n_drafted and parents.dtype.kind not in "iu"):
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
    return parents.astype(np.int64)


def ask_verifier(verifier, draft, target_probs, rng):
    """A verifier's `Verdict` with ints; ValueError unless it accepts the draft tokens of one path and adds a token."""
    if not draft.is_chain and not takes_trees(verifier):
        raise ValueError(
            f"the drafter proposed a tree, but the verifier {getattr(verifier, '__name__', verifier)} takes chains "
            "only: use rejection, exact_match or traversal, or set its attribute trees = True if it follows "
            "draft.children"
        )
    verdict = verifier(draft.copy(), target_probs.copy(), rng)
    n_drafted, n_vocab = draft.probs.shape
    try:
        n_accepted, next_token = operator.index(verdict.n_accepted), operator.index(verdict.next_token)
        nodes = tuple(operator.index(node) for node in getattr(verdict, "nodes", range(n_accepted)))
    except (AttributeError, TypeError):
        raise ValueError(
            f"the verifier must return Verdict(n_accepted, next_token), two whole numbers; it returned {verdict!r:.200}"
        ) from None
    if not 0 <= n_accepted <= n_drafted:
        raise ValueError(f"the verifier accepted {n_accepted} of {n_drafted} draft tokens: expected 0 to {n_drafted}")
    on_a_path = all(node in draft.children(above) for above, node in zip((-1, *nodes), nodes))
    if len(nodes) != n_accepted or not on_a_path:
        raise ValueError(
            f"the verifier accepted the draft tokens {nodes}: expected the nodes of one path, in order, from the text "
            "down, each a child of the one before"
        )
    if not 0 <= next_token < n_vocab:
        raise ValueError(f"the verifier returned next_token {next_token}: expected a token from 0 to {n_vocab - 1}")
    return Verdict(nodes, next_token)


def check_parts(drafter, verifier, sampling):
    """ValueError unless these have the attributes of a drafter, a verifier and a sampling."""
    if not hasattr(drafter, "propose") or inspect.isclass(drafter):
        raise ValueError(f"expected a drafter, with a method propose, got {drafter!r:.80}: ModelDrafter(model) is one")
    for name, part, example in (("verifier", verifier, "speculative.rejection"), ("sampling", sampling, "Sampling(0)")):
        if not callable(part) or inspect.isclass(part):
            raise ValueError(f"expected {name} to be callable and not a class, such as {example}, got {part!r:.80}")
