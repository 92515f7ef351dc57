"""The names in an answer's code, as far as the exercises ask for them."""

import functools
import math

import pytest

import speculative
from speculative import rejection
from speculative import rejection as r
from speculative.testing.names import names_in


class Delegating:
    made = staticmethod(lambda: [speculative.rejection for _ in range(1)])

    def __call__(self, *given):
        return self.made()[0](*given)


@pytest.mark.parametrize(
    "answer",
    [
        rejection,
        functools.partial(rejection),
        functools.cache(rejection),
        lambda *given: r(*given),
        lambda *given: [speculative.rejection(*given) for _ in range(1)],
        lambda *given: (lambda: rejection(*given))(),
        Delegating,
        Delegating(),
        type("Mine", (Delegating,), {}),
        type("rejection", (), {}),
    ],
)
def test_the_librarys_own_is_found_in_any_form(answer):
    assert "rejection" in names_in(answer)


def test_other_names_and_attributes_of_other_modules_are_not():
    rejections = 0
    assert "rejection" not in names_in(lambda rejection: rejection + rejections)
    assert "softmax" not in names_in(lambda x: math.softmax(x)) and "softmax" in names_in(lambda x: x.softmax())
