"""The probe process: `python -m probes.process.worker OPTIONS_JSON`. The only one that imports torch.

It writes the record itself and reports events to its parent as JSON lines on stdout. Whatever libraries print goes to
stderr.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NoReturn, TextIO

from planner.errors import MpplanError
from planner.records.jsonl import to_line
from planner.records.measurement import Measurement
from probes.device.faults import DeviceLost
from probes.record.options import Options
from probes.session.listener import Progress

EXIT_DEVICE_LOST = 75
"""Exit code: the device is broken for this process; a new process can continue."""


INTERRUPTED_GRACE_S = 5.0
"""Seconds to end normally after an interruption."""
WITH_PARENT = "--with-parent"
"""Second argument: stdin is a pipe that the parent holds open as long as it lives."""
ORPHAN_GRACE_S = 2.0
"""Seconds to end normally once the parent is gone."""
PR_SET_PDEATHSIG = 1
"""Option of `prctl` (linux/prctl.h): the signal that a process gets when its parent ends."""


class EventWriter:
    """A listener that writes events as JSON lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, event: str, **values: Any) -> None:
        """Write one event."""
        self._stream.write(json.dumps({"event": event, **values}) + "\n")
        self._stream.flush()

    def began(self, path: str, device_name: str) -> None:
        """See `Listener`."""
        self.write("began", path=path, device_name=device_name)

    def planned(self, groups: int, estimate_s: float) -> None:
        """See `Listener`."""
        self.write("planned", groups=groups, estimate_s=estimate_s)

    def started(self, progress: Progress) -> None:
        """See `Listener`."""
        self.write("started", **asdict(progress))

    def measured(self, measurement: Measurement) -> None:
        """See `Listener`."""
        self.write("measured", line=to_line(measurement))

    def noted(self, text: str) -> None:
        """See `Listener`."""
        self.write("noted", text=text)


def main(read: Callable[[str], Any] = Options.from_json, run: Callable[[Any, EventWriter], int] | None = None) -> int:
    """Run what the arguments request; return the exit code: 0, that of an error, 75 or 130.

    Args:
        read: parses the first argument as options.
        run: runs the options; None: the probes.
    """
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with the events
    events = EventWriter(stream)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    _end_in_time()
    if WITH_PARENT in sys.argv[2:]:
        end_with_parent()
    options = read(sys.argv[1])
    if _follows(options):
        events.write("follows")
        events = EventWriter(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open for as long as this runs
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # so that `--gpu-index` counts as nvidia-smi does
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        return (run or _run)(options, events)
    except MpplanError as error:
        events.write("failed", message=error.message, hint=error.hint, exit_code=error.exit_code)
        return error.exit_code
    except (KeyboardInterrupt, BrokenPipeError):  # the latter means that the parent is gone
        return 130


def end_with_parent() -> None:
    """End, as after Ctrl-C, when the process that started this one has ended, however that happened.

    The parent holds the other end of stdin and writes nothing, so on every system it closes when the parent is gone.
    Linux also sends a signal, which works even if no thread can run. The record always holds what was measured.
    """
    pipe = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    threading.Thread(target=_wait_for_end, args=(pipe,), name="parent", daemon=True).start()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _wait_for_end(pipe: int) -> None:
    with suppress(OSError):
        while os.read(pipe, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_S)  # a signal is handled only after a long kernel is done
    os._exit(130)


def _follows(options: Options) -> bool:
    """Return whether this is a rank that writes no record."""
    return (options.ranks > 1 or options.nnodes > 1) and int(os.environ.get("RANK", "0")) > 0


def _end_in_time() -> None:
    """Make sure that the process ends some time after an interruption, whatever happens to the exception.

    Python drops an exception that is raised inside a finaliser, and runs no signal handler while the main thread waits
    in a collective for a rank that is gone. The signal itself writes to this pipe at once. Every line of the record is
    on disk.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def wait() -> None:
        os.read(reading, 1)
        time.sleep(INTERRUPTED_GRACE_S)
        os._exit(130)

    threading.Thread(target=wait, name="last resort", daemon=True).start()


def _interrupt(_signal: int, _frame: object) -> None:
    """Stop once: further signals must not disturb closing the record."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def without_torch(events: EventWriter) -> int | None:
    """Return the exit code if PyTorch is missing, after reporting that; None if it is installed.

    PyTorch's own objects live as long as the process, so garbage collection passes over them from here on.
    """
    gc.disable()
    try:
        import torch  # noqa: F401
    except ImportError:
        message, hint = "PyTorch is not installed, and the probes need it", "pip install 'mpplan[probe]'"
        events.write("failed", message=message, hint=hint, exit_code=4)
        return 4
    finally:
        gc.enable()
    gc.freeze()
    return None


def _run(options: Options, events: EventWriter) -> int:
    if (code := without_torch(events)) is not None:
        return code
    from probes.process.run import part_ways, run, run_as_rank
    from probes.ranks.join import place_from_environment
    from probes.ranks.team import ALONE
    from probes.session.outcome import Outcome

    def end(outcome: Outcome) -> None:
        events.write("ended", points=outcome.points, left_out=list(outcome.left_out), lost_device=outcome.lost_device)

    def abandon(outcome: Outcome) -> NoReturn:
        end(outcome)
        os._exit(EXIT_DEVICE_LOST)

    place = place_from_environment() if options.ranks > 1 or options.nnodes > 1 else None
    if place is None:
        outcome = run(options, events)
        end(outcome)
        return EXIT_DEVICE_LOST if outcome.lost_device else 0
    team = ALONE
    try:
        outcome, team = run_as_rank(options, place, events, abandon)
    except DeviceLost as error:  # before a session existed
        outcome = Outcome(points=0, left_out=(), lost_device=str(error))
    if outcome.lost_device:
        abandon(outcome)  # NCCL groups, if closed normally, would wait for ranks that are gone
    end(outcome)
    part_ways(team)
    os._exit(0)  # closing the interpreter beside threads of a process group may abort, although all work is done


if __name__ == "__main__":
    sys.exit(main())
