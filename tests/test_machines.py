"""The tests in which arithmetic matters, as on other machines: `python -m pytest -m machines`, several minutes.

OpenBLAS uses the kernels that OPENBLAS_CORETYPE names, if the processor can run them. The other settings are those that
people's machines have.
"""

import json
import os
import subprocess
import sys

import pytest
from helpers import ROOT

pytestmark = pytest.mark.machines
SETTINGS = [
    *({"OPENBLAS_CORETYPE": kernels} for kernels in ("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")),
    *({"OPENBLAS_NUM_THREADS": n} for n in ("1", "2", "16")),
    *({"GPT2NP_THREADS": n} for n in ("1", "2", "16")),
    *({"GPT2NP_MATMUL": name} for name in ("slabs", "panels")),
]
PARTS = [
    "tests/gpt2np/kernels",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests" / "gpt2np").glob("test_*.py"))),
    *(f"tests/speculative/test_{name}.py" for name in ("reference", "sampler", "together")),
    "tests/speculative/verifiers/test_exact_rules.py",
    "tests/speculative/models/test_models.py",
    "tests/speculative/cli/test_transcripts.py",
    "tests/docs/test_readme.py",
]
DESCRIBE = "import json; from gpt2np.kernels import matmul; print(json.dumps(matmul.describe()))"


def child(setting, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **setting}, capture_output=True, text=True)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "=".join(*setting.items()))
def test_the_suite_on_a_machine_with(setting):
    [(name, value)] = setting.items()
    if name == "OPENBLAS_CORETYPE" and name in os.environ:
        pytest.skip(f"{name} is set on this machine, to {os.environ[name]}")
    described = child(setting, "-c", DESCRIBE)
    if described.returncode < 0:
        pytest.skip(f"this processor cannot run the kernels of {value}")
    assert described.returncode == 0, described.stderr
    chosen, probe = (json.loads(described.stdout)[key] for key in ("strategy", "probe"))
    if name == "GPT2NP_MATMUL" and not probe[value]["invariant"]:
        pytest.skip(f"{value} is not batch-invariant with these kernels")
    assert probe[chosen]["invariant"]
    suite = child(setting, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *PARTS)
    assert suite.returncode == 0, suite.stdout
