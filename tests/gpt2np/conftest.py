import pytest

from gpt2np.kernels import matmul, threads


@pytest.fixture(params=[name for name in ("panels", "slabs") if name == "slabs" or matmul.is_invariant(name)])
def strategy(request, monkeypatch):
    """Each strategy that is batch-invariant on this machine; new models have it."""
    monkeypatch.setattr(matmul, "chosen", request.param)
    return request.param


@pytest.fixture
def n_threads(request, monkeypatch):
    """Products in this many threads, however small they are."""
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "n_threads", lambda for_prompts=False: request.param)
    monkeypatch.setattr(threads, "idle", [])
    return request.param
