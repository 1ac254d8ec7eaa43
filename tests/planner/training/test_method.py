"""Training methods: what learns, what is frozen, and what an example is."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.training.method import find_method, load_methods


def test_only_pre_training_begins_without_a_model():
    assert [method.id for method in load_methods().values() if not method.fine_tunes] == ["pretrain"]


@pytest.mark.parametrize(
    ("name", "id_"),
    [("full", "sft"), ("FFT", "sft"), ("QLoRA", "qlora"), ("last layers", "freeze"), ("lora-dpo", "dpo-lora")],
)
def test_people_call_methods_by_several_names(name, id_):
    assert find_method(name).id == id_


def test_four_bits_are_for_frozen_weights_only():
    assert all(method.adapts for method in load_methods().values() if method.low_bits or method.decomposed)


def test_a_pair_of_answers_is_two_sequences():
    by_id = {id_: method.sequences_per_example for id_, method in load_methods().items()}

    assert {id_ for id_, sequences in by_id.items() if sequences == 2} == {"dpo", "dpo-lora", "dpo-qlora"}


def test_an_unknown_method_is_answered_with_near_ones():
    with pytest.raises(UsageError, match="unknown training method `qlorra`") as caught:
        find_method("qlorra")

    assert "qlora" in str(caught.value.hint)
