"""What ended the communication: told once, and heard by a rank that waits."""

from __future__ import annotations

import threading

import pytest

from probes.ranks.failure_reports import FailureReports, FailureWatcher

dist = pytest.importorskip("torch.distributed")


def test_what_was_told_first_is_what_all_say() -> None:
    store = dist.HashStore()
    first, second = FailureReports(store), FailureReports(store)

    assert second.reported() is None
    assert first.report("node 0 rank 1: NCCL error") == "node 0 rank 1: NCCL error"
    assert second.report("node 0 rank 0: Connection closed by peer") == "node 0 rank 1: NCCL error"
    assert second.reported() == "node 0 rank 1: NCCL error"


def test_a_rank_that_waits_in_a_collective_acts_on_what_another_told() -> None:
    reports, heard = FailureReports(dist.HashStore()), threading.Event()
    reasons: list[str] = []

    FailureWatcher(reports, lambda text: (reasons.append(text), heard.set()))
    reports.report("gone")

    assert heard.wait(30.0)
    assert reasons == ["gone"]


def test_a_rank_that_notices_by_itself_does_not_act_twice() -> None:
    reports, reasons = FailureReports(dist.HashStore()), list[str]()
    watcher = FailureWatcher(reports, reasons.append)

    watcher.stop()
    reports.report("gone")
    watcher.thread.join(30.0)

    assert not watcher.thread.is_alive()
    assert reasons == []


def test_the_rank_that_told_stays_until_it_is_written_but_not_for_ever() -> None:
    reports = FailureReports(dist.HashStore())

    reports.wait_until_written(limit_s=0.01)
    reports.mark_written()
    reports.wait_until_written(limit_s=3600.0)


def test_without_a_store_everybody_keeps_the_reason_to_themselves() -> None:
    reports = FailureReports()

    assert reports.report("gone") == "gone"
    assert reports.reported() is None
    reports.wait_until_written(limit_s=3600.0)
