"""The page's arithmetic in node, for tests that hold it against Python's."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import reports

ARITHMETIC = Path(reports.__file__).parent / "templates" / "arithmetic.js"


def in_node(cases: list[object], expression: str) -> list[object]:
    """Run an expression of the page's arithmetic over cases `one`, in one node process."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: run tests/browser_setup.sh")
    program = ARITHMETIC.read_text(encoding="utf-8") + (
        "\nconst cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        f"\nprocess.stdout.write(JSON.stringify(cases.map((one) => {expression})));"
    )
    done = subprocess.run([node, "-e", program], input=json.dumps(cases), capture_output=True, text=True, check=True)
    results: list[object] = json.loads(done.stdout)
    return results
