"""The outputs on a page are made again: each is written when it is there, and the machine is named when all are."""

from unittest.mock import Mock

import pytest
from helpers import script

run_blocks = script("dev/bench/run_blocks.py")
PAGE = """# Page
Machine: old

```
$ first
1
```

    no block

```
$ second | tail -n 2
2
3
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(run_blocks, "machine", lambda: "Machine: new")
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("outputs", "text", "expected", "failed"),
    [
        ({"first": "one\n", "second | tail -n 2": "two\n"}, "", ("new", "one", "two"), []),
        ({"first": None, "second | tail -n 2": "two\n"}, "", ("old", "1", "two"), ["first"]),
        ({"second | tail -n 2": "two\n"}, "seco", ("old", "1", "two"), []),
    ],
)
def test_the_machine_is_named_if_it_ran_all_blocks(page, monkeypatch, outputs, text, expected, failed):
    monkeypatch.setattr(run_blocks, "output_of", outputs.__getitem__)
    assert run_blocks.run_blocks(page, text) == failed
    machine, first, second = expected
    changed = PAGE.replace("old", machine).replace("\n1\n", f"\n{first}\n").replace("\n2\n3\n", f"\n{second}\n")
    assert page.read_text(encoding="utf-8") == changed


def test_an_interruption_keeps_what_is_there(page, monkeypatch):
    monkeypatch.setattr(run_blocks, "output_of", Mock(side_effect=["one\n", KeyboardInterrupt]))
    with pytest.raises(KeyboardInterrupt):
        run_blocks.run_blocks(page)
    assert page.read_text(encoding="utf-8") == PAGE.replace("\n1\n", "\none\n")
