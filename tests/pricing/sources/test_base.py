"""Requests to live sources end: after a few tries, too many bytes, or an error; the cheapest zone is kept."""

from __future__ import annotations

import pytest

from pricing.sources.base import FetchError, cheapest, get_json


def test_a_server_that_stumbles_twice_is_asked_three_times(server):
    asked = []

    def answer(path):
        asked.append(path)
        return (503, b"busy") if len(asked) < 3 else (200, b'{"ok": 1}')

    assert get_json(server(answer)) == {"ok": 1}
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "times", "problem"),
    [(500, b"", 3, "HTTP 500"), (404, b"", 1, "HTTP 404"), (429, b"", 3, "HTTP 429"), (200, b"<html>", 3, "not JSON")],
)
def test_a_server_that_fails_is_given_up_after_bounded_tries(server, status, body, times, problem):
    asked = []

    def answer(path):
        asked.append(path)
        return status, body

    with pytest.raises(FetchError, match=problem):
        get_json(server(answer))
    assert len(asked) == times


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:9/prices"):
        get_json("http://127.0.0.1:9/prices?key=secret")


def test_the_query_of_an_address_is_kept_out_of_messages():
    with pytest.raises(FetchError) as caught:
        get_json("http://127.0.0.1:9/prices?key=secret")

    assert "secret" not in str(caught.value)


def test_an_answer_without_end_is_cut(server, monkeypatch):
    monkeypatch.setattr("pricing.sources.base.LARGEST_ANSWER_BYTES", 10)

    with pytest.raises(FetchError, match="more than"):
        get_json(server(lambda _: (200, b'{"a": "' + b"x" * 100 + b'"}')))


def test_the_cheapest_of_several_zones_is_kept(row):
    rows = [row("3", id="a", region="x"), row("2", id="b", region="X"), row("9", id="c", region="y")]

    assert [kept.id for kept in cheapest(rows)] == ["b", "c"]
