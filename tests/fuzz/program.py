"""Runs the program in this process, in a folder of its own, and collects what a shell would see."""

from __future__ import annotations

import io
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, Outcome

KEPT = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "SYSTEMROOT")
"""Variables of this process that a case may see."""


def run_program(case: Case, inputs: Mapping[str, bytes] = {}) -> Outcome:
    """Run one case; nothing of this process's folder, home, variables or streams reaches it, nor does the network.

    Args:
        case: the arguments and what lies around.
        inputs: files that lie in the working folder in addition to those of the case, by name.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        work_folder, home = Path(place, "here"), Path(place, "home")
        for folder in (work_folder, home):
            folder.mkdir()
        files = {**inputs, **case.files}
        for name, content in files.items():
            path = work_folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        variables = {name: os.environ[name] for name in KEPT if name in os.environ}
        variables |= {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "XDG_CONFIG_HOME": str(home / "config")}
        variables |= {"XDG_CACHE_HOME": str(home / "cache"), "COLUMNS": "100", "MPPLAN_DEBUG": "1", **case.variables}
        with _inside(work_folder, variables), _streams(case.stdin) as (out, err), _offline():
            code = _main(case.arguments)
            out.flush()
            err.flush()
            changed = {
                f"here/{name}": content
                for name, content in _contents(work_folder).items()
                if files.get(name) != content
            }
            changed |= {f"home/{name}": content for name, content in _contents(home).items()}
            told = err.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
            return Outcome(code=code, out=out.buffer.getvalue(), err=told, files=changed)  # type: ignore[attr-defined]


def _main(arguments: tuple[str, ...]) -> int:
    from mpplan.app import main

    before = sys.argv
    sys.argv = ["mpplan", *arguments]
    try:
        return main()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.argv = before


@contextmanager
def _inside(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    where, before = os.getcwd(), dict(os.environ)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    before = sys.stdin, sys.stdout, sys.stderr
    new = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (stdin, b"", b"")]
    sys.stdin, sys.stdout, sys.stderr = new
    try:
        yield new[1], new[2]
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _offline() -> Iterator[None]:
    """No case reaches past this machine: a connection elsewhere fails as it does without a network."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(101, "Network is unreachable")
        connect(self, address)

    look_up = socket.getaddrinfo

    def only_here(host: Any, *rest: Any, **more: Any) -> Any:
        if host not in ("127.0.0.1", "::1", "localhost", None):
            raise socket.gaierror(-3, "Temporary failure in name resolution")
        return look_up(host, *rest, **more)

    socket.socket.connect, socket.getaddrinfo = refuse, only_here  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        socket.socket.connect, socket.getaddrinfo = connect, look_up  # type: ignore[method-assign]


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
