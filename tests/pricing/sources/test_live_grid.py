"""Live intensity: from a recorded answer over a local server, for users with a token."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import UsageError
from pricing.sources.live_grid import live_intensity

RECORDED = (Path(__file__).parents[1] / "recorded" / "electricity_maps_latest.json").read_bytes()


def test_an_answer_becomes_a_factor_with_its_hour_and_scope(server):
    asked = []

    def answer(path):
        asked.append(path)
        return 200, RECORDED

    fact = live_intensity("DE", "token", address=server(answer))

    assert asked == ["/prices?zone=DE"]
    assert fact.estimate.mid == pytest.approx(0.302)
    assert "lifecycle, of one hour, estimated by the service" in fact.evidence.what
    assert fact.evidence.date == "2026-11-20T12:00:00.000Z"


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b"{}", "HTTP 401"),
        (200, b"{}", "the answer for `DE` is None"),
        (200, b'{"carbonIntensity": 0}', "the answer for `DE` is 0"),
        (200, b'{"carbonIntensity": "low"}', "the answer for `DE` is 'low'"),
        (200, b"[]", "the answer for `DE` is None"),
        (503, b"", "HTTP 503"),
    ],
)
def test_garbage_is_said_and_nothing_is_made_up(server, status, body, problem):
    with pytest.raises(UsageError, match=problem):
        live_intensity("DE", "token", address=server(lambda _: (status, body)))


def test_without_a_token_nothing_is_asked():
    with pytest.raises(UsageError, match="needs a token"):
        live_intensity("DE", "")
