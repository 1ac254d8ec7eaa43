"""Text that every machine has: the source of Python's standard library."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.errors import CannotMeasureError

MOST_BYTES = 3_000_000
LEAST_BYTES = 100_000
VOCABULARY = 128
"""ASCII; every byte beyond it becomes the last code."""
HELD_OUT_RATIO = 0.05
STRETCH = 1000
"""Characters that are held out together; more than a task reads at once."""

Tokens = npt.NDArray[np.int64]


@cache
def library_text() -> bytes:
    """Return the top-level modules of the standard library, concatenated in order of name, up to `MOST_BYTES`.

    Raises:
        CannotMeasureError: this Python comes without its source.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    parts: list[bytes] = []
    for path in sorted(folder.glob("*.py")):
        parts.append(path.read_bytes())
        if sum(map(len, parts)) >= MOST_BYTES:
            break
    text = b"\n".join(parts)[:MOST_BYTES]
    if len(text) < LEAST_BYTES:
        raise CannotMeasureError(
            "this Python comes without the source of its standard library, which the built-in tasks train on",
            hint="use a Python with its source, or a task of your own: `--task module:factory`",
        )
    return text


@cache
def library_tokens() -> tuple[Tokens, Tokens]:
    """Return the text as character codes, to train on and held out: every twentieth thousand characters."""
    raw = np.frombuffer(library_text(), dtype=np.uint8).astype(np.int64)
    tokens = np.minimum(raw, VOCABULARY - 1)
    stretches = tokens[: len(tokens) - len(tokens) % STRETCH].reshape(-1, STRETCH)
    spacing = round(1.0 / HELD_OUT_RATIO)
    held = np.arange(len(stretches)) % spacing == spacing - 1
    return stretches[~held].reshape(-1), stretches[held].reshape(-1)


def described() -> dict[str, object]:
    """Describe the text, so that answers from different texts can be told apart."""
    text = library_text()
    digest = hashlib.sha256(text).hexdigest()[:16]
    return {"text": f"standard library of Python {platform.python_version()}", "bytes": len(text), "sha256": digest}
