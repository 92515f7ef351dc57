"""The page on many texts: its program for a cluster, whose texts are those of one process."""

import json
import subprocess
import sys

import pytest
from helpers import ROOT

from speculative import ModelDrafter, Sampling, SpeculativeSampler
from speculative.cli.prompts import held_out

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
HERE = (
    "import runpy, sys, ray; ray.init(num_cpus=4); sys.argv = sys.argv[1:]; runpy.run_path('texts.py', {}, '__main__')"
)


@pytest.mark.cluster
def test_the_texts_of_two_actors_are_those_of_one_process(tmp_path, tiny_pair):
    pytest.importorskip("ray.data")
    target, draft, tokenizer = tiny_pair
    prompts = [tokenizer.decode(tokens) for tokens in held_out(tokenizer, 16)]
    lines = [json.dumps({"question_id": i, "prompt": prompt}) for i, prompt in enumerate(prompts)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(lines))
    [program] = [block for block in PAGE.split("```python\n")[1:] if block.startswith("import sys\n\nimport ray")]
    (tmp_path / "texts.py").write_text(program.partition("```")[0])
    command = [sys.executable, "-c", HERE, "texts.py", "prompts.jsonl", "texts", "2"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300, capture_output=True)
    found = [json.loads(line) for file in (tmp_path / "texts").iterdir() for line in file.read_text().splitlines()]
    sampler = SpeculativeSampler(target, ModelDrafter(draft), K=3, sampling=Sampling(temperature=0.8))
    for row in sorted(found, key=lambda row: row["question_id"]):
        text = sampler.generate(tokenizer.encode(row["prompt"]), 64, row["question_id"])
        assert row["prompt"] == prompts[row["question_id"]] and row["text"] == tokenizer.decode(text.tokens)
    assert len(found) == len(prompts)
