"""The reader of TensorFlow's format, on files that TensorFlow wrote (golden_tf/) and on damaged ones."""

import sys

import numpy as np
import pytest
from helpers import ROOT
from mutants import damaged, source
from write_tf import block, entry, field, varint, with_block, write_index

from gpt2np import CheckpointError
from gpt2np.files.crc32c import POLYNOMIAL, crc32c
from gpt2np.files.params import openai_names, read_config, read_hparams
from gpt2np.files.safetensors import read_safetensors
from gpt2np.files.tf_checkpoint import read_table, read_tf_checkpoint

MODEL, MANY = ROOT / "tests/golden_tf/model/model.ckpt", ROOT / "tests/golden_tf/many/many"


def test_an_index_of_several_blocks_and_two_data_files():
    sys.path.insert(0, str(MANY.parent.parent))
    import many

    expected = many.tensors() | {"brain": np.array(many.BFLOAT16, np.float32)}
    read = read_tf_checkpoint(MANY, verify=True)
    assert read.keys() == expected.keys() and list(read) == sorted(read)
    for name, array in read.items():
        assert array.dtype == expected[name].dtype and type(array) is np.ndarray
        np.testing.assert_array_equal(array, expected[name])
    n_blocks = MANY.with_name("many.index").stat().st_size // 262144 + 1  # TensorFlow's blocks have 256 KiB
    assert n_blocks > 1


def test_the_same_model_from_both_formats_is_bitwise_identical():
    """Its logits are those of transformers: ../test_layers.py."""
    ours = openai_names(read_tf_checkpoint(MODEL, verify=True))
    theirs = read_safetensors(ROOT / "tests/golden/model.safetensors")
    assert read_hparams(MODEL.with_name("hparams.json")) == read_config(ROOT / "tests/golden/config.json")
    ours, theirs = ({k.removeprefix("transformer."): v for k, v in some.items()} for some in (ours, theirs))
    assert len(ours) == 28 and ours.keys() <= theirs.keys()
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype == np.float32 and array.shape == theirs[name].shape
        assert array.tobytes() == theirs[name].tobytes(), name


def test_tensors_are_views_of_the_file():
    wte = base = read_tf_checkpoint(MODEL)["model/wte"]
    while base.base is not None and isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap) and not wte.flags.writeable


# ------------------------------------------------------------------------------------------------ checksums


def crc_by_bits(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_checksum_equals_that_of_the_plain_loop_and_those_of_the_rfc():
    """RFC 3720, appendix B.4."""
    for n in (0, 1, 2, 3, 4, 15, 16, 17, 100, 1001, 4095, 4096, 4097, 70_001):
        data = np.random.default_rng(n).integers(0, 256, n, dtype=np.uint8)
        assert crc32c(data) == crc32c(data.tobytes()) == crc_by_bits(data.tolist()), n
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E and crc32c(bytes(range(31, -1, -1))) == 0x113FDB5C


# ------------------------------------------------------------------------------------------------ damage


HEADER = (b"", field(1, 1))


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "c.data-00000-of-00001").write_bytes(np.array([1.5, -2], "<f4").tobytes())
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([HEADER, (b"x", entry(dtype=7))], "variable 'x' is of type 7, expected one of"),
        ([HEADER, (b"x", entry(shape=(3,)))], r"variable 'x' of type 1 and shape \[3\] cannot have 8 bytes"),
        ([HEADER, (b"x", entry(shape=(2**40, 2**40)))], "cannot have 8 bytes"),
        ([HEADER, (b"x\x1b[2J", entry(dtype=7))], r"variable 'x\\x1b\[2J' is of type 7"),
        ([HEADER, (b"x", entry(shape=(2**62, 0, 2**62), size=0))], "variable 'x' has the impossible shape"),
        (
            [HEADER, (b"x", entry(offset=4))],
            "variable 'x' lies at bytes 4 to 12 of data file 0, but the data files have",
        ),
        ([HEADER, (b"x", entry(shape=(2**58,), size=2**60))], "lies at bytes 0 to 1152921504606846976 of data file 0"),
        ([HEADER, (b"x", entry(shard=1))], "of data file 1, but the data files have"),
        ([HEADER, (b"x", field(1, b"text"))], "variable 'x' is of type 0"),
        ([HEADER, (b"x", b"\x0b")], "field of the unknown kind 3"),
        ([HEADER, (b"x", b"\x12\x7f")], "variable 'x' ends at byte 2, in the middle of 127 bytes"),
        ([HEADER, (b"x", b"\xff" * 11)], "variable 'x' ends at byte 11"),
        ([(b"", field(1, 1) + field(2, 1)), (b"x", entry())], "the data are big-endian"),
        ([(b"x", entry())], "of data file 0, but the data files have"),
    ],
)
def test_a_malformed_entry_is_named(checkpoint, entries, message):
    write_index(checkpoint.with_suffix(".index"), entries)
    with pytest.raises(CheckpointError, match=message) as error:
        read_tf_checkpoint(checkpoint)
    assert "c.index" in str(error.value)


def test_fields_as_protocol_buffers_have_them(checkpoint):
    """Of a number given twice the last counts; fields of every kind are passed over, and 15 is the number of none."""
    kinds = {0: varint(2**40), 1: b"\xff" * 8, 2: varint(3) + b"abc", 5: b"\xff" * 4}
    extra = b"".join(varint(15 * 8 + kind) + value for kind, value in kinds.items())
    twice = entry(extra=field(1, 3))  # the type: float32, then int32
    write_index(checkpoint.with_suffix(".index"), [HEADER, (b"x", extra + entry(extra=extra)), (b"y", twice)])
    read = read_tf_checkpoint(checkpoint)
    assert read["x"].tolist() == [1.5, -2]
    assert read["y"].tolist() == np.array([1.5, -2], "<f4").view("<i4").tolist() and read["y"].dtype == np.int32


def beyond():
    whole = bytearray(MODEL.with_name("model.ckpt.index").read_bytes())
    whole[-48:-8] = (varint(0) + varint(0) + varint(900) + varint(50)).ljust(40, b"\0")
    return bytes(whole)


def flipped(at):
    data = bytearray(block([HEADER, (b"x", entry())]))
    data[at] ^= 1
    return with_block(bytes(data))


INDICES = {  # the type of compression is part of what is checked
    **{f"a bit of the trailer, {at}": (flipped(at), "the block at byte 0 does not have its ch") for at in range(-5, 0)},
    "compressed": (with_block(block([HEADER], 1)), "the block at byte 0 is compressed"),
    "a block beyond the end": (beyond(), "the block at byte 900 does not have its checksum"),
    "nothing": (b"", "c.index"),
}


@pytest.mark.parametrize("case", INDICES)
def test_a_damaged_block_is_refused(checkpoint, case):
    checkpoint.with_suffix(".index").write_bytes(INDICES[case][0])
    with pytest.raises(CheckpointError, match=INDICES[case][1]):
        read_table(checkpoint.with_suffix(".index"))


def test_missing_files_are_named(checkpoint):
    with pytest.raises(FileNotFoundError, match=r"c\.index"):
        read_tf_checkpoint(checkpoint)
    for n in (2, 2**63):
        write_index(checkpoint.with_suffix(".index"), [(b"", field(1, n)), (b"x", entry()), (b"y", entry())])
        with pytest.raises(FileNotFoundError, match=rf"c\.data-00000-of-0*{n}"):
            read_tf_checkpoint(checkpoint)


def test_a_wrong_checksum_of_a_tensor_is_detected_on_request(checkpoint):
    write_index(checkpoint.with_suffix(".index"), [HEADER, (b"x", entry(extra=varint(6 * 8 + 5) + bytes(4)))])
    assert len(read_tf_checkpoint(checkpoint)) == 1
    with pytest.raises(CheckpointError, match="variable 'x' does not have its checksum"):
        read_tf_checkpoint(checkpoint, verify=True)


@pytest.mark.parametrize("n", [40, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_damaged_index_is_refused_or_read_correctly(tmp_path, n):
    """Damage anywhere in it: CheckpointError, or the right variables if only unused bytes were hit."""
    good, whole = read_tf_checkpoint(MODEL), MODEL.with_name("model.ckpt.index").read_bytes()
    for seed in range(n):
        (tmp_path / "f.index").write_bytes(damaged(whole, source(seed)))
        try:
            read = read_tf_checkpoint(tmp_path / "f", data_files=[MODEL.with_name("model.ckpt.data-00000-of-00001")])
        except CheckpointError as error:
            assert "f.index" in str(error)
        else:
            assert read.keys() == good.keys() and all(np.array_equal(read[name], good[name]) for name in good)
