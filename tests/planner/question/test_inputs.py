"""The declarations of the inputs: complete, distinct, and readable by their own parsers."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.question import inputs
from planner.question.input import Input, InputGroup
from planner.question.inputs import INPUT_BY_NAME, INPUTS, find_input

SOURCES = sorted(Path(inputs.__file__).parent.glob("*.py"))


def test_every_declared_input_is_listed_once_under_the_name_of_its_constant():
    declared = {name: value for name, value in vars(inputs).items() if isinstance(value, Input)}

    assert len(INPUTS) == len(declared) == len(INPUT_BY_NAME)
    assert {item.name.upper() for item in INPUTS} == set(declared)


def test_the_inputs_of_a_group_stand_together_in_the_order_of_the_help():
    assert list(dict.fromkeys(item.group for item in INPUTS)) == list(InputGroup)
    changes = sum(a.group is not b.group for a, b in pairwise(INPUTS))

    assert changes == len(InputGroup) - 1


def test_an_input_knows_its_flag_and_its_help_with_the_default():
    assert inputs.SEQ_LEN.flag == "--seq-len"
    assert (
        inputs.SEQ_LEN.help_text
        == "Sequence length in tokens. Default: 4096 or that of the model; 2048 for fine-tuning."
    )
    assert inputs.DEADLINE.help_text == "Time to finish within, like 30d. Default: 30d without --gpus or --budget."
    assert inputs.GPUS.help_text == "Number of GPUs. Default: searched, to meet the deadline or budget."
    assert [item.name for item in INPUTS if item.is_switch] == ["packed", "single_quant", "in_backward", "embodied"]


@pytest.mark.parametrize("item", [item for item in INPUTS if item.choices is not None], ids=lambda item: item.name)
def test_what_a_shell_offers_can_be_read(item):
    choices = list(item.choices())

    assert len(choices) >= 2
    assert [item.parse(name, item.flag) for name in choices] == choices


@pytest.mark.parametrize(
    ("item", "value"),
    [(inputs.METHOD, "pretrain"), (inputs.LORA_TARGETS, "all-linear"), (inputs.OFFLOAD, "none")],
)
def test_a_default_that_is_one_of_the_choices_can_be_read(item, value):
    assert item.parse(item.default, item.flag) == value
    assert value in item.choices()


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(UsageError, match="unknown input `seqlen`") as caught:
        find_input("seqlen")

    assert "`seq_len`" in caught.value.hint


def literals(path: Path) -> list[str]:
    """Strings of a file that are not documentation."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_flag_is_written_out_where_its_declaration_can_say_it(path):
    flags = {item.flag for item in INPUTS}

    assert [text for text in literals(path) if flags & set(re.findall(r"--[a-z-]+", text))] == []


@pytest.mark.parametrize("item", [inputs.TOKENS, inputs.SAMPLES], ids=lambda item: item.name)
def test_nobody_trains_on_less_than_one_token_or_image(item):
    with pytest.raises(UsageError, match=f"{item.flag}: `0.5` must be at least 1"):
        item.parse("0.5", item.flag)
