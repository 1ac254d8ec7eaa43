"""The store behind an answer: whatever lies in it, an answer is given, and what was set aside is said once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mpplan.api.measurements import chosen_records
from mpplan.api.record_shelf import RecordShelf
from planner.errors import Message
from planner.records.home import records_dir
from planner.records.jsonl import to_line
from reports.text.messages import word
from tests.planner.recorded import H200, a_canary, a_measurement, kernels, write_record

ASKED = (
    "estimate", "--params", "1B", "--gpu", "h200-sxm-141gb", "--precision", "bf16",
    *("--gpus", "8", "--tp", "1", "--pp", "1", "--micro-batch", "1", "--zero", "1", "--act-ckpt", "full"),
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("nothing_ships")
"""With a layout: what is asked of a record is the same, and the search for one takes most of the time."""
LINE = to_line(a_measurement(**H200))


def with_amount(text: str) -> bytes:
    return LINE.replace('"time_median_s":0.004', f'"time_median_s":{text}').encode() + b"\n"


USELESS: dict[str, Callable[[Path], object]] = {
    "beyond floats": lambda path: path.write_bytes(with_amount("1" + "0" * 400)),
    "thousands of digits": lambda path: path.write_bytes(with_amount("1" * 5001)),
    "beyond floats, with an exponent": lambda path: path.write_bytes(with_amount("1e400")),
    "below floats": lambda path: path.write_bytes(with_amount("1e-320")),
    "not a number": lambda path: path.write_bytes(with_amount("NaN")),
    "of another type": lambda path: path.write_bytes(with_amount('{"a": [1]}')),
    "no time": lambda path: path.write_bytes(LINE.replace("2026-11-20T12:00:00.000+00:00", "soon").encode()),
    "half a surrogate pair": lambda path: path.write_bytes(LINE.replace("NVIDIA H200", "\\ud800").encode()),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00\n"),
    "nested too deep": lambda path: path.write_bytes(b"[" * 100_000),
    "one line of 3 MB": lambda path: path.write_bytes(b"x" * 3_000_000),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("what", USELESS)
def test_what_cannot_be_used_is_set_aside_with_one_warning_and_the_answer_is_given(run, home: Path, what: str) -> None:
    records_dir().mkdir(parents=True)
    USELESS[what](records_dir() / "bad.jsonl")

    result = run(*ASKED, "--json")

    assert result.code == 0
    assert result.err.count("warning: ignored because they contain nothing usable") == 1
    assert "`bad.jsonl` (" in result.err
    assert json.loads(result.out)["schema"].startswith("mpplan.estimate/")


def test_a_good_record_beside_bad_ones_is_used_and_many_bad_ones_are_one_warning(run, home: Path) -> None:
    write_record(records_dir() / "good.jsonl", a_canary(**H200), *kernels())
    for number in range(5):
        (records_dir() / f"bad-{number}.jsonl").write_bytes(b"\xff\n")

    result = run(*ASKED, "--json")

    assert result.code == 0
    assert "planned from your record `good`" in result.err
    assert result.err.count("warning: ignored because they contain nothing usable") == 1
    assert "and 2 more" in result.err


def test_damaged_lines_of_a_good_record_are_left_out_and_counted(run, home: Path) -> None:
    path = write_record(records_dir() / "good.jsonl", a_canary(**H200), *kernels())
    path.write_bytes(path.read_bytes() + b"junk\n" + with_amount("1" + "0" * 400))

    result = run(*ASKED, "--json")

    assert result.code == 0
    assert "your record `good` has lines that cannot be used and were left out (2)" in result.err


def test_an_index_that_lies_is_found_out_before_a_record_is_used(home: Path) -> None:
    write_record(records_dir() / "cpu.jsonl", a_canary(), a_measurement())
    path = write_record(records_dir() / "h200.jsonl", a_canary(**H200), *kernels())
    shelf = RecordShelf(None)
    path.write_bytes((records_dir() / "cpu.jsonl").read_bytes())  # after the listing

    assert shelf.newest("h200-sxm-141gb") is None
    assert shelf.newest("cpu-local") is not None


def test_a_record_that_goes_away_after_the_listing_is_set_aside(home: Path) -> None:
    path = write_record(records_dir() / "h200.jsonl", a_canary(**H200), *kernels())
    shelf = RecordShelf(None)
    path.unlink()

    assert shelf.newest("h200-sxm-141gb") is None
    (notice,) = shelf.notices
    assert notice.key == "warning.records_aside"
    assert isinstance(dict(notice.values)["records"], tuple)
    assert all(isinstance(record, Message) for record in dict(notice.values)["records"])


def test_without_a_home_an_estimate_goes_on_and_a_record_says_what_is_missing(run, home, monkeypatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user id that no passwd entry has

    assert run(*ASKED, "--json").code == 0
    assert run("records", "list").code == 0
    for arguments in ((), ("--resume",)):
        result = run("probe", "--device", "cpu", *arguments)
        assert result.code == 2
        assert "no home directory" in result.err
        assert "hint: set XDG_DATA_HOME" in result.err


def test_with_a_home_that_cannot_be_looked_into_what_only_reads_goes_on(run, home, monkeypatch) -> None:
    (home / "round").symlink_to("round")  # nobody comes in, not even root
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home / "round"))

    for arguments in (
        (*ASKED, "--json"),
        ("records", "list"),
        ("prices", "list"),
        ("prices", "check"),
        ("claims", "c32"),
    ):
        result = run(*arguments)
        assert (result.code, "error: " in result.err) == (0, False), arguments
    refused = run("probe", "--device", "cpu")
    assert refused.code == 2
    assert "Too many levels of symbolic links" in refused.err


def test_a_store_that_is_a_file_holds_no_records(run, home: Path) -> None:
    records_dir().parent.mkdir(parents=True)
    records_dir().write_text("x", encoding="utf-8")

    assert run(*ASKED, "--json").code == 0


def test_an_estimate_for_many_gpus_lists_the_store_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mpplan.api import record_shelf
    from planner.records import store

    write_record(records_dir() / "h200.jsonl", a_canary(**H200), *kernels())
    calls: list[int] = []
    listing = store.list_records
    monkeypatch.setattr(
        record_shelf, "list_records", lambda *given, **options: calls.append(1) or listing(*given, **options)
    )
    from mpplan.api.answer import estimate_briefly

    estimate_briefly(params="1B", gpu="h200-sxm-141gb,h100-sxm5-80gb,a100-sxm4-80gb", precision="bf16")

    assert len(calls) == 1


def test_the_local_cpu_is_planned_from_its_own_record_where_there_is_one(run, home, monkeypatch) -> None:
    monkeypatch.setattr("mpplan.api.record_shelf.cpu_name", lambda: "This CPU")
    monkeypatch.setattr("mpplan.api.measurements.cpu_name", lambda: "This CPU")
    day = {"timestamp_utc": "2026-11-25T12:00:00.000+00:00", "device_name": "Another CPU"}
    write_record(records_dir() / "theirs.jsonl", a_canary(**day), a_measurement(**day))
    alone = chosen_records(RecordShelf(None), ["cpu-local"])
    write_record(records_dir() / "mine.jsonl", a_canary(device_name="This CPU"), a_measurement(device_name="This CPU"))
    with_own = chosen_records(RecordShelf(None), ["cpu-local"])
    named = chosen_records(RecordShelf(str(records_dir() / "theirs.jsonl")), ["cpu-local"])

    assert [chosen.records["cpu-local"].name for chosen in (alone, with_own, named)] == ["theirs", "mine", "theirs"]
    told = "the record `theirs` was not measured on this CPU but on `Another CPU`: measure this one with"
    assert [any(told in word(notice) for notice in chosen.notices) for chosen in (alone, with_own, named)] == [
        True, False, False,
    ]  # fmt: skip
    assert [line.split()[:2] for line in run("records", "list").out.splitlines()[1:]] == [
        ["theirs", "cpu-local"], ["*", "mine"],
    ]  # fmt: skip
