"""Check that mpplan works on every Python and with the lowest dependencies it claims: `make versions`.

For each Python from the lowest in `requires-python` on, uv (https://docs.astral.sh/uv) builds two environments from
this checkout: one with the lowest versions that `pyproject.toml` allows and one with the newest. In both, the
installed program plans the README's run and writes its page. A Python that is missing on this machine is reported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST_MINOR = 14
"""Minor version of the newest Python that is tried, 3.14."""
RESOLUTIONS = ("lowest-direct", "highest")
MAIN_JOB = ("estimate", "--params", "70B", "--precision", "fp8", "--report", "plan.html")


def pythons() -> list[str]:
    """Return every version from the lowest that the package allows to the newest that is tried, as `3.11`."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    lowest = re.fullmatch(r">=3\.(\d+)", required)
    assert lowest is not None, f"requires-python is not of the form >=3.N: {required}"
    return [f"3.{minor}" for minor in range(int(lowest[1]), NEWEST_MINOR + 1)]


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def tried(uv: str, python: str, resolution: str) -> str:
    """Return the outcome of one environment: `ok`, or the last line of the failure; empty if the Python is missing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        interpreter = _run(uv, "python", "find", "--no-python-downloads", "--system", python, cwd=folder)
        if interpreter.returncode:
            return ""
        environment = folder / "venv"
        steps: tuple[tuple[str | Path, ...], ...] = (
            (uv, "venv", "--quiet", "--python", interpreter.stdout.strip(), environment),
            (uv, "pip", "install", "--quiet", "--python", environment, "--resolution", resolution, ROOT),
            (environment / "bin" / "mpplan", *MAIN_JOB),
        )
        for step in steps:
            done = _run(*step, cwd=folder)
            if done.returncode:
                return f"`{Path(step[0]).name} {step[1]}` failed: {(done.stderr.strip() or '-').splitlines()[-1]}"
        return "ok" if (folder / "plan.html").stat().st_size > 0 else "the page is empty"


def main() -> int:
    """Try every pair and print one line each; return 1 if one failed, 2 if uv is missing."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        sys.stderr.write("error: uv is not installed\nhint: pip install uv\n")
        return 2
    failed = False
    for python in pythons():
        for resolution in RESOLUTIONS:
            outcome = tried(uv, python, resolution)
            if not outcome:
                sys.stdout.write(f"Python {python}: not on this machine\n")
                break
            failed |= outcome != "ok"
            sys.stdout.write(f"Python {python}, {resolution} versions: {outcome}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
