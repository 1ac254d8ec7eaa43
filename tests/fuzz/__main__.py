"""`python -m tests.fuzz --seed N --seconds S`: attack the program on every surface and keep what was found.

Each surface has an equal share of the time. A finding is written to `tests/corpus/<surface>/`; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.fuzz.workers import LIMIT_S, Worker

TELL_EVERY = 500
"""Cases between two lines that say how far it is."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the cases of one surface."""

    surface: str
    cases: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    findings: list[tuple[Any, list[str]]] = field(default_factory=list)
    kept: dict[str, Path] = field(default_factory=dict)
    """The file of the first finding of each kind."""
    seconds: float = 0.0

    def count(self, case: Any, code: int, wrong: list[str]) -> None:
        """Add one case."""
        self.cases += 1
        self.codes[code] += 1
        if wrong:
            self.findings.append((case, wrong))

    def __str__(self) -> str:
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        return (
            f"{self.surface}: {self.cases} cases in {self.seconds:.0f} s, exit codes {codes}; "
            f"{len(self.findings)} findings"
        )


def surfaces() -> dict[str, ModuleType]:
    """The modules of this folder that offer `cases` and `run`, by name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith(("_", "test_")))
    modules = {name: import_module(f"tests.fuzz.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "cases") and hasattr(module, "run")}


def attack(
    surface: ModuleType, seed: int, *, seconds: float | None = None, count: int | None = None, first: int = 0,
    workers: int = 1, limit_s: float = LIMIT_S, keep: bool = False,
) -> Tally:  # fmt: skip
    """Run the cases of one surface for a time, or a number of them.

    Args:
        surface: its module.
        seed: of its cases.
        seconds: when to stop; None: by `count` alone.
        count: where to stop, counted from the first case of the seed; None: by `seconds` alone.
        first: number of the case to begin with.
        workers: processes; each takes every n-th case.
        limit_s: time of one case.
        keep: write the first finding of each kind to `tests/corpus/` at once, so that a run may be stopped.
    """
    tally, started = Tally(surface=surface.__name__.rsplit(".", 1)[-1]), time.monotonic()

    def share(number: int) -> None:
        worker = Worker(surface, limit_s)
        try:
            for case in islice(surface.cases(seed), first + number, count, workers):
                if seconds is not None and time.monotonic() - started > seconds:
                    return
                outcome, wrong = worker.run(case)
                tally.count(case, outcome.code, wrong)
                if wrong:
                    print(f"! {'; '.join(wrong)[:300]}", file=sys.stderr, flush=True)  # noqa: T201
                    if keep and _kind(wrong[0]) not in tally.kept:
                        tally.kept[_kind(wrong[0])] = _kept(surface, case, wrong)
                if tally.cases % TELL_EVERY == 0:
                    tally.seconds = time.monotonic() - started
                    print(f"… {tally}", file=sys.stderr, flush=True)  # noqa: T201
        finally:
            worker.stop()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))
    tally.seconds = time.monotonic() - started
    return tally


def _kept(surface: ModuleType, case: Any, wrong: list[str]) -> Path:
    """Write a finding beside the others of its surface."""
    if hasattr(case, "keep"):
        return Path(case.keep(surface.__name__.rsplit(".", 1)[-1], wrong))
    return Path(surface.kept(case))


def _kind(sentence: str) -> str:
    """A sentence without its figures and quoted values: findings that share it are told of once."""
    return re.sub(r"[`'\"].*?[`'\"]|\d+", "", sentence)


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print what came of it, keep the findings; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of all surfaces together; default 60 without --count")
    parser.add_argument("--count", type=int, help="cases of each surface, with those before --first")
    parser.add_argument("--first", type=int, default=0, help="number of the case to begin with")
    parser.add_argument("--surface", action="append", choices=sorted(surfaces()))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that one case may take")
    asked = parser.parse_args(arguments)
    chosen = {name: module for name, module in surfaces().items() if not asked.surface or name in asked.surface}
    seconds = asked.seconds if asked.seconds is not None or asked.count is not None else 60.0
    share = None if seconds is None else seconds / len(chosen)
    findings = 0
    for module in chosen.values():
        tally = attack(
            module, asked.seed, seconds=share, count=asked.count, first=asked.first, workers=asked.workers,
            limit_s=asked.limit, keep=True,
        )  # fmt: skip
        print(tally, flush=True)  # noqa: T201 - a program of its own
        for kind, path in tally.kept.items():
            print(f"  {kind}\n    {path}", flush=True)  # noqa: T201
        findings += len(tally.findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
