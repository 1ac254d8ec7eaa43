"""The names that inputs can take come from where they are declared."""

from __future__ import annotations

import pytest

from planner.question import names


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (names.methods, "qlora"),
        (names.precisions, "fp8"),
        (names.precisions, "nvfp4"),
        (names.policies, "bf16-fsdp"),
        (names.optimizers, "adamw-8bit"),
        (names.checkpointing_modes, "selective"),
        (names.offloads, "activations"),
        (names.stacks, "classic"),
        (names.attentions, "naive"),
        (names.models, "llama-3.1-70b"),
        (names.gpus, "b200-sxm-180gb"),
        (names.networks, "ib-ndr"),
    ],
)
def test_a_known_name_is_among_them(load, name):
    assert name in list(load())
