"""The parent's side of the probe process: starts it, reads its events, and restarts it if a point killed it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from planner.errors import CannotMeasureError, MpplanError
from planner.lazy import dataclass
from planner.records.jsonl import parse_line
from planner.records.measurement import Measurement
from probes.numerics.session.options import NumericsOptions
from probes.process.torchrun import check_rendezvous, first_failure, is_rank, torchrun
from probes.process.worker import EXIT_DEVICE_LOST, WITH_PARENT
from probes.record.options import Options
from probes.session.listener import Listener, Progress

Asked = Options | NumericsOptions
"""Options of the two kinds of run that a process can be asked for."""

RESTARTS = 6
"""How often a run is continued in a new process after a crash."""
TERMINATE_GRACE_S = 20.0
"""Seconds for the probe process to end after an interruption."""
TAIL_BYTES = 20_000
"""Bytes kept from the end of its messages; torchrun's last messages are long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    points: int
    path: str | None
    """The record; None if the run was interrupted before it existed."""
    left_out: tuple[str, ...]
    """Groups for which there was no time."""
    interrupted: bool
    crashes: int
    follows: bool = False
    """True: this process or node does not write the record."""


class ReportedError(MpplanError):
    """An error that the probe process reported."""

    def __init__(self, message: str, *, hint: str | None, exit_code: int) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


def run_in_process(options: Asked, listener: Listener) -> Ended:
    """Run the probes, or the instruments of `mpplan numerics`, in a separate process.

    Raises:
        MpplanError: the probe process reported an error, or could not continue.
    """
    points = 0
    path: str | None = None
    began = time.monotonic()
    for crash in range(RESTARTS + 1):
        events, code, stderr = _once(options, listener)
        points += events.points
        path = events.path or path
        done = events.ended and events.lost is None  # whatever its ranks met when they parted
        interrupted = not done and (code == 130 or events.interrupted)
        if done or interrupted or (code == 0 and events.follows):
            return Ended(
                points=points, path=path, left_out=events.left_out, interrupted=interrupted, crashes=crash,
                follows=path is None and events.follows,
            )  # fmt: skip
        if isinstance(options, Options):
            check_rendezvous(stderr, options)
        words = last_words(code, stderr, events.lost)
        if path is None:
            raise CannotMeasureError(words, hint="run `mpplan doctor`")
        if options.nnodes > 1 or is_rank(os.environ):
            raise CannotMeasureError(words, hint=f"what was measured is in `{path}`; `--resume`")
        listener.noted(f"{words}; continuing in a new process")
        options = replace(options, path=path, resume=True, skip_failed=True)
        if isinstance(options, Options):  # a run of numerics counts its time from `asked_unix_s`
            options = replace(options, spent_s=time.monotonic() - began)
    raise CannotMeasureError(f"the probe process died {RESTARTS + 1} times", hint=f"what was measured is in `{path}`")


def _once(options: Asked, listener: Listener) -> tuple[_EventReader, int, str]:
    """Run one process; return its events, its exit code and the end of its stderr."""
    environment = os.environ | {"PYTHONPATH": _with_our_root(os.environ.get("PYTHONPATH"))}
    events = _EventReader(listener)
    with (
        tempfile.TemporaryFile() as errors,
        tempfile.TemporaryDirectory(prefix="mpplan-") as logs,
        subprocess.Popen(
            [*_interpreter(options, logs), options.worker, options.to_json(), WITH_PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        try:
            with _ForwardedSignals(process) as signals:
                for line in process.stdout or ():
                    events.read(line)
                code = process.wait()
            events.interrupted |= signals.passed
        except BaseException:
            _stop(process)
            raise
        return events, code, _tail(errors)


def _interpreter(options: Asked, logs: str) -> list[str]:
    """Return the command that runs the probe process: Python, or torchrun if this process starts several ranks."""
    if isinstance(options, Options) and (options.ranks > 1 or options.nnodes > 1) and not is_rank(os.environ):
        return torchrun(options, logs)
    return [sys.executable, "-m"]


class _EventReader:
    """Reads the events of the child, calls a listener, and keeps what its parent must know at the end."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.points = 0
        """Points measured so far."""
        self.path: str | None = None
        """Path of the record; None until it is open."""
        self.left_out: tuple[str, ...] = ()
        """Groups of points for which there was no time."""
        self.ended = False
        """Whether the child said that it is done."""
        self.lost: str | None = None
        """Why the device was lost; None: it was not."""
        self.follows = False
        """Whether the child is a rank that writes no record."""
        self.interrupted = False
        """Whether an interruption was forwarded to the child."""

    def read(self, line: str) -> None:
        """Handle one event.

        Raises:
            MpplanError: the probe process reported an error.
        """
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            return
        name = event.pop("event", None)
        handle: dict[str, Callable[..., None]] = {
            "began": self._began,
            "planned": self._listener.planned,
            "started": lambda **v: self._listener.started(Progress(**v)),
            "measured": self._measured,
            "noted": self._listener.noted,
            "failed": self._failed,
            "ended": self._ended,
            "follows": self._follows,
        }
        if name in handle:
            handle[name](**event)

    def _follows(self) -> None:
        self.follows = True

    def _began(self, path: str, device_name: str) -> None:
        self.path = path
        self._listener.began(path, device_name)

    def _measured(self, line: str) -> None:
        measurement = parse_line(line)
        if isinstance(measurement, Measurement):
            self.points += 1
            self._listener.measured(measurement)

    def _failed(self, message: str, hint: str | None, exit_code: int) -> None:
        raise ReportedError(message, hint=hint, exit_code=exit_code)

    def _ended(self, points: int, left_out: list[str], lost_device: str | None) -> None:
        self.ended, self.left_out, self.lost = True, tuple(left_out), lost_device


class _ForwardedSignals:
    """Passes interruptions on to the child and waits for it. Ctrl-C may reach the child twice; it hears the first."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._before: Any = None
        self.passed = False
        """Whether there was an interruption."""

    def __enter__(self) -> _ForwardedSignals:
        try:
            self._before = {number: signal.signal(number, self._pass) for number in (signal.SIGTERM, signal.SIGINT)}
        except ValueError:  # not in the main thread: the caller handles signals
            self._before = None
        return self

    def _pass(self, _number: int, _frame: object) -> None:
        self.passed = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def __exit__(self, *_: object) -> None:
        for number, handler in (self._before or {}).items():
            signal.signal(number, handler)


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(TERMINATE_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _with_our_root(path: str | None) -> str:
    """Return a PYTHONPATH with which the child finds this very package, also from another directory."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join([root, path]) if path else root


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(errors.tell() - TAIL_BYTES, 0))
    return errors.read().decode("utf-8", errors="replace")


def last_words(code: int, stderr: str, lost: str | None) -> str:
    """Return why the process, or the first of several ranks, ended; a rank's own report says more than torchrun."""
    rank = first_failure(stderr)
    if rank is not None:
        return f"lost {lost}" if lost and rank.endswith(f"exit code {EXIT_DEVICE_LOST}") else rank
    if code == EXIT_DEVICE_LOST:
        return "the GPU was lost"
    if code < 0:
        name = signal.Signals(-code).name
        why = " (the system ran out of memory?)" if name == "SIGKILL" else ""
        return f"the probe process was ended by {name}{why}"
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    return f"the probe process failed with exit code {code}: {lines[-1].strip() if lines else 'no message'}"
