"""Which statements of `probes/` ran, function by function: what no test on a GPU can tell where there is no GPU."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "probes"
_SILENT = (ast.Global, ast.Nonlocal, ast.Pass, ast.Try)
"""Statements that no interpreter reports a line for, on one version or another."""


class LinesRun:
    """Notes the lines of `probes/` that run within a `with` block, in all threads."""

    def __init__(self) -> None:
        self.by_file: dict[str, set[int]] = defaultdict(set)
        self._prefix = f"{PACKAGE}/"

    def __enter__(self) -> LinesRun:
        self._before = sys.gettrace()
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)
        threading.settrace(None)  # type: ignore[arg-type]

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(self._prefix):
            return None
        lines = self.by_file[name]

        def line_run(inner: FrameType, _event: str, _argument: Any) -> Any:
            lines.add(inner.f_lineno)
            return line_run

        return line_run

    def functions_left_out(self) -> dict[tuple[str, str], list[int]]:
        """Functions with a statement that did not run, as (module, qualified name), with the lines."""
        left_out: dict[tuple[str, str], list[int]] = {}
        for path in sorted(PACKAGE.rglob("*.py")):
            run = self.by_file.get(str(path), set())
            module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            for name, statements in functions_of(path):
                missed = [first for first, last in statements if run.isdisjoint(range(first, last + 1))]
                if missed:
                    left_out[module, name] = missed
        return left_out


Span = tuple[int, int]
"""First and last line of a statement, or of the head of a compound one."""


def functions_of(path: Path) -> list[tuple[str, list[Span]]]:
    """Functions of a module with their statements; those with a docstring alone have none."""
    return list(_functions(ast.parse(path.read_text(encoding="utf-8")), ""))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, list[Span]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if isinstance(child, ast.FunctionDef):
                yield name, [span for statement in _body(child) for span in _spans(statement)]
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    first = function.body[0]
    is_documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if is_documented else function.body


def _spans(statement: ast.stmt) -> Iterator[Span]:
    """A statement and those inside it, but not those of functions that it defines."""
    bodies = [body for name in ("body", "orelse", "finalbody") for body in getattr(statement, name, [])]
    handlers = [inner for handler in getattr(statement, "handlers", []) for inner in handler.body]
    is_definition = isinstance(statement, ast.FunctionDef | ast.ClassDef)
    if not isinstance(statement, _SILENT):
        last = bodies[0].lineno - 1 if bodies and not is_definition else statement.end_lineno
        yield statement.lineno, max(last or statement.lineno, statement.lineno)
    for inner in [] if is_definition else [*bodies, *handlers]:
        yield from _spans(inner)
