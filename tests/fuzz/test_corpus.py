"""Everything that was ever found stays mended."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import surfaces
from tests.fuzz.case import CORPUS, read_case
from tests.fuzz.workers import judge_of

KEPT = sorted(path for path in CORPUS.glob("*/*") if path.suffix == ".json")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_finding_is_mended(path):
    surface = surfaces()[path.parent.name]
    case = getattr(surface, "read_case", read_case)(path)

    assert judge_of(surface)(case, surface.run(case)) == []
