"""Report the structure of the code: `make house`.

Prints, for every package, its layers from top to bottom with the modules in each folder, and the number of imports that
point against the layers. The layers come from the contracts in `pyproject.toml`, which `lint-imports` enforces and this
program shows. Exits with 1 if an import points up or a folder holds more than 15 modules.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

MOST_MODULES = 15
"""Maximum number of modules in one folder, not counting its `__init__`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layering:
    """The layers of one package, as its contract states them."""

    package: str
    layers: tuple[tuple[str, ...], ...]
    """Names from top to bottom; names in the same layer do not import each other."""

    def rank(self, module: str) -> int | None:
        """Return the layer of a module, 0 for the top; None for a module of another package."""
        if not module.startswith(f"{self.package}."):
            return None
        name = module.removeprefix(f"{self.package}.").split(".")[0]
        return next((rank for rank, names in enumerate(self.layers) if name in names), None)


def layerings(contracts: Sequence[Mapping[str, Any]]) -> list[Layering]:
    """Return the layers of every package that an import-linter contract orders.

    Args:
        contracts: the table `tool.importlinter.contracts`.
    """
    return [
        Layering(
            package=package,
            layers=tuple(tuple(name.strip() for name in layer.split("|")) for layer in contract["layers"]),
        )
        for contract in contracts
        if contract["type"] == "layers"
        for package in contract.get("containers", ())
    ]


def modules_of(package: str) -> dict[str, Path]:
    """Return the modules below a package by dotted name."""
    folder = ROOT.joinpath(*package.split("."))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__init__.py"
    }


@cache
def _import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a file, which is parsed only once for all layerings."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def imports_of(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the project's modules that a file imports, including imports inside functions."""
    for node in _import_statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in inner)


def arrows_up(layering: Layering, known: Mapping[str, Path]) -> list[str]:
    """Return the imports from a layer into one above it or beside it."""
    against = []
    for module, path in known.items():
        own = layering.rank(module)
        for target in imports_of(path, known):
            other = layering.rank(target)
            same_room = (
                module.split(".")[: layering.package.count(".") + 2]
                == target.split(".")[: layering.package.count(".") + 2]
            )
            if own is not None and other is not None and other <= own and not same_room:
                against.append(f"{module} -> {target}")
    return against


def sizes(package: str) -> dict[str, int]:
    """Return the number of modules per folder."""
    count: dict[str, int] = defaultdict(int)
    for path in modules_of(package).values():
        count[str(path.parent.relative_to(ROOT))] += 1
    return dict(count)


def main() -> None:
    """Print the layers and the counts."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    packages = list(settings["root_packages"])
    known = {name: path for package in packages for name, path in modules_of(package).items()}
    counts = {folder: size for package in packages for folder, size in sizes(package).items()}
    against: list[str] = []
    for layering in layerings(settings["contracts"]):
        sys.stdout.write(f"{layering.package}\n")
        for names in layering.layers:
            folders = (f"{layering.package.replace('.', '/')}/{name}" for name in names)
            rooms = (f"{name} ({_below(counts, folder)})" for name, folder in zip(names, folders, strict=True))
            sys.stdout.write(f"    {' | '.join(rooms)}\n")
        against += arrows_up(layering, known)
    largest = sorted(counts.items(), key=lambda entry: -entry[1])[:5]
    sys.stdout.write(f"arrows against the layers: {len(against)}\n")
    sys.stdout.writelines(f"    {arrow}\n" for arrow in against)
    sys.stdout.write("largest folders: " + ", ".join(f"{folder} {size}" for folder, size in largest) + "\n")
    sys.exit(1 if against or largest[0][1] > MOST_MODULES else 0)


def _below(counts: Mapping[str, int], folder: str) -> int:
    """Return the number of modules in a folder and its sub-folders; 1 for a module."""
    return sum(size for name, size in counts.items() if name == folder or name.startswith(f"{folder}/")) or 1


if __name__ == "__main__":
    main()
