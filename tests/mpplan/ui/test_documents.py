from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from mpplan.ui.documents import read_answer
from planner.errors import InputFileError, UsageError

ANSWER = {"schema": "mpplan.estimate/2", "plans": []}


def say(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_an_answer_is_read_from_a_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(ANSWER), encoding="utf-8")

    assert read_answer(str(path)) == ANSWER


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_dash_is_stdin_with_or_without_a_byte_order_mark(monkeypatch, mark):
    say(monkeypatch, mark + json.dumps(ANSWER).encode())

    assert read_answer("-") == ANSWER


def test_bytes_that_are_no_text_are_a_usage_error(monkeypatch):
    say(monkeypatch, b"\xff\xfe\x00")

    with pytest.raises(UsageError, match="stdin is not UTF-8"):
        read_answer("-")


def test_text_that_is_no_answer_is_an_input_error(monkeypatch):
    say(monkeypatch, b"{}")

    with pytest.raises(InputFileError, match="stdin: schema"):
        read_answer("-")
