"""Memory: states by arithmetic, and what the optimizer rows say."""

from __future__ import annotations

import pytest

from planner.claims.claim import load_claims
from planner.claims.decided.memory import gpt3_state, optimizers
from planner.claims.evidence.known import Known
from planner.claims.verdict import judge
from reports.text.messages import word
from tests.planner.recorded import a_measurement


def no_answer(**inputs):
    raise AssertionError("states need no plan")


def test_gpt_3s_states_are_multiplied_out():
    (note,) = gpt3_state(Known(ask=no_answer)).notes

    # 174.6e9 parameters at 16, 16 and 10.03 bytes
    assert "2.79 TB in FP32, 2.79 TB in mixed precision, 1.75 TB with 8-bit" in word(note)


@pytest.mark.parametrize(("read", "verdict"), [(8.0, "holds_under_conditions"), (12.0, "holds_under_conditions")])
def test_a_measured_state_is_evidence_beside_the_row(read, verdict):
    point = a_measurement(
        probe_id="optimizer/lamb", kind="optimizer", optimizer="lamb", optimizer_state_bytes_per_param=read
    )
    judged = judge(load_claims()["c32"], optimizers(Known(ask=no_answer, points=(point,))).cases)
    measured = [case for case in judged.evidence if case.basis == "measured"]

    assert judged.verdict == verdict  # Sophia keeps two moments, as AdamW does
    assert [case.mid for case in measured] == [read]
