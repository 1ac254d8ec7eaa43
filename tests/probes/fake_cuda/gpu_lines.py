"""Which lines of `probes/` only a GPU takes, as its source says.

Of a GPU are: the side of a condition on the device that a GPU takes, and what follows where the other side leaves; a
function or class that is named nowhere else; what asks `torch.cuda` or NVML for something; and whole files, named here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

GPU_FILES = (
    "device/faults.py",
    "energy/meter.py",
    "energy/power.py",
    "energy/monitor.py",
    "energy/window.py",
    "ranks/failure_reports.py",
    "sensors/nvml.py",
    "timing/device_gate.py",
    "timing/graphs.py",
    "workloads/idle.py",
    "workloads/power.py",
    "precisions/low/float8.py",
    "precisions/low/mxfp8.py",
    "precisions/linear/mx_linear.py",
    "precisions/linear/scaled_linear.py",
    "precisions/linear/products.py",
)
"""What a CPU runs of these, if any, is the same code: energy with RAPL, FP8 emulated in tests, ranks over gloo."""
GPU_FLAGS = ("on_gpu", "is_cuda")
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
Block = list[ast.stmt]


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A statement, named so that edits elsewhere in its file do not rename it."""

    file: str
    """Within `probes/`."""
    function: str
    text: str
    """The first line of the statement."""


@dataclass(slots=True)
class _Module:
    """What was found in a file."""

    lines: list[str]
    tree: ast.Module
    statements: dict[int, str] = field(default_factory=dict)
    """The function of each statement in one, by its line."""
    of_gpu: set[int] = field(default_factory=set)
    defined: dict[str, list[ast.AST]] = field(default_factory=dict)
    named: dict[str, list[bool]] = field(default_factory=dict)
    """For each mention of a name, whether only a GPU comes there."""


def sides(test: ast.expr) -> tuple[bool, bool]:
    """Whether only a GPU takes the side where a condition holds, and the one where it does not."""
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() as how], comparators=[ast.Constant(value="cuda" | "cpu" as kind)]):
            holds = (kind == "cuda") == isinstance(how, ast.Eq)
            return holds, not holds
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return sides(operand)[::-1]
        case ast.BoolOp(op=how, values=values):
            each = [sides(value) for value in values]
            first, second = [side[0] for side in each], [side[1] for side in each]
            return (any(first), all(second)) if isinstance(how, ast.And) else (all(first), any(second))
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in GPU_FLAGS, False
    return False, False


def gpu_lines(root: Path) -> dict[Line, set[int]]:
    """Each line of a GPU in a folder, with the numbers at which it stands."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules[path.relative_to(root).as_posix()] = _Module(lines=text.splitlines(), tree=ast.parse(text))
    of_gpu: set[str] = set()
    while True:
        for file, module in modules.items():
            _read(module, file in GPU_FILES, of_gpu)
        mentions: dict[str, list[bool]] = {}
        for module in modules.values():
            for name, seen in module.named.items():
                mentions.setdefault(name, []).extend(seen)
        more = {name for module in modules.values() for name in module.defined if all(mentions.get(name, [False]))}
        if more == of_gpu:
            break
        of_gpu = more
    lines: dict[Line, set[int]] = {}
    for file, module in modules.items():
        for number in module.of_gpu:
            line = Line(file, module.statements[number], module.lines[number - 1].strip())
            lines.setdefault(line, set()).add(number)
    return lines


def _read(module: _Module, is_gpu: bool, gpu_names: set[str]) -> None:
    module.statements, module.of_gpu, module.defined, module.named = {}, set(), {}, {}
    _Reader(module, gpu_names).block(module.tree.body, "", is_gpu)


class _Reader:
    """Goes through a file once."""

    def __init__(self, module: _Module, gpu_names: set[str]) -> None:
        self._module, self._gpu_names = module, gpu_names

    def block(self, statements: Block, function: str, is_gpu: bool) -> None:
        """Read statements in their order."""
        for statement in statements:
            is_gpu = self._statement(statement, function, is_gpu)

    def _statement(self, statement: ast.stmt, function: str, is_gpu: bool) -> bool:
        """Read a statement; whether what follows is a GPU's."""
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._note(statement, function, is_gpu)
            return is_gpu
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            self._module.defined.setdefault(statement.name, []).append(statement)
            inside = f"{function}.{statement.name}" if function else statement.name
            for part in [*statement.decorator_list, *getattr(statement, "bases", [])]:
                self._expression(part, is_gpu)
            only = is_gpu or statement.name in self._gpu_names
            self.block(statement.body, inside, only)
            return is_gpu
        asks_gpu = is_gpu or any(_asks_gpu(part) for part in _expressions_of(statement))
        self._note(statement, function, asks_gpu)
        for part in _expressions_of(statement):
            self._expression(part, asks_gpu)
        holds, fails = sides(statement.test) if isinstance(statement, ast.If) else (False, False)
        for name, blocks in _blocks(statement):
            side = holds if name == "body" else fails if name == "orelse" else False
            self.block(blocks, function, is_gpu or side)
        if isinstance(statement, ast.If):
            gone = isinstance(statement.body[-1], LEAVES)
            return is_gpu or (gone and fails and not statement.orelse)
        return is_gpu

    def _note(self, statement: ast.stmt, function: str, is_gpu: bool) -> None:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        runs_nothing = is_text or isinstance(statement, ast.Nonlocal | ast.Global)
        if function and not runs_nothing and not (isinstance(statement, ast.AnnAssign) and statement.value is None):
            self._module.statements[statement.lineno] = function
            if is_gpu:
                self._module.of_gpu.add(statement.lineno)

    def _expression(self, expression: ast.AST, is_gpu: bool) -> None:
        if isinstance(expression, ast.IfExp):
            holds, fails = sides(expression.test)
            self._expression(expression.test, is_gpu)
            self._expression(expression.body, is_gpu or holds)
            self._expression(expression.orelse, is_gpu or fails)
            return
        match expression:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                self._module.named.setdefault(name, []).append(is_gpu)
        for part in ast.iter_child_nodes(expression):
            self._expression(part, is_gpu)


def _expressions_of(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself, without the statements below it."""
    for part in ast.iter_child_nodes(statement):
        if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield part


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, Block]]:
    for name in ("body", "orelse", "finalbody"):
        blocks = getattr(statement, name, None)
        if isinstance(blocks, list):
            yield name, blocks
    for handler in getattr(statement, "handlers", []):
        yield "handler", handler.body


def _asks_gpu(expression: ast.AST) -> bool:
    for part in ast.walk(expression):
        match part:
            case ast.Attribute(value=ast.Name(id="torch"), attr="cuda"):
                return True
            case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("nvml"):
                return True
    return False
