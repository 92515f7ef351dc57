"""Many texts at once: each has an ordinary sampler, and their calls of a model are combined into one pass.

Verifying K + 1 tokens of one text costs little more than one token, because a pass reads every weight once. The same
holds for the tokens of several texts. Here each text has its own sampler, drafter and verifier, which run in their own
thread with lanes as their models (gpt2np/model.py): a call of a lane hands over to the next text and waits. When all
texts wait, one pass answers their calls of one model. The draft model comes first, so that all texts reach the target
together. When a text ends, the next prompt takes its lane.

Threads serve as coroutines here, which samplers need not know about: one runs at a time, in an order that depends on
the texts alone, so nothing needs a lock and the same seeds give the same draws. Each text has its own source of random
numbers. So each text is bitwise identical to the one generated alone, and the texts are independent. lockstep.py shows
the idea in 25 lines, for a draft model only.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from typing import Any

from .generation import Generation, Sampler, collect
from .interfaces import LanguageModel, RandomSource, Tokens
from .models.by_paths import Wrapper


def generate_together(
    make: Callable[..., Sampler],
    models: Sequence[LanguageModel],
    prompts: Sequence[Tokens],
    n_tokens: int | Sequence[int],
    rngs: Sequence[int | RandomSource | None],
    *,
    n_lanes: int = 8,
    **options: Any,
) -> list[Generation | Any]:
    """The `Generation` of each prompt, or the exception that ended it: a list in the order of the prompts.

    Parameters
    ----------
    make
        make(target, ...) -> a Sampler, from a lane of each of the models. Called for each text, so that no drafter
        learns from a different text. Results stay right with a model that is not passed in here, but it is slow,
        because the texts take turns on its cache.
    models
        The target comes first. Models with `lanes`, such as a gpt2np.GPT2, answer the calls of all texts in one pass;
        others answer them one by one.
    prompts
        Token ids [n_prompt] of each.
    n_tokens
        How many tokens to generate; a sequence has one number for each prompt.
    rngs
        For each prompt a seed or a source, as `Sampler.generate` takes it.
    n_lanes
        The largest number of texts at once.
    options
        `stop_tokens` and `stop`, as in `Sampler.generate`.

    Examples
    --------
    >>> from speculative import AutoregressiveSampler
    >>> from speculative.exact.table import TableModel
    >>> texts = generate_together(AutoregressiveSampler, [TableModel.random(3)], [[0], [1, 2]], 4, rngs=[0, 1])
    >>> [len(text.tokens) for text in texts]
    [4, 4]
    """
    results = dict(as_they_end(make, models, prompts, n_tokens, rngs, n_lanes=n_lanes, **options))
    return [results[i] for i in range(len(prompts))]


def as_they_end(make, models, prompts, n_tokens, rngs, *, n_lanes=8, watch=lambda i, r: None, **options):
    """(i, result) for prompt number i, as soon as its text ends; the rest as in `generate_together`.

    watch : callable
        watch(i, round) is called after each round of text i.
    """
    if not isinstance(n_tokens, Iterable):
        n_tokens = [n_tokens] * len(prompts)
    waiting = list(enumerate(zip(prompts, n_tokens, rngs, strict=True)))  # (number, request) of each text to come
    if n_lanes < 1:
        raise ValueError(f"expected n_lanes, the most texts at once, of 1 or more, got {n_lanes}")
    lanes_of_models = [lanes_of(model, min(n_lanes, len(prompts))) for model in models]
    free = list(zip(*lanes_of_models))  # for each text that can start: a lane of every model
    running = []
    try:
        while waiting or running:
            while waiting and free:
                number, request = waiting.pop(0)
                lanes = free.pop(0)
                job = partial(generation_of, make, lanes, request, partial(watch, number), options)
                running.append(Text(number, lanes, job))
                running[-1].start()  # not before it is in the list of those that an interruption ends
            let_run([text for text in running if not text.call])
            ended = [text for text in running if text.has_ended]
            for text in ended:
                running.remove(text)
                free.append(text.lanes)
                yield text.number, text.result
            if not ended or not waiting:  # otherwise new texts come first, and join this pass
                answer(running, lanes_of_models)
    finally:
        for text in running:
            text.end()


def generation_of(make, lanes, request, watch, options):
    """The `Generation` of one text: the job of its thread."""
    prompt, n_tokens, rng = request

    def watched(rounds):
        for r in rounds:
            watch(r)
            yield r

    return collect(prompt, watched(make(*lanes).rounds(prompt, n_tokens, rng, **options)))


def answer(texts, lanes_of_models):
    """Answer the calls of one model: the last in the list (the target is first) that a text waits for."""
    for lanes in reversed(lanes_of_models):
        asking = [text for text in texts if text.call[0] in lanes]
        if asking:
            for text, rows in zip(asking, answers_to([text.call for text in asking])):
                text.call, text.answer = None, rows
            return


def answers_to(calls):
    """The results of these calls of lanes of one model, or the exceptions that they raise."""
    try:
        return calls[0][0].together(calls)
    except Exception as error:
        if len(calls) == 1:
            return [error]
        return [answers_to([call])[0] for call in calls]  # one of several fails: the others still get their answers


class Text(threading.Thread):
    """A job in a thread, which waits at each call of a lane until it gets the answer and its turn."""

    def __init__(self, number, lanes, job):
        super().__init__(daemon=True)
        self.number = number
        self.lanes = lanes
        self.job = job
        self.context = copy_context()  # such as np.errstate
        self.turn = locked()  # released when it is this text's turn
        self.after = None  # the lock of whoever is next
        self.call = self.answer = self.result = None
        self.has_ended = self.is_given_up = False
        for lane in lanes:
            lane.ask = self.ask

    def run(self):
        self.turn.acquire()
        try:
            if not self.is_given_up:
                self.result = self.context.run(self.job)
        except BaseException as error:  # becomes the result of this text, and the others go on
            self.result = error
        self.has_ended = True
        if not self.is_given_up:
            self.after.release()

    def ask(self, call):
        """The answer to a call, (lane, tokens, n_last, parents); called in this thread."""
        if not self.is_given_up:
            self.call = call
            self.after.release()
            self.turn.acquire()
        if self.is_given_up:
            raise GivenUp
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def end(self):
        """Give up this text, after an interruption; it ends when it next asks a model."""
        self.is_given_up = True
        if self.turn.locked():
            self.turn.release()


class GivenUp(BaseException):
    """Raised in the texts that are given up; not an Exception, so that no sampler handles it."""


def locked():
    lock = threading.Lock()
    lock.acquire()
    return lock


def let_run(texts):
    """Let each of these texts run until it waits or ends, one after the other."""
    done = locked()
    for text, after in pairwise([*texts, None]):
        text.after = after.turn if after else done
    if texts:
        texts[0].turn.release()
        while not done.acquire(timeout=0.5):  # wakes up, so that a pending exception can be raised
            pass


def lanes_of(model, n):
    return model.lanes(n) if hasattr(model, "lanes") else [OneByOne(model) for _ in range(n)]


class OneByOne(Wrapper):
    """A lane of a model that has no lanes."""

    def __call__(self, tokens, n_last=1, parents=()):
        return self.ask((self, tokens, n_last, parents))

    @staticmethod
    def together(calls):
        rows = []
        for lane, tokens, n_last, parents in calls:
            rows.append(lane.model(tokens, n_last, parents) if len(parents) else lane.model(tokens, n_last))
        return rows
