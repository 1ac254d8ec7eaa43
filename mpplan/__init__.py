"""mpplan: what a training run costs in GPUs, days, money, energy and carbon, and what lower precision saves.

The public API is small and loads on first use (PEP 562), so that `import mpplan` costs next to nothing:

    from mpplan import estimate, to_document

    answer = estimate(params="70B", precision="fp8", gpu="h100-sxm5-80gb", deadline="30d")
    print(answer.plans[0].cost_usd)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mpplan.version import __version__

if TYPE_CHECKING:
    from mpplan.api.answer import estimate
    from mpplan.api.document import to_document
    from planner.answer.plan import Answer
    from planner.errors import InputFileError, InternalError, MpplanError, NoPlanError, UsageError

__all__ = [
    "Answer",
    "InputFileError",
    "InternalError",
    "MpplanError",
    "NoPlanError",
    "UsageError",
    "__version__",
    "estimate",
    "to_document",
]

_HOMES = {
    "Answer": "planner.answer.plan",
    "InputFileError": "planner.errors",
    "InternalError": "planner.errors",
    "MpplanError": "planner.errors",
    "NoPlanError": "planner.errors",
    "UsageError": "planner.errors",
    "estimate": "mpplan.api.answer",
    "to_document": "mpplan.api.document",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mpplan' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
