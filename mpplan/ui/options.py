"""Flags that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from planner.errors import UsageError

OUTPUT = "Output"


def _output(*names: str, help_text: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, rich_help_panel=OUTPUT, help=help_text, metavar=metavar)


JsonFlag = Annotated[bool, _output("--json", help_text="Print the result as a JSON document on stdout.")]
QuietFlag = Annotated[bool, _output("--quiet", "-q", help_text="Print no notes, warnings or progress on stderr.")]
FileOption = Annotated[str | None, _output("--output", "-o", help_text="Write to this file.", metavar="PATH")]
"""As `OutputOption`, for a record that grows while the command runs and therefore cannot go to stdout."""
OutputOption = Annotated[
    str | None, _output("--output", "-o", help_text="Write to this file; `-` is stdout.", metavar="PATH")
]


def strict_flag(help_text: str) -> Any:
    """Return the declaration of `--strict`; its help says when the command fails, and with which exit code."""
    return _output("--strict", help_text=help_text)


def completion(choices: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Complete the last of several names separated by commas; the names load only when a shell asks for them."""

    def complete(incomplete: str) -> list[str]:
        done, comma, last = incomplete.rpartition(",")
        return [f"{done}{comma}{name}" for name in choices() if name.startswith(last)]

    return complete


def names(text: str | None, flag: str) -> tuple[str, ...]:
    """Split names at commas; return none if the flag is not given.

    Raises:
        UsageError: the flag is given without a name.
    """
    listed = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if text is not None and not listed:
        raise UsageError(f"{flag}: expected a name, found nothing", hint=f"leave {flag} out for the usual ones")
    return listed


def device_kind(device: str, gpu_index: int) -> str:
    """Return `cuda` or `cpu` for the value of `--device`.

    Raises:
        UsageError: the value is neither, or it is a CPU and `--gpu-index` names a GPU.
    """
    if device not in ("gpu", "cuda", "cpu"):
        raise UsageError(f"--device: unknown device `{device}`", hint="use `gpu` or `cpu`")
    if device == "cpu" and gpu_index:
        raise UsageError("--gpu-index cannot be combined with --device cpu", hint="leave one of them out")
    return "cpu" if device == "cpu" else "cuda"
