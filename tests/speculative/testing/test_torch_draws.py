"""PyTorch's random functions under enumeration: known distributions, what is refused, rules right and wrong, engines.

All of it needs PyTorch: group `peers`.
"""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from speculative import CannotEnumerate, exact_distribution, total_variation
from speculative.testing import audit_loop, check_function

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("default")]
TorchDraws = pytest.importorskip("speculative.testing.torch_draws").TorchDraws

P, Q = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]), torch.tensor([[0.25, 0.5, 0.25]])


def distribution(code):
    def run(rng):
        with TorchDraws(rng):
            return code()

    return exact_distribution(run)


def assert_distribution(code, expected):
    found = distribution(code)
    assert found.keys() == expected.keys(), found
    for outcome, probability in expected.items():
        np.testing.assert_allclose(found[outcome], probability, rtol=0, atol=1e-12)


def test_functions_that_are_answered():
    half = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    assert_distribution(lambda: torch.multinomial(half, 1).item(), {0: 0.5, 1: 0.25, 2: 0.25})
    assert_distribution(lambda: torch.multinomial(4 * half, 2).tolist(), {
        (0, 1): 0.25, (0, 2): 0.25, (1, 0): 1 / 6, (1, 2): 1 / 12, (2, 0): 1 / 6, (2, 1): 1 / 12,
    })  # fmt: skip
    assert_distribution(
        lambda: torch.multinomial(half[None, :2], 1, replacement=True).tolist(), {((0,),): 2 / 3, ((1,),): 1 / 3}
    )
    assert_distribution(lambda: torch.distributions.Categorical(half).sample().item(), {0: 0.5, 1: 0.25, 2: 0.25})
    assert_distribution(lambda: torch.bernoulli(half[:2]).tolist(), {
        (0.0, 0.0): 0.375, (0.0, 1.0): 0.125, (1.0, 0.0): 0.375, (1.0, 1.0): 0.125,
    })  # fmt: skip
    assert_distribution(lambda: bool(torch.rand(1) < 0.25), {True: 0.25, False: 0.75})
    assert_distribution(lambda: (torch.rand_like(half) <= half).tolist().count(True), {
        0: 9 / 32, 1: 15 / 32, 2: 7 / 32, 3: 1 / 32,
    })  # fmt: skip
    assert_distribution(lambda: torch.rand(2, 3)[1, 0].item() < 0.25, {True: 0.25, False: 0.75})


@pytest.mark.parametrize("n", [1, 2])
def test_computing_with_uniform_numbers(n):
    quarter = {True: 0.25, False: 0.75}
    for code in (
        lambda: torch.rand(n, 3).T[1].unsqueeze(0)[0, 0] * 2 < 0.5,
        lambda: torch.tensor([0.5]) > torch.rand(n)[-1:] * 2,
        lambda: 1 - torch.rand(n)[0] > 0.75,
        lambda: (torch.rand(n, dtype=torch.float64) + 1).view(-1, 1)[0] / 4 <= 0.3125,
        lambda: -torch.rand(n).reshape(1, n)[:, 0] >= torch.tensor(-0.25),
        lambda: next(iter(torch.rand(n))) < 0.25,
        lambda: torch.rsub(torch.rand(n)[:1], 1.0, alpha=2) > 0.5,
    ):
        assert_distribution(lambda: bool(code()), quarter)  # noqa: B023
    assert_distribution(lambda: [bool(u < t) for u in torch.rand(n) for t in (0.5, 0.25)][:2], {
        (True, True): 0.25, (True, False): 0.25, (False, False): 0.5,
    })  # fmt: skip


REFUSED = {
    "uniform_": lambda: torch.empty(2).uniform_(),
    "exponential_": lambda: (P / torch.empty_like(P).exponential_(1)).argmax(),
    "bernoulli_": lambda: torch.empty(2).bernoulli_(0.5),
    "normal_": lambda: torch.empty(2).normal_(),
    "randn": lambda: torch.randn(2),
    "randint": lambda: torch.randint(3, (2,)),
    "dropout|bernoulli_": lambda: torch.nn.functional.dropout(P, 0.5),
    "generator": lambda: torch.multinomial(P, 1, generator=torch.Generator()),
    "generator=": lambda: torch.rand(2, generator=torch.Generator()),
    "np.random": lambda: np.random.rand(),  # noqa: NPY002
    "the module random": lambda: random.random(),
    "default_rng": lambda: np.random.default_rng(0).random(),
    "_local_scalar_dense|item": lambda: float(torch.rand(1)),
    "log": lambda: torch.log(torch.rand(1)),
    "sort": lambda: torch.rand(3).sort(),
    "== and": lambda: bool(torch.rand(1) == 0.5),
    "and !=": lambda: bool(torch.rand(1) != 0.5),
    "eq": lambda: bool(torch.eq(torch.rand(1), 0.5)),
}


@pytest.mark.parametrize("grad", [torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, grad):
    with pytest.raises(CannotEnumerate, match=name.rstrip("=")), grad():
        distribution(REFUSED[name])


def test_two_uniform_numbers_cannot_be_compared():
    with pytest.raises(TypeError, match="'<' not supported between"):  # PyTorch's wording of any TypeError there
        distribution(lambda: torch.rand(2)[0] < torch.rand(2)[1])


def test_attention_without_dropout_is_not_refused():
    q = torch.ones(1, 1, 2, 4)
    with torch.inference_mode():
        distribution(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q).shape[0])
        with pytest.raises(CannotEnumerate, match="draws random numbers and cannot be enumerated"):
            distribution(lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5))


def test_weights_that_torch_refuses():
    for weights in ([0.0, 0.0], [-1.0, 2.0], [float("nan"), 1.0]):
        with pytest.raises(RuntimeError, match="expected weights of 0 or more, not all 0"):
            distribution(lambda: torch.multinomial(torch.tensor(weights), 1))  # noqa: B023


# ------------------------------------------------------------------------------------------------ rules and engines


def rule(p, q, draft, correct):
    """Speculative sampling as it is written in PyTorch: p [K + 1, n], q [K, n], draft [K]."""
    rows = torch.arange(len(draft))
    ratio = p[rows, draft] / q[rows, draft]
    accepted = torch.rand_like(ratio) <= ratio
    n = int((~accepted).cumsum(0).lt(1).sum())
    last = (p[n] - q[n]).clamp(min=0) if correct and n < len(draft) else p[n]
    return [*draft[:n].tolist(), torch.multinomial(last / last.sum(), 1).item()]


def error_of(correct):
    """The total variation distance of the first two tokens' distribution to the target's."""

    def first_two():
        draft = torch.multinomial(Q[0], 1)
        tokens = rule(P, Q, draft, correct)
        if len(tokens) == 1:
            tokens.append(torch.multinomial(P[1], 1).item())
        return tokens

    wanted = {(a, b): float(P[0, a] * P[1, b]) for a in range(3) for b in range(3)}
    return total_variation(distribution(first_two), wanted)


def test_a_right_and_a_wrong_rule():
    assert error_of(correct=True) < 1e-7
    # rejected with probability 0.3; then P instead of the residual (5 / 6, 0, 1 / 6)
    np.testing.assert_allclose(error_of(correct=False), 0.3 * (5 / 6 - 0.5), atol=1e-6)


class OnDevice(torch.Tensor):
    """Like a tensor on a GPU: NumPy cannot read it before .cpu()."""

    def __array__(self, *_):
        raise TypeError("can't convert cuda:0 device type tensor to numpy: use Tensor.cpu()")

    def numpy(self):
        return self.__array__()

    def cpu(self):
        return self.as_subclass(torch.Tensor)


class Bigram(torch.nn.Module):
    config = SimpleNamespace(vocab_size=3)

    def __init__(self, seed):
        super().__init__()
        rows = np.random.default_rng(seed).normal(size=(3, 3))
        self.rows = torch.nn.Parameter(torch.tensor(rows), requires_grad=False)

    def forward(self, ids):
        return SimpleNamespace(logits=self.rows[ids].as_subclass(OnDevice))


def test_tensors_on_a_device_that_numpy_cannot_read():
    from students.torch_functions import decode

    target, draft = Bigram(0), Bigram(1)

    def on_device(target_probs, draft_probs, draft_tokens):
        return decode(*(one.as_subclass(OnDevice) for one in (target_probs, draft_probs, draft_tokens)))

    def generate(prompt, n_tokens):
        ids = torch.tensor([prompt]).as_subclass(OnDevice)
        for _ in range(n_tokens):
            p, q = (torch.softmax(model(ids).logits[0, -1], -1) for model in (target, draft))
            token = torch.multinomial(q, 1)
            if torch.rand(1) >= float(p[token] / q[token]):
                token = torch.multinomial((p - q).clamp(min=0), 1)
            ids = torch.cat([ids, token[None].as_subclass(OnDevice)], dim=1)
        return ids[0]

    check_function(on_device, array=torch.tensor)
    assert audit_loop(generate, target, draft, n_tokens=2).verdict == "exact"
