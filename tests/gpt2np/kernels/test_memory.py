import platform
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT, random_array

from gpt2np.cache import KVCache
from gpt2np.kernels.matmul import pack


@pytest.mark.parametrize("name", ["panels", "slabs"])
def test_weights_and_the_cache_begin_at_a_line_of_the_cache(name):
    w, layers = random_array(256, 768), KVCache(n_layer=2, n_head=3, n_ctx=45, d_head=7).layers
    arrays = [pack(w, name).parts, pack(w.T, name).parts, *(layer.keys for layer in layers)]
    arrays += [layer.values for layer in layers]
    assert [array.ctypes.data % 64 for array in arrays] == [0] * 6
    assert [np.count_nonzero(array) for array in arrays] == [w.size] * 2 + [0] * 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have rules of their own")
def test_the_memory_of_freed_arrays_is_kept_for_the_next():
    """3 MB arrays, as a prompt makes them: without new pages from the system once a model exists."""
    code = """
import resource, numpy as np, gpt2np
model, _ = gpt2np.load("tiny-draft")
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        [np.ones(3 * 2**18, np.float32) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=True)
    assert int(run.stdout) < 768  # of 4 KiB: fewer than one array has
