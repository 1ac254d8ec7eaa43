"""Short names: which they are, what they stand for, and that an answer says so."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.hardware.catalogue import find_gpu, load_gpus
from planner.models.catalogue import load_models
from planner.question.asked import Ask
from planner.question.resolve import resolve
from planner.question.usual_names import named_among, taken_for, usual_names
from planner.rows import CATALOG, compact, read_rows
from reports.text.messages import word

IDS = {"gpu": load_gpus(), "model": load_models()}


def test_every_short_name_stands_for_a_row_and_hides_none():
    rows = read_rows(CATALOG / "usual_names.csv")

    assert {row.text("kind") for row in rows} == set(IDS)
    for row in rows:
        ids = IDS[row.text("kind")]
        assert row.text("stands_for") in ids
        assert compact(row.text("name")) not in {compact(id_) for id_ in ids}
        assert row.text("source")
        assert row.text("date")
    assert sum(len(usual_names(kind)) for kind in IDS) == len(rows)


@pytest.mark.parametrize(
    ("kind", "name", "id_"),
    [
        ("gpu", "H100", "h100-sxm5-80gb"),
        ("gpu", "a100", "a100-sxm4-80gb"),
        ("gpu", "A100 40GB", "a100-sxm4-40gb"),
        ("model", "llama3", "llama-3-8b"),
        ("model", "Llama-2", "llama-2-7b"),
        ("model", "gpt3", "gpt-3-175b"),
    ],
)
def test_the_usual_one_is_taken(kind, name, id_):
    taken = taken_for(kind, name, IDS[kind])

    assert taken is not None
    assert taken[0] == id_


def test_the_note_names_others_of_the_family():
    taken = taken_for("gpu", "H200", load_gpus())

    assert taken is not None
    assert word(taken[1]) == "`H200` is taken to mean h200-sxm-141gb, the usual one (there is also h200-nvl-141gb)"


@pytest.mark.parametrize(("kind", "name"), [("gpu", "mi250x"), ("gpu", "h100-sxm5-80gb"), ("model", "llama")])
def test_a_full_name_and_one_without_a_usual_meaning_are_left_alone(kind, name):
    assert taken_for(kind, name, IDS[kind]) is None


def test_every_short_name_of_several_gpus_is_said():
    gpu = resolve(Ask(texts={"params": "8B", "gpu": "h100,b200,a100", "gpus": "8"})).inputs["gpu"]

    assert gpu.value == ["h100-sxm5-80gb", "b200-sxm-180gb", "a100-sxm4-80gb"]
    assert gpu.source == "derived"
    assert gpu.note is not None
    assert "`h100` is taken to mean h100-sxm5-80gb" in word(gpu.note)
    assert "`a100` is taken to mean a100-sxm4-80gb" in word(gpu.note)


def test_an_offer_must_still_name_its_part():
    with pytest.raises(UsageError, match="matches several models"):
        find_gpu("h100")


@pytest.mark.parametrize(
    ("name", "ids", "id_"),
    [
        ("h100", ["a100-sxm4-80gb", "h100-sxm5-80gb"], "h100-sxm5-80gb"),
        ("H100 SXM5 80GB", ["h100-sxm5-80gb"], "h100-sxm5-80gb"),
        ("h100", ["h100-pcie-80gb"], None),
        ("h101", ["h100-sxm5-80gb"], None),
    ],
)
def test_one_of_a_few_is_named_as_in_a_question(name, ids, id_):
    assert named_among("gpu", name, ids) == id_
