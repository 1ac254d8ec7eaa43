"""Flags built from the declarations in `planner.question.inputs`, for a command that takes a whole question."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from mpplan.ui import options
from mpplan.ui.config import sources
from planner.question.asked import Ask
from planner.question.input import Input
from planner.question.inputs import INPUT_BY_NAME, INPUTS


def with_question_flags(command: Callable[..., None], inputs: Sequence[Input[object]] = INPUTS) -> Callable[..., None]:
    """Replace a command's parameter `ask` by one flag for each input; `ask` then receives what was typed.

    Args:
        command: a function with the parameters `context`, `ask` and its own flags; its annotations resolve at run time.
        inputs: the inputs that it takes.
    """
    first, _, *own = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [first, *map(_parameter, inputs), *(parameter.replace(kind=keyword) for parameter in own)]

    def run(context: typer.Context, **values: Any) -> None:
        ask = ask_from(values, sources(context))
        command(context, ask, **{name: value for name, value in values.items() if name not in INPUT_BY_NAME})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where Typer looks for the flags
    return run


def ask_from(values: Mapping[str, Any], given: Mapping[str, str]) -> Ask:
    """Return the question as typed.

    Args:
        values: values of every flag of the command, by name.
        given: origin of the value (`flag`, `environment` or `file`), only for flags that were given.
    """
    names = [item.name for item in INPUTS if item.name in given]
    return Ask(texts={name: _text(values[name]) for name in names}, sources={name: given[name] for name in names})


def _text(value: str | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


def _parameter(item: Input[object]) -> inspect.Parameter:
    """Return the parameter that Typer turns into the flag of an input: text or a switch."""
    option = typer.Option(
        item.flag,
        metavar=item.metavar,
        rich_help_panel=item.group,
        help=item.help_text,
        autocompletion=None if item.choices is None else options.completion(item.choices),
    )
    kind: Any = bool if item.is_switch else str | None
    return inspect.Parameter(
        item.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if item.is_switch else None,
        annotation=Annotated[kind, option],
    )
