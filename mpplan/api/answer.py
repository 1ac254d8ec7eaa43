"""The main job as a function: a question in, an `Answer` out. The command and the Python API both use it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import Message, UsageError
from planner.question.asked import Ask
from planner.question.input import Input
from planner.question.inputs import CALIBRATION, INPUTS, RECORDS, find_input

if TYPE_CHECKING:
    from planner.answer.plan import Answer
    from planner.calibration.document import ReadCalibration
    from planner.question.question import Question

Given = str | int | float | bool | os.PathLike[str] | Iterable[str] | None
"""What the value of an input may be in Python; text means what it means after the flag."""


def estimate(**inputs: Given) -> Answer:
    """Answer a question as `mpplan estimate` does.

    The names are those of `planner.question.inputs`: the long flags of `mpplan estimate` with underscores. Sizes may be
    numbers or text: `params="70B"`, `tokens=1.4e12`, `gpu=["h100-sxm5-80gb", "b200-sxm-180gb"]`. What is left out, or
    None, takes the documented default, and the answer says so.

    Raises:
        UsageError: a name or value is wrong.
        InputFileError: a file that the question names is invalid.
        NoPlanError: nothing feasible; says what is short and what would fit.
    """
    from mpplan.api.document import worded_errors

    with worded_errors():
        result = answer_question(_ask(inputs))
    unused = (Message.of("warning.unused_line", problem=problem) for problem in result.damage)
    return replace(result.answer, warnings=(*result.answer.warnings, *unused))


_KEYWORDS = [
    inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Given") for item in INPUTS
]
estimate.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what `help` and editors show
    _KEYWORDS, return_annotation="Answer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An answer, and what was wrong with the measurement records that the user named for it."""

    answer: Answer
    damage: tuple[str, ...]
    """`file:line: key: what` of each line that could not be used."""


def answer_question(ask: Ask, *, command: tuple[str, ...] = ()) -> Result:
    """Resolve, price and plan.

    Args:
        ask: the question as typed.
        command: the command line, kept in the answer.

    Raises:
        UsageError, InputFileError, NoPlanError: as `estimate`.
    """
    from mpplan.api.planned import planned
    from planner.question.resolve import NO_DEVICES, resolve
    from planner.records.home import any_records

    records, calibration = ask.text(RECORDS), _calibration(ask.text(CALIBRATION))
    parameters = None if calibration is None else calibration.parameters
    if records is None and not any_records():
        question = resolve(ask, NO_DEVICES)
        answer = planned(question, command=command, parameters=parameters)
        return Result(answer=_noted(answer, question, calibration), damage=())
    from mpplan.api.measurements import chosen_records, damage, measured_for, own_devices

    question = resolve(ask, own_devices(records))
    chosen = chosen_records(records, [cluster.gpu.id for cluster in question.clusters])
    measured = measured_for(question, chosen, parameters)
    answer = planned(question, command=command, records=records, measured=measured, parameters=parameters)
    answer = replace(answer, warnings=(*answer.warnings, *chosen.notices))
    answer = _noted(answer, question, calibration)
    return Result(answer=answer, damage=damage(chosen.records.values()) if records else ())


def _calibration(name: str | None) -> ReadCalibration | None:
    if name is None:
        return None
    from planner.calibration.document import read_calibration
    from planner.rates.parameters import shipped_parameters

    return read_calibration(Path(name).expanduser(), shipped_parameters())


def _noted(answer: Answer, question: Question, calibration: ReadCalibration | None) -> Answer:
    """The answer with what its reader must know of the calibration behind it."""
    if calibration is None:
        return answer
    facts = calibration.facts
    used = Message.of("warning.calibration", name=facts.name, runs=facts.runs, source=facts.source)
    others = tuple(c.gpu.id for c in question.clusters if c.gpu.id not in facts.gpus)
    far = [Message.of("warning.calibration_gpu", gpus=others, learned_on=facts.gpus)] if others else []
    return replace(answer, warnings=(*answer.warnings, used, *far), calibration=facts)


def _ask(inputs: dict[str, Given]) -> Ask:
    """The question as it would be typed; None counts as not given.

    Raises:
        UsageError: a name is not that of an input, or a value could not follow its flag.
    """
    values = {find_input(name): value for name, value in inputs.items()}
    return Ask(texts={item.name: _text(item, value) for item, value in values.items() if value is not None})


def _text(item: Input[object], value: object) -> str:
    """What one would write after the flag; a switch is a yes or a no."""
    if isinstance(value, bool):
        if item.is_switch:
            return "yes" if value else "no"
    elif isinstance(value, str | os.PathLike):
        return str(value)
    elif isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else repr(value)
    elif isinstance(value, Iterable):
        return ",".join(str(part) for part in value)
    raise UsageError(
        f"{item.name}: `{value}` is neither text nor a number", hint=f"give what you would write after {item.flag}"
    )
