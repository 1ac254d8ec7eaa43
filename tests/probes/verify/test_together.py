"""Verification on a CPU: targets in turns with the anchors that they are predicted from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from probes.record.options import Options
from probes.verify.cases import anchors, targets
from probes.verify.points import anchor_point, target_point
from probes.verify.together import check_family
from tests.probes.build import CPU, plan, ungated


def test_a_target_has_a_name_of_its_own_and_an_anchor_the_suites() -> None:
    session = SimpleNamespace(plan=plan(CPU))
    case = targets(plan(CPU))[0]

    assert anchor_point(session, case).probe_id == "end_to_end/llama-tiny-L3-s256b1/fp32"  # type: ignore[arg-type]
    assert target_point(session, case).probe_id == "verify/llama-tiny-L3-s256b1/fp32"  # type: ignore[arg-type]
    assert target_point(session, case).kind == "verify"  # type: ignore[arg-type]


def test_a_family_for_which_there_is_no_time_is_not_begun() -> None:
    session = SimpleNamespace(plan=plan(CPU), elapsed_s=100.0, ledger=SimpleNamespace(known={}))
    small = [case for case in anchors(plan(CPU)) if case.recipe.id == "fp32"]
    large = [case for case in targets(plan(CPU)) if case.recipe.id == "fp32"]

    def track(_: object) -> None:
        raise AssertionError("nothing is tracked for what is not run")

    assert check_family(session, small, large, track, end_s=101.0) == []  # type: ignore[arg-type]


def test_a_verification_on_the_cpu_predicts_before_it_runs_and_keeps_both_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import warnings

    from planner.records.jsonl import read_measurements
    from probes.session.suite import Session
    from probes.verify import run as verify_run

    monkeypatch.setattr("probes.device.canary_clock.OBSERVED_S", 0.1)
    monkeypatch.setattr(verify_run, "anchors", lambda plan: anchors(plan)[:2])
    monkeypatch.setattr(verify_run, "targets", lambda plan: targets(plan)[:2])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"torch|torchao|transformers")
        options = Options(device="cpu", path=str(tmp_path / "r.jsonl"), precisions=("fp32",), budget_s=300.0)
        session = ungated(Session(options))
        session.check_recipes()
        done = verify_run.verify(session)
        session.close()

    assert [case.probe_id for case in done] == [
        "verify/llama-tiny-L3-s256b1/fp32", "verify/llama-tiny-wide-L3-s256b1/fp32",
    ]  # fmt: skip
    case = done[0]
    assert case.status == "ok"
    assert set(case.predicted.probe_ids) <= {f"end_to_end/llama-tiny-L{n}-s256b1/fp32" for n in (1, 6)}
    assert case.predicted.probe_ids
    # memory is bookkeeping and does not depend on how busy the machine is; time is only compared, not judged, in a test
    assert case.predicted.memory_bytes == pytest.approx(case.memory.allocated_peak_bytes, rel=0.03)
    assert case.predicted.time_s is not None
    assert [point.kind for point in read_measurements(tmp_path / "r.jsonl").measurements][-1] == "verify"
