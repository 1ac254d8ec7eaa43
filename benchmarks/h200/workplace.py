"""One folder, one device and one deadline, within which the commands of a campaign run and leave their results."""

from __future__ import annotations

import gzip
import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
END_S = 20.0
"""Time for a command to end by itself after it is told to."""
INSTALL_LIMIT_S = 120.0


def say(text: str) -> None:
    """Print a line immediately, so that a log that is cut off contains it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Workplace:
    """Runs commands within a deadline, with everything that they write inside one folder."""

    def __init__(self, out: Path, device: str, minutes: float, *, name: str, record: Path | None = None) -> None:
        """Make the folder.

        Args:
            out: the folder.
            device: `cuda` or `cpu`.
            minutes: minutes until the deadline.
            name: name of the command, for the log.
            record: an earlier record, copied into the folder if that contains none.
        """
        self.end = time.monotonic() + 60.0 * minutes
        self.out, self.device = out.resolve(), device
        self.log = self.out / f"{name}.log"
        self.record = self.out / "suite-1.jsonl"
        self.out.mkdir(parents=True, exist_ok=True)
        if record is not None and not self.record.exists():
            shutil.copyfile(record, self.record)

    @property
    def left_s(self) -> float:
        """Seconds to the deadline."""
        return self.end - time.monotonic()

    @property
    def packages(self) -> Path:
        """Folder for packages that the machine lacks."""
        return self.out / "packages"

    def install(self, wheels: Path | None) -> None:
        """Install the wheels of packages that the machine lacks, without a network, into this folder."""
        missing = [path for path in sorted(wheels.glob("*.whl")) if _is_missing(path)] if wheels else []
        if missing:
            target = ("--target", str(self.packages), "--no-index", "--no-deps", "--no-compile", "--upgrade")
            names = [str(path.resolve()) for path in missing]
            self.python("install", "-m", "pip", "install", "--quiet", *target, *names, limit_s=INSTALL_LIMIT_S)

    def probe(self, name: str, record: Path, *more: str, reserve_s: float = 20.0, limit_s: float | None = None) -> int:
        """Run `mpplan probe` into a record, with the remaining time as its budget; return its exit code."""
        left_s = self.left_s - reserve_s if limit_s is None else limit_s
        budget = ("--budget", f"{max(left_s, 5.0):.0f}s")
        device = ("--device", "cpu" if self.device == "cpu" else "gpu")
        resume = [word for word in more if word != "--resume" or record.exists()]
        return self.python(
            name, "-m", "mpplan", "probe", *device, *budget, "-o", str(record), *resume, reserve_s=reserve_s / 2
        )

    def python(
        self,
        name: str,
        *words: str,
        reserve_s: float = 5.0,
        limit_s: float | None = None,
        stdout: Path | None = None,
    ) -> int:
        """Run a Python command; see `run`."""
        return self.run(name, sys.executable, *words, reserve_s=reserve_s, limit_s=limit_s, stdout=stdout)

    def run(
        self,
        name: str,
        *command: str,
        reserve_s: float = 5.0,
        limit_s: float | None = None,
        stdout: Path | None = None,
    ) -> int:
        """Run a command within a time limit, with its output in the log.

        Returns:
            The exit code; 127 if the command cannot be run.
        """
        limit = max(min(self.left_s - reserve_s, limit_s or float("inf")), 1.0)
        say(f"== {name}: at most {limit:.0f} s")
        self.note(f"== {name}")
        into_path = self.log if stdout is None else _part(stdout)
        try:
            with self.log.open("ab") as log, into_path.open("ab" if stdout is None else "wb") as into:
                process = subprocess.Popen(command, stdout=into, stderr=log, env=self.environment(), cwd=self.out)
                code = _wait(process, limit)
            if stdout is not None:
                into_path.replace(stdout)
        except OSError as error:
            self.note(f"{command[0]}: {error.strerror}")
            code = 127
        say(f"== {name}: exit {code}, {self.left_s:.0f} s left")
        return code

    def environment(self) -> dict[str, str]:
        """Return the variables of a command, which find the packages and place caches and data in the folder."""
        path = os.pathsep.join(filter(None, [str(ROOT), str(self.packages), os.environ.get("PYTHONPATH")]))
        cache, scratch = self.out / "cache", self.out / "tmp"
        scratch.mkdir(exist_ok=True)
        places = {
            "XDG_DATA_HOME": self.out / "data",
            "XDG_CACHE_HOME": cache,
            "TORCHINDUCTOR_CACHE_DIR": cache / "inductor",
            "TRITON_CACHE_DIR": cache / "triton",
            "CUDA_CACHE_PATH": cache / "cuda",
            "HF_HOME": cache / "huggingface",
            "RUSTUP_HOME": cache / "rustup",  # pip asks rustc for its version, which creates this folder
            "TMPDIR": scratch,
        }
        fixed = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
        return os.environ | fixed | {name: str(place) for name, place in places.items()}

    def note(self, text: str) -> None:
        """Add a line to the log."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")

    def pack(self) -> None:
        """Write a compressed copy of each record and trace next to it, for keeping, and list the files."""
        for path in sorted(self.out.glob("*.jsonl")):
            packed = path.with_name(f"{path.name}.gz")
            with path.open("rb") as source, gzip.open(_part(packed), "wb") as target:
                shutil.copyfileobj(source, target)
            _part(packed).replace(packed)
        for path in self.out.glob("*.part"):  # left by a command that was cut off
            path.unlink()
        shutil.rmtree(self.out / "tmp", ignore_errors=True)
        for path in sorted(path for path in self.out.iterdir() if path.is_file()):
            say(f"{path.stat().st_size:>10} {path.name}")


def _part(path: Path) -> Path:
    """Return the path for a file until it is complete, since a command may be cut off at any point."""
    return path.with_name(f"{path.name}.part")


def _is_missing(wheel: Path) -> bool:
    """Return whether no version of a wheel's package is installed (PEP 427: the name ends at the first hyphen)."""
    try:
        importlib.metadata.version(wheel.name.split("-", 1)[0])
    except importlib.metadata.PackageNotFoundError:
        return True
    return False


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Wait for a command; past the limit it is told to end, after which the probe finishes with what it has."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()
    except BaseException:
        process.terminate()
        process.wait(END_S)
        raise
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
