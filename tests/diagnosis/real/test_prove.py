"""The proof's own arithmetic: what counts as found, as a false alarm, as a right prediction."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import prove  # noqa: E402
from limits import Around  # noqa: E402
from scenarios import SCENARIOS, advised_workers, rarer_checkpoints  # noqa: E402


def finding(rule="InputBound", cause="Loader too slow", **more):
    return {"rule": rule, "cause": cause, "explained_by": None, "severity": "warning", "advice": [], "evidence": {}, **more}


def advice(change="", low=None, high=None, gain=None):
    return {"change": change, "step_ms_low": low, "step_ms_high": high, "gain": gain}


def around(steal_pct=0.0, outside_cores=0.0):
    out = Around()
    out.steal_pct, out.outside_cores = steal_pct, outside_cores
    return out


def test_a_prediction_is_a_step_time_or_a_share_of_the_run():
    before = {"overall_ms": 100.0}
    steps = finding(advice=[advice("cheaper transforms"), advice("num_workers=4", 50, 60)])
    assert prove.predicted(steps, before) == (50, 60, "mean_ms")
    share = finding(advice=[advice("save every 500 steps", gain="20 % -> 4 % of the run, 17 % shorter")])
    low, high, of = prove.predicted(share, before)
    assert (low, high, of) == (pytest.approx(80 / 0.96), pytest.approx(80 / 0.96), "overall_ms")
    span = finding(advice=[advice(gain="20 % -> 0-10 % of the run")])
    assert prove.predicted(span, before)[:2] == (pytest.approx(80), pytest.approx(80 / 0.9))
    assert prove.predicted(finding(advice=[advice("look")]), before) is None


def test_only_what_the_kernel_counted_too_is_the_machines():
    assert prove.is_of_machine(finding("NoisyNeighbour"), around(steal_pct=8))
    assert not prove.is_of_machine(finding("NoisyNeighbour"), around(steal_pct=1))
    assert prove.is_of_machine(finding(cause="Other programs take 1.8 of 2 cores"), around(outside_cores=1.7))
    assert not prove.is_of_machine(finding(cause="Other programs take 1.8 of 2 cores"), around(outside_cores=0.1))
    assert not prove.is_of_machine(finding(), around(steal_pct=50, outside_cores=2))


def row(**more):
    return {"name": "n", "planted": "InputBound", "found": "InputBound", "right": True, "besides": [], "step_ms": 100.0,
            **more}


def test_the_summary_counts_wrong_verdicts_alarms_and_predictions():
    good = row(predicted=[50, 60], reached=52.0, before=100.0)
    poor = row(predicted=[50, 60], reached=80.0, before=100.0)
    tiny = row(predicted=[96, 99], reached=60.0, before=100.0)  # a gain below 5 % is not judged
    alarm = row(planted="", found="StepOutlier", right=False)
    assert prove.is_proven([good, tiny])
    assert not prove.is_proven([good, poor])
    assert not prove.is_proven([good, alarm])
    assert prove.summary([good, poor, alarm]).startswith("2 of 3 right, 1 false alarms; 1 of 2 predictions")


def test_the_table_leaves_the_rest_of_the_document(tmp_path):
    document = tmp_path / "diagnosis.md"
    document.write_text("# What it finds\n\n26 of 26 right.\n", encoding="utf-8")
    for found in ("InputBound", "StepOutlier"):
        prove.write_table(document, prove.table([row(found=found)], [("disk", "no root")]))
    text = document.read_text(encoding="utf-8")
    assert text.startswith("# What it finds\n\n26 of 26 right.\n\n" + prove.MARK)
    assert text.count(prove.MARK) == 1
    assert "StepOutlier" in text and "Left out: disk (no root)." in text


def test_advice_becomes_arguments():
    assert advised_workers(finding(evidence={"advised_workers": 4.0})) == ["--workers", "4"]
    assert advised_workers(finding()) is None
    assert rarer_checkpoints(finding(advice=[advice("save every 1,000 steps")])) == ["--checkpoint-every", "1000"]
    assert rarer_checkpoints(finding(advice=[advice("save asynchronously")])) is None


def test_each_cause_has_a_look_alike_beside_it():
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 30
    assert sum(1 for scenario in SCENARIOS if not scenario.rule) >= 8
