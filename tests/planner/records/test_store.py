"""The store of records: several side by side, the newest trustworthy one of a GPU wins."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.records import store as records
from planner.records.home import records_dir
from planner.records.measurement import SCHEMA, Measurement
from tests.planner.collective_points import collectives
from tests.planner.recorded import H200, a_canary, a_measurement, write_record


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(records, "SHIPPED", tmp_path / "shipped")


def h200(day: int, **changes: object) -> tuple:
    stamp = {"timestamp_utc": f"2026-11-{day:02d}T12:00:00.000+00:00"}
    return a_canary(**H200, **stamp), *(a_measurement(probe_id=f"p{i}", **(H200 | stamp | changes)) for i in range(4))


def test_the_directory_of_records_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert records_dir() == tmp_path / "mpplan" / "records"


def test_a_record_of_an_h200_is_listed_with_its_catalogue_id_and_date(tmp_path: Path) -> None:
    write_record(tmp_path / "one.jsonl", *h200(3))

    (record,) = records.list_records(tmp_path)

    assert (record.name, record.gpu, record.facts.date) == ("one", "h200-sxm-141gb", "2026-11-03T12:00:00.000+00:00")
    assert record.facts.trustworthy
    assert not record.shipped


def test_a_cpu_record_is_of_cpu_local(tmp_path: Path) -> None:
    write_record(tmp_path / "one.jsonl", a_canary(), a_measurement())

    assert records.list_records(tmp_path)[0].gpu == "cpu-local"


def test_an_unknown_gpu_has_no_catalogue_id_and_is_still_listed(tmp_path: Path) -> None:
    unknown = {"device_kind": "cuda", "device_name": "NVIDIA Z900", "memory_total_bytes": 1e12}
    write_record(tmp_path / "one.jsonl", a_measurement(**unknown))

    assert records.list_records(tmp_path)[0].gpu is None


def test_traces_and_other_files_are_no_records(tmp_path: Path) -> None:
    write_record(tmp_path / "one.jsonl", a_measurement())
    (tmp_path / "one.trace.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "one.jsonl.underway").write_text("[]", encoding="utf-8")

    assert [record.name for record in records.list_records(tmp_path)] == ["one"]


def test_the_newest_trustworthy_record_of_the_gpu_wins(tmp_path: Path) -> None:
    write_record(tmp_path / "old.jsonl", *h200(1))
    write_record(tmp_path / "new.jsonl", *h200(2))
    write_record(tmp_path / "newest-but-contended.jsonl", *h200(3, quality="contended"))
    write_record(tmp_path / "other.jsonl", a_canary(), a_measurement())

    best = records.newest_record("h200-sxm-141gb", records.list_records(tmp_path))

    assert best is not None
    assert best.name == "new"


def test_a_record_that_is_dated_after_today_counts_as_the_oldest(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("planner.records.summary.today", lambda: date(2026, 11, 4))
    for name, day in (("old", 1), ("new", 5), ("ahead", 6)):  # tomorrow is today somewhere
        write_record(tmp_path / f"{name}.jsonl", *h200(day))

    listed = records.list_records(tmp_path)

    assert [record.name for record in listed if record.facts.ahead] == ["ahead"]
    assert [record.name for record in listed] == ["new", "old", "ahead"]
    assert names(tmp_path)[0] == "new"


def test_an_own_record_wins_over_a_newer_shipped_one(tmp_path: Path) -> None:
    write_record(tmp_path / "shipped" / "theirs.jsonl", *h200(9))
    write_record(tmp_path / "own" / "ours.jsonl", *h200(1))

    listed = records.list_records(tmp_path / "own")

    assert [(record.name, record.shipped) for record in listed] == [("theirs", True), ("ours", False)]
    best = records.newest_record("h200-sxm-141gb", listed)
    assert best is not None
    assert best.name == "ours"


def test_a_newer_record_of_a_part_of_the_suite_does_not_displace_one_of_all_of_it(tmp_path: Path) -> None:
    write_record(tmp_path / "all.jsonl", *h200(1), *h200(1, kind="memory_op", precision="fp8"))
    write_record(tmp_path / "part.jsonl", *h200(2))

    listed = records.list_records(tmp_path)
    used, newer = (choose("h200-sxm-141gb", listed) for choose in (records.newest_record, records.newer_part))

    assert used is not None
    assert newer is not None
    assert (used.name, newer.name) == ("all", "part")
    assert newer.facts.lacks(used.facts) == ("memory-ops", "fp8")
    assert used.facts.lacks(newer.facts) == ()


def test_a_newer_record_with_something_that_the_older_lacks_wins(tmp_path: Path) -> None:
    write_record(tmp_path / "old.jsonl", *h200(1), *h200(1, kind="bandwidth"))
    write_record(tmp_path / "new.jsonl", *h200(2), *h200(2, kind="launch"))

    listed = records.list_records(tmp_path)

    assert names(tmp_path)[0] == "new"
    assert records.newer_part("h200-sxm-141gb", listed) is None


def test_a_record_of_another_cpu_does_not_displace_a_newer_one_that_measured_less(tmp_path: Path) -> None:
    stamp = {"timestamp_utc": "2026-11-02T12:00:00.000+00:00"}
    write_record(tmp_path / "new.jsonl", a_canary(**stamp), a_measurement(**stamp))
    old = {"device_name": "Another CPU", "timestamp_utc": "2026-11-01T12:00:00.000+00:00"}
    points = [a_canary(**old), a_measurement(**old), a_measurement(**old, probe_id="copy", kind="bandwidth")]
    write_record(tmp_path / "old.jsonl", *points)

    best = records.newest_record("cpu-local", records.list_records(tmp_path))

    assert best is not None
    assert best.name == "new"


def ranks(day: int, *more: Measurement, **changes: object) -> list[Measurement]:
    """A record of several ranks: collectives, and what else it holds."""
    stamp = {"timestamp_utc": f"2026-11-{day:02d}T12:00:00.000+00:00"}
    return [*more, *collectives(lambda size: 2e-5 + size / 4e10, **(stamp | changes))]


def names(directory: Path) -> tuple[str | None, str | None]:
    """Records of an H200 by itself and of its network."""
    listed = records.list_records(directory)
    chosen = (choose("h200-sxm-141gb", listed) for choose in (records.newest_record, records.newest_network))
    kernels, network = (None if record is None else record.name for record in chosen)
    return kernels, network


@pytest.mark.parametrize(("alone", "together"), [(1, 2), (2, 1)])
def test_a_record_of_one_gpu_and_one_of_ranks_do_not_displace_each_other(
    tmp_path: Path, alone: int, together: int
) -> None:
    write_record(tmp_path / "alone.jsonl", *h200(alone))
    write_record(tmp_path / "together.jsonl", *ranks(together, *h200(together)))

    assert names(tmp_path) == ("alone", "together")


def test_a_record_of_ranks_is_used_where_there_is_no_other_and_it_has_points_of_one_gpu(tmp_path: Path) -> None:
    write_record(tmp_path / "collectives.jsonl", *ranks(2))
    assert names(tmp_path) == (None, "collectives")

    write_record(tmp_path / "both.jsonl", *ranks(1, *h200(1)))
    assert names(tmp_path) == ("both", "collectives")


@pytest.mark.parametrize(
    "changes",
    [
        {"backend": "gloo"}, {"quality": "contended"}, {"imported_tool": "nccl-tests"}, {"kind": "overlap"},
        {"device_kind": "cpu"}, {"world": 1, "nodes": 1},
    ],
    ids=["gloo", "not trustworthy", "imported", "no collective", "a CPU", "one rank"],
)  # fmt: skip
def test_what_tells_nothing_of_a_gpus_network_by_itself_is_not_chosen_for_it(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    write_record(tmp_path / "one.jsonl", *ranks(1, **changes))

    assert names(tmp_path)[1] is None


def test_records_of_the_package_are_read_for_the_gpus_asked_alone_and_some_only_by_name(tmp_path: Path) -> None:
    names = ("h200-sxm-141gb-2026-11-27", "h20-96gb-2026-11-27")
    for name in names:
        write_record(tmp_path / "shipped" / f"{name}.jsonl", *h200(9))
    write_record(tmp_path / "shipped" / "named" / "h100.jsonl", *h200(8))

    def listed(**filters: object) -> list[str]:
        return sorted(record.name for record in records.list_records(**filters))  # type: ignore[arg-type]

    assert listed() == sorted(names)
    assert listed(shipped_of=["h200-sxm-141gb"]) == [names[0]]
    assert listed(shipped_of=[]) == []
    assert listed(named=True) == sorted([*names, "h100"])
    assert records.find_record("h100").shipped


def test_an_own_record_wins_over_one_of_the_package_with_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write_record(tmp_path / "shipped" / "named" / "h100.jsonl", *h200(8))
    own = write_record(records_dir() / "h100.jsonl", *h200(9))

    assert records.find_record("h100").path == own
    assert records.find_record("h100.jsonl").path == own


def test_a_shipped_record_is_read_once(tmp_path: Path) -> None:
    path = write_record(tmp_path / "shipped" / "theirs.jsonl", *h200(9))

    assert records.open_record(path, shipped=True) is records.open_record(path, shipped=True)
    assert records.open_record(path) is not records.open_record(path)


def test_the_newest_record_of_ranks_is_that_of_the_network_and_never_a_shipped_one(tmp_path: Path) -> None:
    write_record(tmp_path / "shipped" / "theirs.jsonl", *ranks(9))
    assert names(tmp_path / "own")[1] is None

    write_record(tmp_path / "own" / "old.jsonl", *ranks(1))
    write_record(tmp_path / "own" / "new.jsonl", *ranks(2))
    assert names(tmp_path / "own")[1] == "new"


def test_no_directory_means_no_records(tmp_path: Path) -> None:
    assert records.list_records(tmp_path / "none") == ()
    assert records.newest_record("h200-sxm-141gb", ()) is None


def test_a_record_of_another_gpu_than_asked_is_an_invalid_input(tmp_path: Path) -> None:
    path = write_record(tmp_path / "one.jsonl", *h200(1))

    with pytest.raises(
        InputFileError, match=r"expected a record of `b200.*found `NVIDIA H200`, which is `h200-sxm-141gb`"
    ):
        records.record_of_gpu(path, "b200-sxm-180gb")


def test_a_record_without_a_usable_line_is_an_invalid_input_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("{", encoding="utf-8")

    with pytest.raises(InputFileError, match=r"one\.jsonl: no usable line|one\.jsonl:1: expected one JSON object"):
        records.record_of_gpu(path, None)


def test_a_record_of_a_newer_mpplan_is_not_measured_again_but_read_by_that(tmp_path: Path) -> None:
    path = write_record(tmp_path / "one.jsonl", *h200(1))
    path.write_text(path.read_text(encoding="utf-8").replace(SCHEMA, "mpplan.probe/9"), encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        records.record_of_gpu(path, None)

    assert caught.value.hint == "update mpplan to read it"


def test_a_record_is_found_by_its_whole_name_and_by_its_beginning_only_where_that_is_asked_for(tmp_path: Path) -> None:
    write_record(tmp_path / "nvidia-h200-1.jsonl", *h200(1))
    write_record(tmp_path / "nvidia-h200-2.jsonl", *h200(2))
    write_record(tmp_path / "cpu.jsonl", a_canary(), a_measurement())
    listed = records.list_records(tmp_path)

    assert records.find_record("nvidia-h200-2", listed).name == "nvidia-h200-2"
    assert records.find_record("c", listed, prefix=True).name == "cpu"
    with pytest.raises(UsageError, match="no record `c`") as caught:
        records.find_record("c", listed)
    assert caught.value.hint == "name one in full, or add --prefix: cpu"
    with pytest.raises(UsageError, match="matches 2 records"):
        records.find_record("nvidia", listed, prefix=True)
    with pytest.raises(UsageError, match="no record `x`"):
        records.find_record("x", listed, prefix=True)


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_an_empty_name_is_of_no_record_even_of_the_only_one(tmp_path: Path, name: str) -> None:
    write_record(tmp_path / "one.jsonl", *h200(1))

    for prefix in (False, True):
        with pytest.raises(UsageError, match="the name of a record is empty"):
            records.find_record(name, records.list_records(tmp_path), prefix=prefix)


def test_removing_a_record_removes_what_lies_beside_it_and_nothing_else(tmp_path: Path) -> None:
    write_record(tmp_path / "one.jsonl", *h200(1))
    write_record(tmp_path / "two.jsonl", *h200(2))
    write_record(tmp_path / "on.jsonl", *h200(2))
    for trace in ("one.trace.jsonl", "on.trace.jsonl", "one.jsonl.underway", "one.jsonl.lock"):
        (tmp_path / trace).write_text("{}\n", encoding="utf-8")

    records.remove_record(records.find_record("one", records.list_records(tmp_path)))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["on.jsonl", "on.trace.jsonl", "two.jsonl"]


def test_a_shipped_record_cannot_be_removed(tmp_path: Path) -> None:
    write_record(tmp_path / "shipped" / "theirs.jsonl", *h200(9))

    with pytest.raises(UsageError, match="came with the package"):
        records.remove_record(records.list_records(tmp_path / "own")[0])


def test_a_fleet_is_told_by_the_members_at_points_of_a_single_gpu() -> None:
    ranks = ("node 0 rank 0", "node 0 rank 1")
    step = a_measurement(kind="parallel_step", rank_names=ranks)

    assert records.fleet_size([a_measurement(), step]) == 0
    assert records.fleet_size([a_measurement(rank_names=("node01", "node02", "node03")), step]) == 3
