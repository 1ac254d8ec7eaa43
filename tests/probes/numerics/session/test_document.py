"""The answer of a run that was cut off anywhere."""

from __future__ import annotations

from probes.numerics.session.document import HEAD, SECTIONS, numerics_document, result_key, task_key

HEAD_PART = {
    "mpplan": "0", "device": "cpu", "device_name": "Some CPU", "size": "small", "metric": "loss", "margin": 0.02,
    "software": {}, "precisions": ["fp8"], "tasks": ["char-lm"], "left_out": ["digits-cnn: missing"],
}  # fmt: skip


def test_what_was_not_reached_and_what_failed_is_named_and_the_rest_is_answered():
    parts = {
        HEAD: HEAD_PART,
        task_key("char-lm"): {"id": "char-lm"},
        result_key("char-lm", "parity"): {"pairs": [], "cut_short": ["2 of 4 seeds"]},
        result_key("char-lm", "schedule"): {"failed": "the process died in it"},
    }

    document = numerics_document(parts, "r.jsonl")

    assert document["parity"] == [{"task": "char-lm", "pairs": [], "cut_short": ["2 of 4 seeds"]}]
    assert all(document[name] == [] for name in SECTIONS if name != "parity")
    assert document["cut_short"] == [
        "digits-cnn: missing", "char-lm: loss scaling: not reached", "char-lm: histograms: not reached",
        "char-lm: parity: 2 of 4 seeds", "char-lm: sensitivity: not reached", "char-lm: policy: not reached",
        "char-lm: schedule: the process died in it",
    ]  # fmt: skip
    assert not document["complete"]
