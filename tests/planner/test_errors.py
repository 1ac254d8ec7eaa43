"""Errors: what they carry comes through a process pool and through a copy."""

import copy
import pickle
from typing import get_type_hints

import pytest

from planner.errors import (
    CannotMeasureError,
    EnoughBudget,
    IncompleteError,
    InputFileError,
    InternalError,
    LimitError,
    Message,
    MpplanError,
    NoPlanError,
    UnstableError,
    UsageError,
)
from planner.planning.requested import UnpricedError
from planner.rows import CellError
from probes.process.client import ReportedError

SHORT, WAYS = Message.of("error.too_dear", cheapest_usd=12.5), Message.of("hint.no_offer", flags=("--budget",))
NO_PLAN = NoPlanError(SHORT, hint=WAYS, enough=EnoughBudget(usd=1_300, gpus=8, safe=True))
ERRORS = (
    *(of("it is short", hint="give more") for of in (
        MpplanError, InternalError, UsageError, InputFileError, CannotMeasureError, IncompleteError, UnstableError,
        LimitError,
    )),
    UsageError("no hint"),
    UnpricedError(SHORT, hint=WAYS),
    CellError("book.csv:3", "usd", "an amount", "x", "correct it"),
    ReportedError("the probe said so", hint=None, exit_code=4),
    NO_PLAN,
)  # fmt: skip
WAYS_TO_COPY = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "oldest pickle": lambda error: pickle.loads(pickle.dumps(error, protocol=0)),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
}


def test_these_are_all_errors_of_the_planner():
    def below(cls):
        return {cls}.union(*(below(inner) for inner in cls.__subclasses__()))

    assert {cls for cls in below(MpplanError) if cls.__module__.startswith("planner.")} < {type(e) for e in ERRORS}


@pytest.mark.parametrize("way", WAYS_TO_COPY)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_can_be_copied_whole(error, way):
    copied = WAYS_TO_COPY[way](error)

    assert type(copied) is type(error)
    assert (copied.args, str(copied)) == (error.args, str(error))
    assert vars(copied) == vars(error)
    assert copied.exit_code == error.exit_code


def test_the_types_of_an_error_hold_before_and_after_it_is_worded():
    for cls in {type(error) for error in ERRORS} - {CannotMeasureError}:
        hints = get_type_hints(cls)
        assert (hints["message"], hints["hint"]) == (str | Message, str | Message | None)


def test_the_key_and_the_values_of_an_error_outlive_its_wording():
    error = NoPlanError(SHORT, hint=WAYS)
    error.message, error.hint = "too dear", "pay more"

    assert (error.key, error.values) == ("error.too_dear", {"cheapest_usd": 12.5})
    assert (error.original_message, error.original_hint) == (SHORT, WAYS)
    assert (UsageError("plain").key, UsageError("plain").values) == (None, {})
