"""File formats of other tools, one module each.

To add one, write `planner/imported/formats/<name>.py` with an `ImportFormat` and list it here; a contract test runs it.
"""

from __future__ import annotations

from planner.errors import InputFileError, UsageError
from planner.imported.formats.base import ImportFormat
from planner.imported.formats.codecarbon import CODECARBON
from planner.imported.formats.dcgm import DCGM
from planner.imported.formats.nccl_tests import NCCL_TESTS
from planner.imported.formats.nvidia_smi import NVIDIA_SMI
from planner.imported.formats.torch_trace import TORCH_TRACE
from planner.imported.formats.zeus import ZEUS
from planner.imported.source import SourceFile
from planner.imported.steps import is_step_log
from planner.rows import near_names

FORMATS = (NCCL_TESTS, NVIDIA_SMI, DCGM, ZEUS, CODECARBON, TORCH_TRACE)
"""All formats, in the order in which a file is tried."""


def format_of(source: SourceFile, name: str | None = None) -> ImportFormat:
    """Choose the format of a file: the one that the user named, else the one recognised from its content.

    Raises:
        UsageError: no format has the name.
        InputFileError: the file has no format that is recognised.
    """
    names = [form.name for form in FORMATS]
    if name is not None:
        if name not in names:
            near = near_names(name, names, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(names)}"
            raise UsageError(f"--as: unknown format `{name}`", hint=hint)
        return FORMATS[names.index(name)]
    head = source.head
    chosen = next((form for form in FORMATS if form.recognises(head)), None)
    if chosen is None:
        raise InputFileError(
            f"{source.name}:1: expected a file of a known tool, found an unknown format",
            hint=_what_it_is(head) or f"name its format: `--as {'|'.join(names)}`",
        )
    return chosen


def _what_it_is(head: str) -> str | None:
    """Hint for a file that another command or option reads; None if it is not recognised either."""
    if head.startswith('{"schema":"mpplan.probe/'):
        return "it is a record already: `mpplan check` judges it, and `--records` plans with it"
    if is_step_log(head):
        return "it looks like a log of steps: pass it with `--steps` together with a power log, or see `mpplan compare`"
    return None
