"""What ended the communication: told once, and heard by a rank that waits."""

from __future__ import annotations

import threading

import pytest

from probes.ranks.loss import Losses, LossWatch

dist = pytest.importorskip("torch.distributed")


def test_what_was_told_first_is_what_all_say() -> None:
    store = dist.HashStore()
    first, second = Losses(store), Losses(store)

    assert second.told() is None
    assert first.tell("node 0 rank 1: NCCL error") == "node 0 rank 1: NCCL error"
    assert second.tell("node 0 rank 0: Connection closed by peer") == "node 0 rank 1: NCCL error"
    assert second.told() == "node 0 rank 1: NCCL error"


def test_a_rank_that_waits_in_a_collective_acts_on_what_another_told() -> None:
    losses, heard = Losses(dist.HashStore()), threading.Event()
    said: list[str] = []

    LossWatch(losses, lambda text: (said.append(text), heard.set()))
    losses.tell("gone")

    assert heard.wait(30.0)
    assert said == ["gone"]


def test_a_rank_that_notices_by_itself_does_not_act_twice() -> None:
    losses, said = Losses(dist.HashStore()), list[str]()
    watch = LossWatch(losses, said.append)

    watch.stop()
    losses.tell("gone")
    watch.thread.join(30.0)

    assert not watch.thread.is_alive()
    assert said == []


def test_the_rank_that_told_stays_until_it_is_written_but_not_for_ever() -> None:
    losses = Losses(dist.HashStore())

    losses.wait_until_written(limit_s=0.01)
    losses.written()
    losses.wait_until_written(limit_s=3600.0)


def test_without_a_store_everybody_keeps_the_reason_to_themselves() -> None:
    losses = Losses()

    assert losses.tell("gone") == "gone"
    assert losses.told() is None
    losses.wait_until_written(limit_s=3600.0)
