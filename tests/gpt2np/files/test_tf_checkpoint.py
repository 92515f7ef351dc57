"""The reader of TensorFlow's format, on files that TensorFlow wrote (golden_tf/) and by the bytes.

What is refused: test_refusals.py; random damage: test_mutants.py.
"""

import numpy as np
import pytest
from helpers import ROOT
from write_tf import block, entry, field, varint, with_block

from gpt2np import CheckpointError
from gpt2np.files.crc32c import POLYNOMIAL, crc32c
from gpt2np.files.names import hub_names
from gpt2np.files.params import read_config
from gpt2np.files.safetensors import read_safetensors
from gpt2np.files.tf_checkpoint import read_tf_checkpoint

MODEL, MANY = ROOT / "tests/golden_tf/model/model.ckpt", ROOT / "tests/golden_tf/many/many"


def test_an_index_of_several_blocks_and_two_data_files(monkeypatch):
    monkeypatch.syspath_prepend(MANY.parent.parent)
    import many

    expected = many.tensors() | {"brain": np.array(many.BFLOAT16, np.float32)}
    read = read_tf_checkpoint(MANY, verify=True)
    assert list(read) == sorted(expected)
    for name, array in read.items():
        assert array.dtype == expected[name].dtype and type(array) is np.ndarray
        np.testing.assert_array_equal(array, expected[name])
    assert MANY.with_name("many.index").stat().st_size > 262144  # TensorFlow's blocks have 256 KiB


def test_the_same_model_from_both_formats_is_bitwise_identical():
    """Its logits are those of transformers: ../test_layers.py."""
    ours = hub_names(read_tf_checkpoint(MODEL, verify=True), "file")
    theirs = read_safetensors(ROOT / "tests/golden/model.safetensors")
    assert read_config(MODEL.with_name("hparams.json")) == read_config(ROOT / "tests/golden/config.json")
    theirs = {name.removeprefix("transformer."): array for name, array in theirs.items()}
    assert len(ours) == 28
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype == np.float32 and array.shape == theirs[name].shape
        assert array.tobytes() == theirs[name].tobytes(), name


def test_tensors_are_views_of_the_file():
    wte = base = read_tf_checkpoint(MODEL)["model/wte"]
    while base.base is not None and isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap) and not wte.flags.writeable


def crc_by_bits(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_checksum_equals_that_of_the_plain_loop_and_those_of_the_rfc():
    """RFC 3720, appendix B.4."""
    for n in (0, 1, 2, 3, 4, 15, 16, 17, 100, 1001, 4095, 4096, 4097, 20_001):
        data = np.random.default_rng(n).integers(0, 256, n, dtype=np.uint8)
        assert crc32c(data) == crc32c(data.tobytes()) == crc_by_bits(data.tolist()), n
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E and crc32c(bytes(range(31, -1, -1))) == 0x113FDB5C


@pytest.fixture
def read(tmp_path):
    """read(entries) of an index with a data file of two float32 numbers."""
    (tmp_path / "c.data-00000-of-00001").write_bytes(np.array([1.5, -2], "<f4").tobytes())

    def write_and_read(*entries, verify=False):
        (tmp_path / "c.index").write_bytes(with_block(block([(b"", field(1, 1)), *entries])))
        return read_tf_checkpoint(tmp_path / "c", verify=verify)

    return write_and_read


def test_fields_as_protocol_buffers_have_them(read):
    """Of a number given twice the last counts; fields of every kind are passed over, and 15 is the number of none."""
    kinds = {0: varint(2**40), 1: b"\xff" * 8, 2: varint(3) + b"abc", 5: b"\xff" * 4}
    extra = b"".join(varint(15 * 8 + kind) + value for kind, value in kinds.items())
    found = read((b"x", extra + entry(extra=extra)), (b"y", entry(extra=field(1, 3))))  # float32; float32, then int32
    assert found["x"].tolist() == [1.5, -2]
    assert found["y"].tolist() == np.array([1.5, -2], "<f4").view("<i4").tolist() and found["y"].dtype == np.int32


def test_a_wrong_checksum_of_a_tensor_is_detected_on_request(read):
    wrong = b"x", entry(extra=varint(6 * 8 + 5) + bytes(4))
    assert len(read(wrong)) == 1
    with pytest.raises(CheckpointError, match="variable 'x' does not have its checksum"):
        read(wrong, verify=True)
