"""Errors of a device: which of them leave it unusable, and how they are reported."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

STICKY = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "illegal instruction",
    "invalid program counter",
    "uncorrectable",
    "launch timed out",
)
"""Fragments of error messages after which CUDA refuses all work in this process."""


class DeviceLost(Exception):  # noqa: N818 - a state, not a mistake
    """The CUDA context is broken; only a new process can continue."""


class PeerFailed(Exception):  # noqa: N818 - a state, not a mistake
    """Another rank failed; this rank did not."""


def device_answers() -> bool:
    """Return whether CUDA still works in this process; True if it was never used.

    A pending error of an earlier launch is reported once; a broken context reports it again.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return True
    for _ in range(2):
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            continue
        return True
    return False


def is_lost(error: BaseException, answers: Callable[[], bool] = device_answers) -> bool:
    """Return whether an error leaves the CUDA context broken.

    Most messages that begin with "CUDA error" do not mean that: cuBLAS reports an unsupported product in the same words
    (`CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling ...`). The device is therefore tested.
    """
    text = str(error)
    if any(part in text for part in STICKY):
        return True
    return not answers()


def broke_communication(error: BaseException) -> bool:
    """Return whether ranks can no longer reach each other: an NCCL error, a rank that is gone, or a timeout."""
    text = str(error)
    by_name = any(kind.__name__ == "DistError" for kind in type(error).__mro__)
    return by_name or any(part in text for part in _NO_PEER)


_NO_PEER = (
    "gloo/transport",
    "Connection closed by peer",
    "Connection reset by peer",
    "Timed out waiting",
    "NCCL error",
)
"""Fragments of messages of gloo and NCCL; gloo raises them as a plain `RuntimeError`."""


_NO_COMPILER = ("TritonMissing", "InvalidCxxCompiler", "Failed to find C compiler", "CalledProcessError: Command")
"""The last one: the C compiler ran and failed, as it does without Python's headers."""


def lacks_compiler(error: BaseException) -> bool:
    """Return whether `torch.compile` failed because the machine lacks Triton, or a compiler to build its launchers."""
    text = f"{type(error).__name__}: {error}"
    return any(part in text for part in _NO_COMPILER)


_PATH = r"(?:[A-Za-z]:)?[/\\][^\s'\"]*"
_ADDRESSES = (
    r"\[[^\[\]\s]+\]:\d+",  # gloo, torch: [10.0.0.7]:29336, [::1]:29500, [node-7]:29500
    r"(?<=address of )\([^()]*\)",  # torch: any network address of (node-7, 29500)
    r"[\w.:-]+<\d{4,5}>",  # NCCL: node-7<38392>
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?",
)
"""Forms in which libraries name other machines."""
_UNSHOWN = re.compile("|".join((_PATH, *_ADDRESSES)))


def cleaned(error: BaseException) -> str:
    """Return an error in one short line without paths, which may contain a user's name, and without addresses."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {_UNSHOWN.sub('…', first)}"[:200]
