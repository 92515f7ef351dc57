"""The exercises of notebook 10."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gpt2np
from checks import exercise, refuse_library
from gpt2np.files.crc32c import crc32c, masked_crc32c
from gpt2np.files.safetensors import read_safetensors


@exercise
def exercise_1(fn):
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        grid = np.arange(6, dtype=np.float32).reshape(2, 3)
        for i, (tensors, hint) in enumerate([
            ({"w": grid}, "one matrix of float32"),
            ({"w": grid, "b": grid[0]}, "the second tensor begins where the first ends"),
            ({"h": np.float16(grid), "n": np.array([2**40, -1])}, "each type has its name and its size"),
            ({"w": grid.T}, "a transposed array: write its rows, not its memory as it is"),
            ({"s": np.array(3, np.float32), "e": grid[:0]}, "the shapes () and (0, 3)"),
            ({"Größe": grid}, "letters beyond English: the length counts bytes, not characters"),
            ({}, "no tensors: there is still a header"),
        ]):  # fmt: skip
            found = written(fn, Path(folder) / f"{i}.safetensors", tensors, hint)
            assert found.keys() == tensors.keys(), f"{hint}: expected the names {[*tensors]}, found {[*found]}"
            for name, tensor in tensors.items():
                back = found[name]
                assert back.dtype == tensor.dtype, f"{hint}: {tensor.dtype} became {back.dtype}"
                assert back.shape == tensor.shape, f"{hint}: shape {tensor.shape} became {back.shape}"
                swapped = np.array_equal(back.byteswap(), tensor) and not np.array_equal(back, tensor)
                assert not swapped, f"{hint}: the numbers are little-endian, as the length is"
                assert np.array_equal(back, tensor), f"{hint}: {tensor.tolist()} became {back.tolist()}"
    return "right: every type and shape is read back"


def written(fn, path, tensors, hint):
    """The tensors that read_safetensors finds in the file that fn writes."""
    fn(path, tensors)
    assert path.exists(), "there is no file: write it to `path`"
    content = path.read_bytes()
    n, total = int.from_bytes(content[:8], "little"), sum(tensor.nbytes for tensor in tensors.values())
    try:
        json.loads(content[8 : 8 + n])
    except ValueError:
        if int.from_bytes(content[:4], "little") < len(content) and content[4:5] == b"{":
            raise AssertionError("the length of the header takes 8 bytes, not 4") from None
        if int.from_bytes(content[:8], "big") < len(content):
            raise AssertionError("the length of the header is little-endian: the lowest byte comes first") from None
        raise AssertionError(
            "the first 8 bytes are the length of the header in bytes, the lowest byte first; "
            f"they say {n}, and the next {n} bytes are not JSON"
        ) from None
    n_left = len(content) - 8 - n
    assert n_left == total, (
        f"the tensors have {total} bytes, and {n_left} follow the header: write each tensor in its own type"
    )
    try:
        return read_safetensors(path)
    except gpt2np.CheckpointError as error:
        raise AssertionError(f"{hint}; read_safetensors says: {str(error).replace(str(path), 'the file')}") from None


@exercise
def exercise_2(fn):
    refuse_library(fn, "Cursor")
    for data, position, right, hint in [
        (b"\x05", 0, (5, 1), "a byte below 128 is the whole number"),
        (b"\x05\x07", 1, (7, 2), "start at `position`"),
        (b"\x05\x07", 0, (5, 1), "stop after the first byte below 128"),
        (b"\xe6\x06", 0, (870, 2), "102 + 6 * 128: without the high bit, the lowest 7 first"),
        (b"\x80\x01", 0, (128, 2), "a byte can be 128: seven bits of 0, and more to come"),
        (b"\xff\xff\xff\x7f", 0, (2**28 - 1, 4), "each byte is worth 128 times the one before"),
        (b"\xff" * 8 + b"\x7f", 0, (2**63 - 1, 9), "a number can have 63 bits: use Python's int"),
        (b"\x00\x96\x01\x02", 1, (150, 3), "the position returned counts from the start of the data"),
    ]:
        yours = fn(data, position)
        assert yours is not None, "nothing came back: is a return missing?"
        assert isinstance(yours, (tuple, list)) and len(yours) == 2, "return the number and the position after it"
        mistakes = {
            (102 * 128 + 6, 2): "the lowest 7 bits come first: 102 + 6 * 128, not 102 * 128 + 6",
            (230 + 6 * 128, 2): "the high bit of e6 is not part of the number: 102, not 230",
            (102 + 6 * 256, 2): "each byte has 7 bits of the number: the second counts 128 times, not 256 times",
        }
        mistakes[right[::-1]] = "the number comes first, the position second"
        if position:
            mistakes[right[0], right[1] - position] = "the position returned counts from the start of the data"
        elif len(data) == 1:
            mistakes[right[0], 0] = "return the position after the number, not that of its last byte"
        hint = hint if tuple(yours) == right else mistakes.get(tuple(yours), hint)
        assert tuple(yours) == right, f"{hint}: {data.hex(' ')} from {position} is {right}, not {yours}"
    return "right: 7 bits a byte, the lowest first"


@exercise
def exercise_3(fn):
    refuse_library(fn, "crc32c", "masked_crc32c")
    right, yours = crc32c(b"123456789"), fn(b"123456789")
    assert yours is not None, "nothing came back: is a return missing?"
    assert isinstance(yours, int | np.integer), f"expected a whole number, got {yours!r}"
    known = {
        right ^ 0xFFFFFFFF: "flip all 32 bits at the end",
        right - 2**32: "~ gives a negative number in Python: flip the 32 bits with ^ 0xFFFFFFFF",
        0xA71C05DF: "the register starts with all ones, 0xFFFFFFFF",
        0x58E3FA20: "the register starts with all ones, 0xFFFFFFFF, and is flipped at the end",
        2166479968: "shift first, then xor: the bit that was shifted out decides",
        3130929547: "test the lowest bit before the shift: afterwards it is a different bit",
        3152373923: "the bytes have no effect: xor each of them into the register",
        2776927721: "one shift for each byte; it takes 8",
        115665815: "shift to the right: the lowest bit goes first",
        4068743102: "0x1EDC6F41 is for shifts to the left; to the right it is 0x82F63B78, the bits in reverse",
        0xCBF43926: "that is the CRC-32 of zip files, which has a different polynomial",
        masked_crc32c(b"123456789"): "that is TensorFlow's masked form; the plain one is wanted here",
    }
    assert yours == right, known.get(yours) or f"expected {right} for b'123456789', got {yours}"
    assert fn(b"") == 0, "the checksum of no bytes is 0: all ones, flipped"
    for data in b"\x00", bytes(5), bytes(range(256)):
        assert fn(data) == crc32c(data), f"expected {crc32c(data):#x} for {data[:8]!r}, got {fn(data):#x}"
    return f"right: {right:#x} for b'123456789', and for longer data"
