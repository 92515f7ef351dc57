"""What a download leaves on the disk: nothing if nothing arrived, and no damaged file, even by Windows' rules."""

import errno
import functools
import os
import pathlib
import threading
import time
import types

import fake_msvcrt
import numpy as np
import pytest
from file_server import BODY, closing, cut_after, fetch, left_over, partial, redirect, serve, status
from helpers import ROOT
from systems import needs, needs_proc

import gpt2np
from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download


@pytest.mark.parametrize("fault", [status(404), status(503), redirect("http://.."), closing(cut_after(0))])
def test_a_failure_without_a_byte_leaves_no_file(server, tmp_path, fault):
    server.faults["/f"] = fault
    with pytest.raises(DownloadError):
        fetch(server, tmp_path / "f")
    assert left_over(tmp_path / "f") == []


@pytest.fixture
def windows(monkeypatch):
    """As on Windows, an open or mapped file can be neither deleted nor renamed, and locks are msvcrt's."""

    def in_use(path):
        path = os.path.realpath(path)
        opened = {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
        return path in opened or path in pathlib.Path("/proc/self/maps").read_text("utf-8")

    def refusing(call):
        def guarded(path, *more, **options):
            if any(in_use(p) for p in (path, *more)):
                raise PermissionError(32, "The process cannot access the file because it is being used", str(path))
            return call(path, *more, **options)

        return guarded

    for owner, name in ((os, "replace"), (os, "unlink"), (pathlib.Path, "unlink")):
        monkeypatch.setattr(owner, name, refusing(getattr(owner, name)))
    monkeypatch.setattr(download, "fcntl", None)
    monkeypatch.setattr(download, "msvcrt", fake_msvcrt, raising=False)
    return in_use


@needs_proc  # where what is open is looked up
def test_damaged_files_are_removed_where_open_files_cannot_be(model_server, small_model, tmp_path, windows):
    held = np.memmap(ROOT / "README.md", mode="r")
    assert windows(ROOT / "README.md") and not windows(ROOT / "LICENSE") and len(held)
    name, other = "/124M/model.safetensors", "/124M/model.ckpt.data-00000-of-00001"
    damaged = small_model["model.safetensors"][:-4]
    model_server.faults[name] = [lambda handler, body: serve(handler, damaged), cut_after(50_000), partial(BODY)]
    gpt2np.load("124M", tmp_path / "a")
    model_server.files[other] = bytes(len(model_server.files[other]))
    with pytest.raises(DownloadError, match="does not have its checksum"):
        gpt2np.load("124M", tmp_path / "b", source="openai")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@needs_proc
def test_a_mapping_that_a_traceback_would_hold(server, tmp_path, windows):
    def mapped(path):
        data = np.memmap(path, mode="r")
        try:
            raise KeyError("a frame that holds the file")
        except KeyError:
            raise CheckpointError(f"damaged: {data[:3]}") from None

    server.faults["/f"] = [cut_after(200_000), partial(BODY[::-1])]
    with pytest.raises(DownloadError, match="damaged"):
        fetch(server, tmp_path / "f", mapped)


@needs_proc
def test_one_download_at_a_time_where_open_files_cannot_be_removed(tmp_path, windows, capsys):
    folder, order = tmp_path / "355M" / "downloading", []

    def work(name):
        with download.workplace(folder):
            order.append(name)
            time.sleep(0.3)
            order.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order in (list("aabb"), list("bbaa"))
    assert "another process is downloading" in capsys.readouterr().err
    assert not folder.exists()


@needs_proc
@pytest.mark.parametrize("system", ["Windows", "others"])
def test_a_file_system_without_locks_is_an_error_and_not_a_wait(system, tmp_path, windows, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    if system == "Windows":
        monkeypatch.setattr(fake_msvcrt, "locking", no_locks)
    else:
        monkeypatch.setattr(download, "fcntl", types.SimpleNamespace(flock=no_locks, LOCK_EX=2, LOCK_NB=4))
    with pytest.raises(DownloadError, match=r"124M cannot be written \(Invalid argument: it cannot be locked\)$"):
        gpt2np.load("124M", tmp_path)


@needs("deleting a file that is open", os.name != "nt")
def test_a_lock_whose_file_is_gone_or_another_by_now_is_no_lock(tmp_path, monkeypatch):
    """The process that had it before deletes it at its end; whoever waited would otherwise hold a lock of nothing."""
    try_lock, path = download.try_lock, tmp_path / "lock"

    def deleting(another, file):
        path.unlink()
        if another:
            path.touch()
        return try_lock(file)

    for another in (False, True):
        monkeypatch.setattr(download, "try_lock", functools.partial(deleting, another))
        assert download.take_lock(path) is None
    monkeypatch.setattr(download, "try_lock", try_lock)
    with download.take_lock(path) as file, path.open("a+b") as second:
        assert not file.closed and not try_lock(second)
    assert file.closed
