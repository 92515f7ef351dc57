"""dev/bench/passes.py times each strategy, and no pass is faster than the limit."""

import json

from helpers import script

passes = script("dev/bench/passes.py")


def test_each_strategy_has_its_times_and_their_ratios(capsys):
    few = {"sizes": "tiny-draft", "rows": 3, "context": 5, "prompt_tokens": 5, "repeats": 1}
    passes.main(**few, strategies=("panels", "slabs", "plain"), as_json=True)
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert model["name"] == "tiny-draft" and [*model["strategies"]] == ["panels", "slabs", "plain"]
    assert model["chosen"] in model["strategies"]
    for entry in model["strategies"].values():
        assert list(entry["seconds"]) == ["1", "2", "3", "prompt"] and list(entry["v"]) == ["1", "2", "3"]
        assert all(0 < low <= middle <= high for low, middle, high in entry["seconds"].values())
        one = entry["seconds"]["1"][1]
        assert entry["v"]["3"] == entry["seconds"]["3"][1] / one and one >= model["limit"]
    assert "tiny-draft, trained weights: " in passes.page_of(model)
