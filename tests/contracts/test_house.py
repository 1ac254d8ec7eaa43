"""What the source must look like, read from its syntax trees: conversions in one file, tests that mirror, and so on."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("planner", "probes", "pricing", "reports", "mpplan")
SOURCES = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))

_LARGE = (24, 60, 1024, 3600, 8760, 86400, 1e3, 1e6, 1e9, 1e12, 1e15, 3.6e6, 3.6e9, 2**20, 2**30, 2**40)
CONVERSION_FACTORS = {*_LARGE, 1e-3, 1e-6, 1e-9, 1e-12}
"""Numbers that turn one unit into another when they multiply or divide."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, which three tests go through."""
    return tuple(ast.walk(tree(path)))


def test_nothing_is_called_utils():
    assert [path for path in SOURCES if re.search(r"util|helper|misc|common", path.stem)] == []


def conversions(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Pow):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and side.value in CONVERSION_FACTORS and side.value is not True:
                    yield f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_units_are_converted_in_units_py_only():
    assert [line for path in SOURCES if path.name != "units.py" for line in conversions(path)] == []


@pytest.mark.parametrize("line", ["energy_kwh = energy_j / 3.6e6", "memory = gib * 1024**3", "grams = 1e3 * kg"])
def test_a_planted_conversion_is_seen(tmp_path, line):
    planted = tmp_path / "planted.py"
    planted.write_text(line, encoding="utf-8")

    assert list(conversions(planted)) != []  # a root on the left of `/` leaves an absolute path as it is


VAGUE = {"one", "found", "said"}
"""Names that do not tell what a variable holds."""


def vague_names(path: Path) -> Iterator[str]:
    """Variables and arguments with such a name; `found` may stand beside `expected`."""
    arguments = {node.arg for node in nodes(path) if isinstance(node, ast.arg)}
    allowed = {"found"} if "expected" in arguments else set()
    for node in nodes(path):
        is_assigned = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        name = node.id if is_assigned else node.arg if isinstance(node, ast.arg) else ""
        if name in VAGUE - allowed:
            yield f"{path}:{node.lineno} {name}"


def test_a_variable_is_named_for_what_it_holds():
    tests = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))

    assert [line for path in [*SOURCES, *tests] for line in vague_names(path)] == []


def test_a_planted_vague_name_is_seen(tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text("def total(found):\n    return sum(one.size for one in found)\n", encoding="utf-8")

    assert [line.rsplit(" ", 1)[1] for line in vague_names(planted)] == ["found", "one"]


def test_a_file_has_at_most_400_lines():
    defining = [
        path for path in SOURCES if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree(path).body)
    ]
    lines = {str(path): (ROOT / path).read_text(encoding="utf-8").count("\n") for path in defining}

    assert len(defining) > 300  # a table of strings alone may be long
    assert {path: count for path, count in lines.items() if count > 400} == {}


def test_a_function_has_at_most_60_lines():
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]

    assert long == []


def assigned_attributes(path: Path) -> set[str]:
    """Names of attributes that the file assigns to: a class with such a field is a process with a state, not data."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.attr for target in targets if isinstance(target, ast.Attribute)}
    return names


def loose_dataclasses(path: Path) -> Iterator[str]:
    """Dataclasses of a file that lack what theirs should have."""
    assigned = assigned_attributes(path)
    for node in nodes(path):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            text = ast.unparse(decorator)
            fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
            wanted = {"slots=True", *(["kw_only=True"] if len(fields) > 2 else [])}
            stateful = assigned & {ast.unparse(field.target) for field in fields}
            wanted |= set() if stateful else {"frozen=True"}
            if text.startswith("dataclass") and not all(argument in text for argument in wanted):
                yield f"{path}:{node.lineno} {node.name}"


def test_dataclasses_are_slotted_frozen_unless_they_work_and_keyword_only_from_three_fields():
    assert [line for path in SOURCES for line in loose_dataclasses(path)] == []


def test_every_test_file_stands_where_its_source_stands():
    lost = []
    for room in ROOMS:
        for test in sorted((ROOT / "tests" / room).rglob("test_*.py")):
            place = ROOT / test.parent.relative_to(ROOT / "tests") / test.stem.removeprefix("test_")
            if not (place.with_suffix(".py").is_file() or place.is_dir()):
                lost.append(str(test.relative_to(ROOT)))

    assert lost == []


def imports_of(file: Path) -> set[str]:
    """Modules that a file names in an import, as dotted paths."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def imported_by_tests() -> set[str]:
    """Modules that some test file names in an import."""
    return set().union(*(imports_of(test) for test in (ROOT / "tests").rglob("*.py")))


def is_member(path: Path, imported: set[str]) -> bool:
    """Whether a folder above lists this file as a member of a kind, and a test takes that list."""
    for folder in path.parents:
        if len(folder.parts) > 1 and ".".join(folder.parts) in imported:
            registry = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
            if re.search(rf"\b{path.stem}\b", registry):
                return True
    return False


def test_every_source_file_with_a_public_function_is_tested():
    """By its own test file, one that imports it, or, for a member of a kind, one over all members of its folder."""
    imported = imported_by_tests()
    untested = []
    for path in SOURCES:
        functions = [node.name for node in tree(path).body if isinstance(node, ast.FunctionDef)]
        has_code = any(not name.startswith("_") for name in functions)
        own = ROOT / "tests" / path.parent / f"test_{path.stem}.py"
        module = ".".join(path.with_suffix("").parts)
        if (
            has_code
            and path.name not in ("__init__.py", "__main__.py")
            and not own.is_file()
            and module not in imported
            and not is_member(path, imported)
        ):
            untested.append(str(path))

    assert untested == []


def shared_files() -> list[Path]:
    """What a clone holds: git's list, or everything in an unpacked source distribution."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = done.stdout.split("\0") if done.returncode == 0 else [str(path) for path in SOURCES]
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


LEAKS = (
    "/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "/tm" + "p/",
    "py" + "pi.org", "python" + "hosted", "npm" + "js", "deb." + "debian", "registry." + "npm",
)  # fmt: skip
"""Paths of somebody's machine and hosts of package registries, split so that this file does not find itself."""


def test_no_machine_path_or_package_host_is_written_down():
    leaks = []
    for path in shared_files():
        if path.stat().st_size < 2_000_000:
            text = path.read_bytes().decode("utf-8", errors="replace").lower()
            leaks += [f"{path.relative_to(ROOT)}: {word}" for word in LEAKS if word in text]

    assert leaks == []
