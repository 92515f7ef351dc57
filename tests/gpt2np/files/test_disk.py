"""Downloads and the disk: no room, a file in the way, an open file. Locks: test_processes.py."""

import os

import pytest
from systems import needs_full_device, needs_links

from gpt2np import CheckpointError, DownloadError
from gpt2np.files import download


@needs_full_device
@needs_links
def test_a_disk_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "f.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setattr(download, "forget", lambda part: None)
    message = r"124M cannot be written \(No space left on device\)"
    with pytest.raises(DownloadError, match=message), download.disk_errors(tmp_path / "124M"):
        download.download_file(f"{server.url}/f", tmp_path / "f", lambda path: None)
    with pytest.raises(DownloadError, match="124M cannot be written"), download.disk_errors(tmp_path / "124M"):
        (tmp_path / "file" / "124M").mkdir(parents=True)


def test_a_damaged_file_that_its_check_holds_open_can_be_deleted(server, tmp_path, monkeypatch):
    """As on Windows: an open file cannot be deleted, and the frames of a traceback may hold one."""
    opened = []

    class Held:
        def __init__(self):
            opened.append("one")

        def __del__(self):
            opened.clear()

    def check(path):
        held = Held()
        raise CheckpointError(f"damaged: {held}")

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda *path, **options: unlink(*path, **options) if not opened else 1 / 0)
    with pytest.raises(DownloadError, match="damaged"):
        download.download_file(f"{server.url}/f", tmp_path / "f", check)
