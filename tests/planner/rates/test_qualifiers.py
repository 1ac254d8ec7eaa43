from __future__ import annotations

import pytest

from planner.rates.qualifiers import memory_format, stored_loss
from tests.planner.build import recipe


@pytest.mark.parametrize(
    ("channels_last", "stack", "expected"),
    [(False, "tuned", "plain"), (True, "tuned", "tuned"), (True, "eager", "fused")],
)
def test_element_wise_work_is_fused_where_channels_are_last_and_best_by_the_tuned_stack(channels_last, stack, expected):
    assert memory_format(recipe(channels_last=channels_last, stack=stack)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stack": "fsdp-compile", "chunked_loss": True}, "fused"),
        ({"stack": "fsdp-compile", "software_year": 2024.0}, "eager"),  # the loss was not compiled with the model yet
        ({"stack": "fsdp-compile", "software_year": 2025.5}, "fsdp-compile"),
        ({"stack": "eager", "software_year": 2024.0}, "eager"),
    ],
)
def test_the_loss_decides_what_lies_beside_the_logits(changes, expected):
    assert stored_loss(recipe(**changes)) == expected
