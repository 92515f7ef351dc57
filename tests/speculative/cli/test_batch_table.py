"""The command batch_table: the arithmetic is tested in theory/test_roofline.py."""

import json

import pytest
from command import refusal, run_here

from speculative.theory.roofline import ACCELERATORS, LLAMA_1B, LLAMA_8B, batch_best_K


def report(*options):
    return json.loads(run_here("batch_table", *options, "--json").stdout)


def test_a_row_is_that_of_the_formulas():
    for row in report("--accelerator=A100", "--alpha=0.9", "--context=300", "--batch_sizes=3,200")["rows"]:
        K, speedup = batch_best_K(ACCELERATORS["A100"], LLAMA_8B, LLAMA_1B, 0.9, row["batch"], 300)
        assert (row["K"], row["speedup"]) == (K, speedup)


def test_it_says_where_speculation_stops_paying():
    sizes = "--context=100", "--batch_sizes=275,276,100000"
    found = report(*sizes)
    assert [row["K"] > 0 for row in found["rows"]] == [True, False, False]
    assert [row["fits"] for row in found["rows"]] == [True, True, False]
    page = run_here("batch_table", *sizes).stdout
    assert "up to a batch size of 275 (not at 276)" in page and "100000  memory is full" in page
    assert "up to a batch size of 375 (the memory is full)" in run_here("batch_table").stdout
    assert "up to a batch size of 4 (the last tried)" in run_here("batch_table", "--batch_sizes=4").stdout
    assert "Speculation pays at no batch size up to 375." in run_here("batch_table", "--alpha=0.1").stdout
    heavy = "--draft_params=7.5", "--draft_shape=1,1,1,1", "--context=8000"
    assert "Speculation pays from a batch size of " in run_here("batch_table", *heavy).stdout


def test_several_accelerators_and_numbers_of_ones_own():
    found = report("--n_accelerators=2", "--flops=400", "--bytes=1", "--draft_params=0")
    assert (found["flops"], found["bandwidth"], found["draft"]) == (8e14, 6.7e12, None)
    assert found["free_tokens"] == pytest.approx(8e14 / 6.7e12 / 2)
    assert "; flops: as given)" in run_here("batch_table", "--flops=400").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--flops=990e12"], "--flops: expected a number from 0.001 to 1000000, got 990000000000000.0"),
        (
            ["--target_shape=32,128"],
            "--target_shape: expected layers, heads, KV heads and size of a head, such as 32,32",
        ),
        (
            ["--target_params=70"],
            "142.5 GB of weights and a sequence of 1,000 tokens do not fit 80 GB of memory: give m",
        ),
        (["--accelerator=H10"], "--accelerator: there is no 'H10': did you mean H100?"),
        (["--batch_sizes=0"], "--batch_sizes: expected a whole number from 1 to 100000, got 0"),
    ],
)
def test_refusals(options, message):
    assert refusal("batch_table", *options).startswith(message)
