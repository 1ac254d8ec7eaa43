"""Saved answers are checked once, when they are read: what is wrong is said with its place in the file."""

from __future__ import annotations

import copy
import gzip
import io
import json
from types import SimpleNamespace

import pytest

from mpplan.ui.documents import MOST_PLANS, read_answer
from planner.answer import document as planner_document
from planner.errors import InputFileError, UsageError
from tests.reports import sample
from tests.reports.record import RECORDED

ANSWER = json.loads(json.dumps(sample.document()))


def say(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.fixture
def saved(tmp_path):
    """Write a document and read it back."""

    def writer(content):
        path = tmp_path / "plan.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_answer(str(path))

    return writer


def changed(path, value, answer=ANSWER):
    """The answer with the value at a path replaced; `...` removes the key."""
    document = copy.deepcopy(answer)
    *parents, last = path
    inner = document
    for part in parents:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


def test_an_answer_is_read_from_a_file(saved):
    assert saved(ANSWER) == ANSWER


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_dash_is_stdin_and_a_byte_order_mark_is_let_be(monkeypatch, saved, mark):
    say(monkeypatch, mark + json.dumps(ANSWER).encode())

    assert read_answer("-") == ANSWER == saved(mark + json.dumps(ANSWER).encode())


def test_what_powershell_writes_is_no_utf_8_and_the_hint_says_what_to_do(monkeypatch, saved):
    for read in (lambda: saved(b"\xff\xfe" + json.dumps(ANSWER).encode("utf-16-le")), lambda: read_answer("-")):
        say(monkeypatch, b"\xff\xfe\x00")

        with pytest.raises(InputFileError, match="expected UTF-8 text") as caught:
            read()
        assert str(caught.value.hint) == "hint.document_utf8"


def test_text_that_is_no_answer_is_an_input_error(monkeypatch):
    say(monkeypatch, b"{}")

    with pytest.raises(InputFileError, match="stdin: schema"):
        read_answer("-")


def test_a_name_with_a_nul_is_a_usage_error():
    with pytest.raises(UsageError, match="a path contains a null character"):
        read_answer("plan\0.json")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("plans", 0, "gpus"), "x", 'plans[0].gpus: expected a whole number, found "x"'),
        (("plans", 0, "gpus"), -8, "plans[0].gpus: expected at least 0, found -8"),
        (("plans", 1, "memory_gib", "total"), 3, "plans[1].memory_gib.total: expected an object, found 3"),
        (("plans", 0, "cost_usd", "low"), ..., "plans[0].cost_usd.low: missing"),
        (("plans",), [], "plans: expected at least 1, found an empty list"),
        (("plans",), {}, "plans: expected a list, found an object"),
        (("evidence", 0, "kind"), "heard", "evidence[0].kind: expected one of"),
        (("plans", 0, "fits"), "yes", 'plans[0].fits: expected true or false, found "yes"'),
        (("question", "tokens", "value"), "many", 'question.tokens.value: expected a number, found "many"'),
        (("plans", 0, "cost_usd", "low"), 1e300, "plans[0].cost_usd: low 1e+300"),
        (("plans", 0, "cost_usd", "low"), float("nan"), "plans[0].cost_usd.low: expected a finite number, found nan"),
        (("plans", 0, "gpu_hours", "high"), 10**400, "plans[0].gpu_hours.high: expected a finite number, found inf"),
        (("plans", 0, "mfu", "high"), 1.2, "plans[0].mfu: 1.2 is more than all"),
        (("plans", 0, "duration_days"), None, "plans[0].duration_days: missing, though the plan fits"),
        (("plans", 0, "cost_lines", 0, "evidence_ids"), ["price:none"], "no source `price:none`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(saved, path, value, message):
    with pytest.raises(InputFileError) as caught:
        saved(changed(path, value))

    assert message in str(caught.value.message)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("question", "method", "value"), "grpo", "question.method.value: expected one of pretrain, "),
        (("question", "method", "value"), 3, "question.method.value: expected one of pretrain, "),
        (("question", "optimizer", "value"), 1, "question.optimizer.value: expected text, found 1"),
        (("parity", 0, "basis"), "x", "parity[0].basis: expected one of measured, published, not_tested, reference"),
        (("model", "name"), ..., "model.name: missing"),
        (("model", "layers"), ..., "model.layers: missing"),
        (("plans", 0, "products", 0, "where"), "elsewhere", "plans[0].products[0].where: expected one of layer, "),
        (("plans", 0, "layout", "replicas"), 0, "plans[0].layout.replicas: expected at least 1, found 0"),
        (("money", "elsewhere", 0, "carbon_tco2e"), None, "money.elsewhere[0].carbon_tco2e: missing, though"),
        (("created_at",), "yesterday", "created_at: no moment in ISO 8601"),
        (("created_at",), "9999-12-31", "created_at: no moment in ISO 8601"),
        (("plans", 0, "cost_usd", "high"), 1e308, "plans[0].cost_usd: 1e+308 is more than there is of money"),
        (("plans", 0, "cost_lines", 0, "usd", "high"), 1e30, "plans[0].cost_lines[0]: 1e+30 is more than there is"),
    ],
)
def test_what_reports_look_up_or_calculate_with_is_checked_in_a_whole_answer(saved, path, value, message):
    answer = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert saved(answer)["plans"]

    with pytest.raises(InputFileError) as caught:
        saved(changed(path, value, answer))

    assert message in str(caught.value.message)


def test_an_integer_of_five_thousand_digits_is_refused_with_its_place(saved):
    content = json.dumps(changed(("plans", 0, "gpus"), 0)).replace('"gpus": 0', f'"gpus": {"9" * 5000}', 1).encode()

    with pytest.raises(InputFileError, match=r"plans\[0\]\.gpus: expected a finite number"):
        saved(content)


@pytest.mark.parametrize("levels", [100, 100_000])
def test_a_document_that_is_nested_too_deeply_is_refused(saved, levels):
    content = json.dumps(ANSWER)[:-1] + ', "more": ' + "[" * levels + "]" * levels + "}"

    with pytest.raises(InputFileError, match="nested too deeply"):
        saved(content.encode())


def test_keys_of_a_later_version_are_let_be_and_keys_that_came_later_take_their_default(saved):
    document = changed(("plans", 0, "uncertainty"), ...) | {"of_a_later_version": {"a": 1}}
    read = saved(document)

    assert read["of_a_later_version"] == {"a": 1}
    assert read["plans"][0]["uncertainty"] == []


def test_more_plans_than_a_page_can_show_are_refused_before_they_are_looked_at(saved):
    with pytest.raises(InputFileError, match="plans: 5,001 plans, more than 5,000") as caught:
        saved(ANSWER | {"plans": [None] * (MOST_PLANS + 1)})

    assert str(caught.value.hint) == "hint.document_too_large"


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(saved, monkeypatch):
    monkeypatch.setattr(planner_document, "LARGEST_BYTES", 1000)

    with pytest.raises(InputFileError, match="larger than 1,000 bytes"):
        saved(ANSWER)


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(InputFileError, match="/dev/zero: expected a file, found a device"):
        read_answer("/dev/zero")
