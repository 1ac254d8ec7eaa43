from __future__ import annotations

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.risky import marked, risk_notes
from reports.text.language import words_for
from tests.reports import sample

WORDS = words_for("en")


def test_only_a_plan_above_the_allowed_risk_is_marked_and_explained():
    document = sample.document()
    document["question"]["memory_risk"] = {"value": "5%", "source": "default", "note": None}
    facts = Facts(checked(document))
    risky, safe = ({**facts.answer, "memory_risk": risk} for risk in (0.27, 0.05))

    assert (marked("FP8", risky, facts, WORDS), marked("FP8", safe, facts, WORDS)) == ("FP8 *", "FP8")
    assert marked("H200", None, facts, WORDS) == "H200"
    (note,) = risk_notes([("FP8", risky), ("BF16", safe)], facts, WORDS)
    assert "FP8" in note
    assert "27%" in note
