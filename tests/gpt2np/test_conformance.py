"""What holds for everything that gives rows for tokens: the bits of the path alone, whatever happened before."""

import copy
import functools
import pickle
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers import interrupted, random_eagle, random_gpt2, random_heads, random_parallel, walk

import gpt2np
from gpt2np import GPT2, EarlyExit, HParams
from gpt2np.cache import KVCache
from gpt2np.kernels import matmul, threads
from speculative.tree import path

SHAPE = HParams(n_vocab=53, n_ctx=29, n_embd=3 * 7, n_head=3, n_layer=3)
LONG = replace(SHAPE, n_ctx=200)  # more tokens than the largest int8


def call(used, *asked):
    return used(*asked)


@dataclass(frozen=True)
class Member:
    """One kind: how it is made and asked for rows, what else is asked of it, and the plain model if there is one."""

    make: Callable
    ask: Callable = call
    meanwhile: Callable = call
    plain: Callable | None = None


@functools.cache
def original(shape, strategy):
    return random_gpt2(shape)


def new_gpt2(shape, n_layer=None):
    """With the packed parameters of another one: packing starts threads, which takes longer than a test."""
    model, first = object.__new__(GPT2), original(shape, matmul.strategy(shape.n_ctx, shape.d_head))
    shape = replace(shape, n_layer=n_layer or shape.n_layer)
    vars(model).update(vars(first), hparams=shape, params={**first.params}, lock=threading.RLock())
    model.params["blocks"] = first.params["blocks"][: shape.n_layer]
    model.cache = KVCache(shape.n_layer, shape.n_head, shape.n_ctx, shape.d_head, first.strategy)
    return model


def states(model, tokens, n_last=1, parents=()):
    return model.run(tokens, n_last, parents) if len(parents) else model.states(tokens, n_last)


def of_heads(kind):
    """Head 1 on GPT2's states, after the tokens themselves."""
    heads = functools.cache(lambda strategy, shape: random_heads(shape, kind))

    def ask(model, tokens, n_last=1, parents=()):
        rows = states(model, tokens, n_last, parents)
        seen = [[int(token)] for token in tokens][-int(n_last) :]
        return heads(model.strategy, model.hparams).logits(model, rows, np.array(seen))

    return Member(new_gpt2, ask)


def of_eagle(n_frequent, random_block=random_eagle):
    """All rows but the first are of draft tokens."""

    def ask(eagle, tokens, n_last=1, parents=()):
        return eagle.draft_model(len(tokens) - int(n_last) + 1)(tokens, n_last, parents)

    make = lambda shape: random_block(shape).on(new_gpt2(shape), n_frequent)  # noqa: E731
    return Member(make, ask, lambda eagle, *asked: eagle.model(*asked))  # the target verifies


MEMBERS = {  # the first word is the exported name
    "GPT2": Member(new_gpt2, meanwhile=lambda model, *asked: model.states(asked[0])),
    "GPT2 states": Member(new_gpt2, states),
    "EarlyExit": Member(
        lambda shape: EarlyExit(new_gpt2(shape), 2),
        meanwhile=lambda whole, tokens, *rest: whole.early_exit([*tokens, 3][: whole.n_ctx]),
        plain=new_gpt2,
    ),
    "EarlyExit first": Member(
        lambda shape: EarlyExit(new_gpt2(shape), 2).early_exit,
        meanwhile=lambda first, *asked: first.whole(*asked),
        plain=lambda shape: new_gpt2(shape, 2),
    ),
    "Heads hydra": of_heads("hydra"),
    "Heads medusa": of_heads("medusa"),
    "Eagle": of_eagle(0),
    "Eagle frequent": of_eagle(6),
    "ParallelEagle": of_eagle(0, random_parallel),
    "ParallelEagle frequent": of_eagle(6, random_parallel),
}
every = pytest.mark.parametrize("name", MEMBERS)


def test_every_exported_class_with_logits_is_in_the_table():
    classes = {name: getattr(gpt2np, name) for name in gpt2np.__all__ if isinstance(getattr(gpt2np, name), type)}
    assert {name for name in classes if {"__call__", "logits"} & {*dir(classes[name])}} == {
        n.split()[0] for n in MEMBERS
    }


@functools.cache
def alone(name, strategy, tokens, n_text):
    """The last row of one that was asked for nothing else; of the tokens, n_text are given, the others a draft."""
    member = MEMBERS[name]
    if member.plain:
        return member.plain(SHAPE)(list(tokens))[0].tobytes()
    return member.ask(member.make(SHAPE), list(tokens), len(tokens) - n_text + 1)[-1].tobytes()


def check(name, used, tokens, n_last=1, parents=()):
    """Each row is that of its path alone, to the bit."""
    n_text, strategy = len(tokens) - n_last + 1, matmul.strategy(SHAPE.n_ctx, SHAPE.d_head)
    rows = MEMBERS[name].ask(used, tokens, n_last, parents)
    assert rows.dtype == np.float32 and len(rows) == n_last
    for i, row in enumerate(rows, -1):  # the first is of the text
        after = [tokens[n_text + node] for node in path(parents, i)] if parents else tokens[n_text : n_text + i + 1]
        wanted = alone(name, strategy, (*tokens[:n_text], *after), n_text)
        assert row.tobytes() == wanted, (tokens, n_last, parents, i)


def texts(shape, n, seed=0):
    """(tokens, n_last, parents) of texts that extend, branch and shrink, and of trees that they go along."""
    rng = np.random.default_rng(seed)
    for tokens, n_last in walk(shape, n, seed):
        yield tokens, min(n_last, 6), ()
        if len(tokens) < shape.n_ctx - 9:
            parents = [int(rng.integers(-1, i)) if i else -1 for i in range(6)]
            nodes = rng.permutation(shape.n_vocab)[:6].tolist()  # siblings carry different tokens
            for n_nodes in (2, 6):  # a tree that grows
                yield [*tokens, *nodes[:n_nodes]], n_nodes + 1, parents[:n_nodes]
            along = [*tokens, *(nodes[i] for i in path(parents, int(rng.integers(6))))]
            yield along, 1, ()
            yield [*along, 1, 2], 2, ()


@every
def test_the_bits_of_the_path_alone_whatever_was_asked_before(name, strategy):
    member = MEMBERS[name]
    used = member.make(SHAPE)
    for i, asked in enumerate(texts(SHAPE, 9)):
        check(name, used, *asked)
        if i % 3:
            member.meanwhile(used, *asked)
    if hasattr(used, "reset"):
        used.reset()
        check(name, used, [1, 2, 3], 2)


LANES = [
    HParams(n_vocab=53, n_ctx=300, n_embd=3 * 7, n_head=3, n_layer=2),
    HParams(n_vocab=40, n_ctx=150, n_embd=16, n_head=1, n_layer=2),
    pytest.param(HParams(n_vocab=700, n_ctx=150, n_embd=1024, n_head=4, n_layer=1), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("shape", LANES, ids=["small", "one head", "large"])
@pytest.mark.parametrize("n_threads", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5))], indirect=True)
def test_several_texts_in_one_pass_have_the_bits_of_a_lone_model(shape, strategy, n_threads, monkeypatch):
    """In each pass some of the lanes take part, in any order."""
    monkeypatch.setattr(threads, "LEAST", 1)
    model, rng = random_gpt2(shape), np.random.default_rng(0)
    lanes, alone, waiting = model.lanes(5), copy.copy(model), [[*texts(shape, 3, seed)] for seed in range(5)]
    while any(waiting):
        asked = [i for i in rng.permutation(5) if waiting[i] and (rng.random() < 0.7 or sum(map(bool, waiting)) < 3)]
        calls = [(lanes[i], *waiting[i].pop(0)) for i in asked]
        for (_, *call), rows in zip(calls, lanes[0].together(calls) if calls else ()):
            assert rows.tobytes() == alone(*call).tobytes(), (asked, call)
        for i in asked[:2]:  # the hidden states are those of the text
            if not waiting[i]:
                assert lanes[i].states([*range(1, 9)], 3).tobytes() == alone.states([*range(1, 9)], 3).tobytes()


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda used: pickle.loads(pickle.dumps(used))}


@every
@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_has_the_same_strategy_and_nothing_that_another_thread_may_write_to(name, copied, monkeypatch):
    monkeypatch.setattr(matmul, "chosen", "slabs")
    used = MEMBERS[name].make(SHAPE)
    check(name, used, [1, 2, 3, 4, 5, 6], 3, [-1, -1])
    monkeypatch.setattr(matmul, "chosen", "panels")  # the copy keeps the model's own
    if name == "EarlyExit first" and copied == "copy":
        return  # the whole has only this one
    other = COPIES[copied](used)
    monkeypatch.setattr(matmul, "chosen", "slabs")
    mine, its = (vars(getattr(one, "whole", one)) for one in (used, other))  # the one with the cache
    assert its.get("strategy", "slabs") == "slabs" and its["lock"] is not mine["lock"]
    caches = [part for part in its if isinstance(its[part], KVCache)]
    assert caches and all(its[part] is not mine[part] and its[part].length == 0 for part in caches)
    for one, tokens in ((other, [1, 2, 3, 7]), (used, [1, 2, 3, 4, 5]), (other, [1, 2, 3, 7, 8]), (used, [9] * 9)):
        check(name, one, tokens, 2)


@every
def test_threads_share_it(name):
    """At the shortest switch interval."""
    used, interval = MEMBERS[name].make(SHAPE), sys.getswitchinterval()

    def ask(first):
        for n in range(12):
            check(name, used, [first, *range(3 + n % 6)], 2)
            MEMBERS[name].meanwhile(used, [first, 5, 6])

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(ask, range(6)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("name", ["GPT2", "EarlyExit", "Eagle"])
def test_reset_waits_for_the_call_in_progress(name):
    used = MEMBERS[name].make(SHAPE)
    thread = threading.Thread(target=used.reset)
    with used.lock:
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join()


@every
@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_interrupted_at_any_line_it_gives_the_right_rows_afterwards(name, kind, step):
    before, during = ([1, 2, 3, 4, 5], 2), ([1, 2, 7, 8, 9], 2)
    if kind == "tree":  # the branch 7, 8 has to move
        before, during = ([1, 2, 3, 7, 8], 4, [-1, -1, 1]), ([1, 2, 7, 8, 5, 6], 3, [-1, -1])
    used, n, is_interrupted = MEMBERS[name].make(SHAPE), 1, True
    while is_interrupted:
        MEMBERS[name].ask(used, *before)
        is_interrupted = interrupted(n, MEMBERS[name].ask, used, *during)
        for asked in (before, during) if n % 2 else (during, before):
            check(name, used, *asked)
        n += step
    assert n > 50


# ------------------------------------------------------------------------------------------------ arguments


WRONG = (  # the sentences: refusals.txt
    *(([],), ([0] * 30,), ([1, 2], 3), ([1, 2], 0), ([1, 53],), ([-1, 2],)),  # how many, and which
    *(([1, 2, 3], 1.0), ([1.5, 2.5],), (["a"],), ([1, 2, 3], 1, [-1.0])),  # whole numbers
    *(([1, 2], 1, [-1, 0]), ([1, 2, 3], 1, [-1, 1]), ([1, 2, 3], 1, [-2])),  # a tree after a text
)


@every
def test_what_cannot_be_run_is_refused_in_the_words_of_a_plain_model_and_changes_nothing(name):
    used = MEMBERS[name].make(SHAPE)
    for arguments in WRONG:
        MEMBERS[name].ask(used, [1, 2, 3, 4], 2)
        with pytest.raises(ValueError) as plain:
            new_gpt2(SHAPE)(*arguments)
        with pytest.raises(ValueError, match=f"^{re.escape(str(plain.value))}$"):
            MEMBERS[name].ask(used, *arguments)
        check(name, used, [1, 2, 3, 5], 2)


def views(array):
    """The elements of a tensor are views of its memory."""
    return [array[i : i + 1].reshape(()) for i in range(len(array))]


@every
@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, tuple, views])
def test_tokens_may_come_as_any_sequence_and_be_written_to_after_a_call(name, kind):
    used, array = MEMBERS[name].make(SHAPE), np.array([1, 2, 3, 4])
    tokens = kind(array)
    for wanted in ([1, 2, 3, 4], [4, 3, 2, 1]):
        array[:] = wanted
        if kind is np.ndarray.tolist:
            tokens[:] = wanted
        now = [int(token) for token in tokens]
        found = MEMBERS[name].ask(used, tokens, 2)
        assert [int(token) for token in tokens] == now and array.tolist() == wanted
        assert found.tobytes() == MEMBERS[name].ask(MEMBERS[name].make(SHAPE), now, 2).tobytes()


@every
def test_numbers_may_be_of_any_integer_type(name):
    """Those of NumPy keep their size in arithmetic: 150 would not fit int8, and minus 2 is no uint8."""
    used, tokens = MEMBERS[name].make(LONG), [*range(50)] * 3
    for n_last in (np.int8(2), np.uint8(2), np.uint64(2), np.array(2, np.uint32)):
        for end in (150, 9):
            rows = MEMBERS[name].ask(used, [np.uint8(token) for token in tokens[:end]], n_last)
            assert rows.tobytes() == MEMBERS[name].ask(MEMBERS[name].make(LONG), tokens[:end], 2).tobytes()
