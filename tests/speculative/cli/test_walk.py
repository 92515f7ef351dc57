"""A walk over options x settings, in both directions: no option is accepted in silence that changes nothing, and of
none that acts it is said that it has no effect.

Whether it has is found out by running it: an option that is refused is run as well, past the refusal. A try is a value
that acts if any value does; the settings of a few tokens are for options that act at once.
"""

import json
from pathlib import Path

import pytest
from command import AGAIN, run_here, timeless

from speculative.cli.commands import compare, generate
from speculative.cli.drafters import DRAFTERS
from speculative.cli.options import entries_of
from speculative.cli.prompts import tales

PROMPT = "the king and the queen and the king had the queen and the"
TRIES = {  # for generate
    "prompt": ["the fox"], "target_model_size": ["tiny-draft"], "draft_model_size": ["tiny-target", "tiny-draft"],
    "drafter": ["ngram", "none"], "K": ["1", "8", "2"], "temperature": ["0.7", "2"], "n_tokens_to_generate": ["7"],
    "verifier": ["gumbel", "typical", "lenient", "exact_match", "block", "traversal"], "seed": ["1", "2", "3"],
    "tree": ["5", "2x2"], "siblings": ["top", "drawn"], "draft_temperature": ["0", "1.5", "3"],
    "draft_tokenizer": ["text", "shared"], "corpus": ["corpus", "tales"], "n_max": ["1", "2"], "n_min": ["1", "3"],
    "exit_layer": ["1", "4"], "frequent": ["20"], "top_k": ["1", "2"], "top_p": ["0.1"], "min_p": ["0.9"],
    "repetition_penalty": ["9"],
    "presence_penalty": ["90"], "frequency_penalty": ["90"], "no_repeat_ngram_size": ["1"], "grammar": ["[A-Z]+"],
    "min_tokens": ["1"], "stop": ["e", "a", "i"], "prompt_file": ["prompts"], "models_dir": ["elsewhere"],
    "template": ["A tale. {prompt}"], "source": ["openai"], "engine": ["llama_cpp"],
}  # fmt: skip
IN_COMPARE = {
    "prompts": ["known", "tales"], "n_prompts": ["2", "9"], "template": ["A tale. {prompt}"], "n_lanes": ["2"],
    "plot_size": ["3x3"], "best": ["K", "drafter"], "prompt_file": ["corpus"],
}  # fmt: skip
UNKNOWN = {  # what nobody can know: whether <|endoftext|> is drawn, and whether a drafter of one's own draws
    "min_tokens": "", "seed": "mine.py", "verifier": "mine.py",
}  # fmt: skip
LEARNING = (
    "recycling",
    "prompt_lookup",
    "none",
)  # they draft little before they have seen a text; or tokens must recur
SETTINGS = [
    *(
        f"--drafter={name} --temperature={t}" + " --n_tokens_to_generate=60" * (name in LEARNING)
        for name in DRAFTERS
        if name != "forced"
        for t in (0, 1)
    ),
    "--drafter=forced --grammar=once_upon_a_time_there_was_a_king --n_tokens_to_generate=30",
    "--temperature=1 --tree=4", "--temperature=0 --tree=4", "--temperature=1 --tree=2x1",
    "--temperature=0 --tree=2x1 --n_tokens_to_generate=40",
    "--draft_temperature=1", "--draft_temperature=0 --temperature=1", "--draft_temperature=1 --tree=2x1",
    "--draft_temperature=1 --tree=4", "--siblings=top --tree=4 --temperature=1", "--drafter=mine.py:Again",
    "--temperature=1 --verifier=gumbel",
    "--drafter=none --temperature=1 --verifier=gumbel --n_tokens_to_generate=40",
    "--draft_model_size=tiny-target", "--drafter=heads --tree=6 --temperature=1", "--output=o.jsonl",
]  # fmt: skip
IN_DEFAULT_RUN = {"--draft_temperature=0 --temperature=1"}


@pytest.fixture(autouse=True)
def files(in_a_folder, monkeypatch):
    monkeypatch.setattr(generate, "LAPS", {})
    Path("corpus").write_text("the queen and the king had a garden, and the garden had a rose. " * 3)
    Path("tales").write_text(tales()[0][:40_000], encoding="utf-8")
    Path("prompts").write_text("Once upon a time there was a fox\n")
    Path("mine.py").write_text(AGAIN)


def outcome(command, words):
    """(what ran, in texts and counts, or None; what was said on standard error)."""
    Path("o.jsonl").unlink(missing_ok=True)
    result = run_here(command, *words, *([] if any("--output" in word for word in words) else ["--json"]))
    assert result.returncode in (0, 2) and "Traceback" not in result.stderr, result
    if result.returncode:
        return None, result.stderr
    if Path("o.jsonl").exists():
        parts = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()[1:]]
        return [{**part, "seed": 0} for part in parts], result.stderr
    found = timeless(json.loads(result.stdout))
    if command == "compare":
        return [{**row, "setting": 0} for row in found["rows"]], result.stderr
    kept = ("prompt", "texts", "tokens", "target_calls", "drafted", "accepted", "rejected")
    return {key: found["rows"][0][key] for key in kept}, result.stderr


def walk(command, setting, tries, monkeypatch):
    """The faults of the options in a setting, in words."""
    found, said = outcome(command, setting)
    assert found, said
    usual_of, faults = {tuple(setting): found}, []
    for name, values in tries.items():
        words = [word for word in setting if not word.startswith(f"--{name}=")]
        usual = usual_of.setdefault(tuple(words)) or outcome(command, words)[0]
        acts, is_explained = False, False
        for value in values:
            found, said = outcome(command, [*words, f"--{name}={value}"])
            says_no_effect = f"--{name} has no effect" in said
            if says_no_effect and found is None:
                with monkeypatch.context() as patch:
                    patch.setattr("speculative.cli.settings.without_effect", lambda options: {})
                    found, _ = outcome(command, [*words, f"--{name}={value}"])
            if says_no_effect and found is not None and found != usual:
                faults.append(f"--{name}={value} acts, and it is said that it has no effect")
            is_explained |= says_no_effect or found is None
            acts |= not says_no_effect and found is not None and found != usual
            if acts:
                break
        is_unknown = name in UNKNOWN and UNKNOWN[name] in " ".join(setting)
        if not (acts or is_explained or is_unknown):
            faults.append(f"--{name} is accepted, and {' and '.join(values)} change nothing")
    return faults


def test_every_option_has_a_try():
    results = {name for name, entry in entries_of(generate).items() if not entry.is_aside}
    assert {*TRIES} == results
    own = {name for name, entry in entries_of(compare).items() if not entry.is_aside} - results
    assert own <= {*IN_COMPARE}


@pytest.mark.parametrize(
    "setting", [pytest.param(each, marks=() if each in IN_DEFAULT_RUN else pytest.mark.slow) for each in SETTINGS]
)
def test_an_option_acts_or_it_is_said_that_it_does_not(setting, monkeypatch, request):
    if setting not in IN_DEFAULT_RUN:
        request.getfixturevalue("whole_models")
    words = [word.replace("_", " ") if word.startswith("--grammar") else word for word in setting.split()]
    words += [] if "n_tokens" in setting else ["--n_tokens_to_generate=14"]
    faults = walk("generate", [f"--prompt={PROMPT}", *words], TRIES, monkeypatch)
    assert not faults


@pytest.mark.parametrize(
    "setting",
    [
        *(pytest.param(s, marks=pytest.mark.slow) for s in ("", "--prompts=known", "--prompts=repeating")),
        "--prompt_file=prompts",
    ],
)
def test_the_options_of_compare_act_or_it_is_said_that_they_do_not(setting, whole_models, monkeypatch):
    words = [*setting.split(), "--n_tokens_to_generate=6", "--n_prompts=3" * (setting != "--prompt_file=prompts")]
    assert not walk("compare", [word for word in words if word], IN_COMPARE, monkeypatch)
