"""`python -m tests.fuzz --seed N --seconds S`: attack the program on every surface and keep what was found.

Each surface has an equal share of the time. A finding is written to `tests/corpus/<surface>/`; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
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
    surface: ModuleType, seed: int, *, seconds: float | None = None, count: int | None = None, workers: int = 1,
    limit_s: float = LIMIT_S,
) -> Tally:  # fmt: skip
    """Run the cases of one surface for a time, or a number of them.

    Args:
        surface: its module.
        seed: of its cases.
        seconds: when to stop; None: by `count` alone.
        count: how many cases; None: by `seconds` alone.
        workers: processes; each takes every n-th case.
        limit_s: time of one case.
    """
    tally, started = Tally(surface=surface.__name__.rsplit(".", 1)[-1]), time.monotonic()

    def share(first: int) -> None:
        worker = Worker(surface, limit_s)
        try:
            for case in islice(surface.cases(seed), first, count, workers):
                if seconds is not None and time.monotonic() - started > seconds:
                    return
                outcome, wrong = worker.run(case)
                tally.count(case, outcome.code, wrong)
                if wrong:
                    print(f"! {'; '.join(wrong)[:300]}", file=sys.stderr, flush=True)  # noqa: T201
                if tally.cases % TELL_EVERY == 0:
                    tally.seconds = time.monotonic() - started
                    print(f"… {tally}", file=sys.stderr, flush=True)  # noqa: T201
        finally:
            worker.stop()

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))
    tally.seconds = time.monotonic() - started
    return tally


def unlike(findings: Iterable[tuple[Any, list[str]]]) -> list[tuple[Any, list[str]]]:
    """One finding of each kind: those whose sentences differ in more than figures and quoted values."""
    kinds: dict[str, tuple[Any, list[str]]] = {}
    for case, wrong in findings:
        kinds.setdefault(_kind(wrong[0]), (case, wrong))
    return list(kinds.values())


def _kind(sentence: str) -> str:
    return re.sub(r"[`'\"].*?[`'\"]|\d+", "", sentence.split(": ")[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print what came of it, keep the findings; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="of all surfaces together; default 60 without --count")
    parser.add_argument("--count", type=int, help="cases of each surface")
    parser.add_argument("--surface", action="append", choices=sorted(surfaces()))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that one case may take")
    asked = parser.parse_args(arguments)
    chosen = {name: module for name, module in surfaces().items() if not asked.surface or name in asked.surface}
    seconds = asked.seconds if asked.seconds is not None or asked.count is not None else 60.0
    share = None if seconds is None else seconds / len(chosen)
    found = 0
    for name, module in chosen.items():
        tally = attack(module, asked.seed, seconds=share, count=asked.count, workers=asked.workers, limit_s=asked.limit)
        print(tally, flush=True)  # noqa: T201 - a program of its own
        for case, wrong in unlike(tally.findings):
            kept = case.keep(name, wrong) if hasattr(case, "keep") else module.kept(case)
            print(f"  {'; '.join(wrong)}\n    {kept}", flush=True)  # noqa: T201
        found += len(tally.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
