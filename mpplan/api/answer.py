"""The main job as a function: a question in, an `Answer` out. The command and the Python API both come through here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from planner.errors import UsageError

if TYPE_CHECKING:
    from planner.answer.plan import Answer

Given = str | int | float | bool | os.PathLike[str] | Iterable[str] | None
"""What a part of a question may be in Python; text means what it means after the flag."""


SWITCHES = ("embodied",)
"""Parts of a question that are flags without a value."""


class Asked(TypedDict, total=False):
    """The parts of a question: the long flags of `mpplan estimate` with underscores (`mpplan estimate --help`)."""

    params: Given
    model: Given
    method: Given
    tokens: Given
    seq_len: Given
    global_batch: Given
    precision: Given
    policy: Given
    optimizer: Given
    act_ckpt: Given
    offload: Given
    stack: Given
    attention: Given
    gpu: Given
    gpus: Given
    deadline: Given
    budget: Given
    gpus_per_node: Given
    network: Given
    power_limit: Given
    tp: Given
    pp: Given
    vp: Given
    cp: Given
    ep: Given
    zero: Given
    micro_batch: Given
    price: Given
    provider: Given
    region: Given
    commitment: Given
    pue: Given
    electricity: Given
    grid: Given
    as_of: Given
    market_grid: Given
    quote: Given
    own: Given
    beside: Given
    tariff: Given
    embodied: Given
    power_cap: Given
    records: Given
    seed: Given


def estimate(**asked: Unpack[Asked]) -> Answer:
    """Answer a question as `mpplan estimate` does.

    Sizes may be numbers or text: `params="70B"`, `tokens=1.4e12`, `gpu=["h100-sxm5-80gb", "b200-sxm-180gb"]`. What is
    left out, or None, takes the documented default, and the answer says so.

    Raises:
        UsageError: a name or value is wrong.
        InputFileError: a file that the question names is invalid.
        NoPlanError: nothing feasible; says what is short and what would fit.
    """
    unknown = next((name for name in asked if name not in Asked.__annotations__), None)
    if unknown is not None:
        from planner.rows import unknown_name

        raise unknown_name("part of a question", unknown, Asked.__annotations__, "mpplan estimate --help")
    texts = {name: _text(name, value) for name, value in asked.items() if value is not None}
    from mpplan.api.document import worded_errors
    from planner.errors import Message

    with worded_errors():
        found = find_answer(texts, sources={})
    unused = (Message.of("warning.unused_line", problem=text) for text in found.damage)
    return replace(found.answer, warnings=(*found.answer.warnings, *unused))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An answer, and what was wrong with the measurements that the user named for it."""

    answer: Answer
    damage: tuple[str, ...]
    """`file:line: key: what` of each line that could not be used."""


def find_answer(given: Mapping[str, str], *, sources: Mapping[str, str], command: tuple[str, ...] = ()) -> Found:
    """Resolve, price and plan.

    Args:
        given: the parts of the question as text, those that were given only.
        sources: `flag`, `environment` or `file` by part.
        command: the command line, kept in the answer.

    Raises:
        UsageError, InputFileError, NoPlanError: as `estimate`.
    """
    from mpplan.api.planned import planned
    from planner.question.asked import Ask
    from planner.question.resolve import NO_DEVICES, resolve
    from planner.records.home import any_records

    parts = dict(given)
    named = parts.pop("records", None)
    ask = Ask(**parts, sources=dict(sources))
    if named is None and not any_records():
        return Found(answer=planned(resolve(ask, NO_DEVICES), command=command), damage=())
    from mpplan.api.measurements import chosen_records, damage, measured_for, own_devices

    question = resolve(ask, own_devices(named))
    chosen = chosen_records(named, [cluster.gpu.id for cluster in question.clusters])
    answer = planned(question, command=command, records=named, measured=measured_for(question, chosen))
    warnings = (*answer.warnings, *chosen.notices)
    return Found(answer=replace(answer, warnings=warnings), damage=damage(chosen.records.values()) if named else ())


def _text(name: str, value: object) -> str:
    """What one would write after the flag; a switch is a yes or a no."""
    if isinstance(value, bool) and name in SWITCHES:
        return "yes" if value else "no"
    if isinstance(value, bool):
        raise UsageError(f"{name}: `{value}` is neither text nor a number", hint="give what follows the flag")
    if isinstance(value, str | os.PathLike):
        return str(value)
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else repr(value)
    if isinstance(value, Iterable):
        return ",".join(str(one) for one in value)
    raise UsageError(f"{name}: `{value}` is neither text nor a number", hint="give what follows the flag")
