"""Damaged files: a valid one of every format that mpplan reads, cut, bent and swapped, and the command that reads it.

`python -m tests.fuzz.files --seed 1 --seconds 20` runs cases in this process. A finding is an exit code 1, a traceback
or a hang; it is kept as `tests/corpus/files/<format>-<hash>`, which `test_files.py` replays.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.imports import LOG, OF_TOOLS, OF_TRAINING

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/corpus/files"
LONGEST_S = 300
"""A command that takes longer hangs."""

Mutation = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A damaged file and what is asked of it."""

    kind: str
    """Its format, a key of `FORMATS`."""
    content: bytes
    choice: int = 0
    """Which of the commands that read the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the command did."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def is_finding(self) -> bool:
        """Whether the command broke: our fault, a traceback, a hang."""
        return self.code in (1, HUNG) or "Traceback" in self.err


FRAMEWORKS = ("megatron", "torchtitan", "deepspeed", "accelerate", "axolotl", "skypilot")
HUNG = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format that mpplan reads."""

    name: str
    """Of the file."""
    valid: Callable[[], bytes]
    commands: tuple[tuple[str, ...], ...]
    """Arguments that make mpplan read the file; `FILE` stands for it."""


OWN = b"""[capital]
server_usd_per_gpu = 30000
life_years = 4
residual_ratio = 0.1
financing_ratio = 0.05
[use]
utilisation_ratio = 0.8
[power]
mean_load_ratio = 0.76
"""

ASKED = (
    "estimate", "--params", "125M", "--gpus", "8", "--tokens", "1B", "--seq-len", "512", "--tp", "1", "--pp", "1",
    "--precision", "fp16", "--gpu", "v100-sxm2-32gb", "--json",
)  # fmt: skip
"""A question that is answered in a third of a second: this GPU has two precisions, and no surfaces to look up."""
H100 = ("estimate", "--params", "125M", "--gpus", "8", "--tp", "1", "--pp", "1", "--precision", "bf16", "--json")
"""The same for files that say something of an H100."""


def _estimate(*more: str, asked: tuple[str, ...] = ASKED) -> tuple[tuple[str, ...], ...]:
    return ((*asked, *more),)


@cache
def _answer() -> bytes:
    from tests.reports import extras, sample

    return json.dumps(sample.document() | extras.EXTRAS, ensure_ascii=False).encode()


@cache
def _config() -> bytes:
    from tests.planner.models.test_huggingface import LLAMA

    return json.dumps(LLAMA | {"num_hidden_layers": 4, "hidden_size": 1024, "intermediate_size": 4096}).encode()


def _documented(page: str, word: str) -> Callable[[], bytes]:
    """The TOML example of a page that has a word in it."""

    def read() -> bytes:
        blocks = re.findall(r"^( *)```toml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)
        return next(block for _, block in blocks if word in block).encode()

    return read


def _lines(path: str, count: int) -> Callable[[], bytes]:
    return lambda: b"".join((ROOT / path).read_bytes().splitlines(keepends=True)[:count])


@cache
def _nccl() -> bytes:
    from tests.planner.nccl_output import output

    return output("all_reduce", 2, 8, lambda size: 3e-5 + size / 2e10).encode()


@cache
def _calibration() -> bytes:
    """What `mpplan calibrate` writes for three published runs."""
    with tempfile.TemporaryDirectory() as folder:
        runs, made = Path(folder) / "runs.csv", Path(folder) / "made.json"
        runs.write_bytes(_lines("planner/catalog/published_runs.csv", 4)())
        command = (sys.executable, "-m", "mpplan", "calibrate", runs.name, "-o", made.name)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)  # the runner has threads
        return made.read_bytes()


FORMATS = {
    "answer": Format(
        name="plan.json",
        valid=_answer,
        commands=(
            ("report", "FILE", "--format", "terminal"), ("explain", "FILE", "cost"), ("export", "FILE"),
            ("report", "FILE", "--format", "markdown", "--lang", "zh"), ("explain", "FILE", "carbon", "--json"),
            ("report", "FILE", "-o", "plan.html", "--redact", "prices"), ("explain", "FILE", "rate"),
            ("report", "FILE", "--format", "csv", "--redact", "names"), ("export", "FILE", "--format", "focus"),
            ("report", "FILE", "FILE", "--format", "json"), ("explain", "FILE", "memory"),
            *(("export", "FILE", "--launch", name, "-o", "launch") for name in FRAMEWORKS),
            ("compare", str(LOG), "--plan", "FILE", "--json"),
        ),
    ),
    "config": Format(name="config.json", valid=_config, commands=(
        ("estimate", "--model", "FILE", "--gpus", "8", "--tp", "1", "--pp", "1", "--tokens", "1B", "--json"),
        ("fit", "--model", "FILE", "--method", "lora", "--gpu", "l4", "--seq-len", "512", "--json"),
    )),
    "settings": Format(
        name="mpplan.toml", valid=_documented("docs/configuration.md", "embodied"),
        commands=(("gpus", "h100-sxm5-80gb"), ASKED),
    ),
    "quote": Format(
        name="quote.toml", valid=_documented("docs/pricing.md", "vendor ="),
        commands=_estimate("--gpu", "h100-sxm5-80gb", "--quote", "FILE", asked=H100),
    ),
    "own": Format(
        name="own.toml", valid=lambda: OWN, commands=_estimate("--own", "FILE")
    ),
    "beside": Format(
        name="beside.toml", valid=_documented("docs/pricing.md", "usd_per_gb_month"),
        commands=_estimate("--beside", "FILE"),
    ),
    "tariff": Format(
        name="tariff.toml", valid=_documented("docs/pricing.md", "[[period]]"), commands=_estimate("--tariff", "FILE")
    ),
    "network": Format(
        name="nccl.txt", valid=_nccl,
        commands=(*_estimate("--network-file", "FILE", asked=H100), ("records", "import", "FILE", "-o", "out.jsonl")),
    ),
    "record": Format(
        name="record.jsonl", valid=_lines("tests/planner/records/probe_lines.jsonl", 12),
        commands=(("check", "FILE"), ("check", "FILE", "--json"), (*H100, "--records", "FILE"),
                  ("claims", "c01", "--records", "FILE")),
    ),
    "runs": Format(
        name="runs.csv", valid=_lines("planner/catalog/published_runs.csv", 3),
        commands=(("validate", "FILE", "--json"), ("validate", "FILE"), ("calibrate", "FILE", "-o", "made.json")),
    ),
    "calibration": Format(
        name="made.json", valid=_calibration, commands=_estimate("--calibration", "FILE", asked=H100)
    ),
    "prices": Format(
        name="prices.csv", valid=_lines("pricing/data/gpu_prices.csv", 8),
        commands=(("prices", "check", "FILE"), ("prices", "import", "FILE"), ("prices", "list")),
    ),
    **{
        kind: Format(name=name, valid=valid, commands=commands)
        for kind, (name, valid, commands) in (OF_TOOLS | OF_TRAINING).items()
    },
}  # fmt: skip
"""Every format, by a short name."""

STRANGE: tuple[Any, ...] = (
    None, True, "", "x", "²", "x" * 300, "\x1b[31m", "\u202e", -1, 0, 0.5, 1e300, -1e-300, 10**18, 10**400,
    float("nan"), float("inf"), [], {}, [[]], {"low": 1}, "1e999", "9" * 5000,
)  # fmt: skip


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 4, 30))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _inserted(content: bytes, draw: random.Random) -> bytes:
    pieces = (
        b"\0",
        b"\r",
        b"\n",
        b'"',
        b"\xff\xfe",
        "²".encode(),
        b"\x1b]0;x\x07",
        b"9" * 5000,
        b"[" * 100_000,
        b"x" * 300,
    )
    at = draw.randrange(len(content) + 1)
    return content[:at] + draw.choice(pieces) + content[at:]


def _marked(content: bytes, draw: random.Random) -> bytes:
    text = content.decode(errors="replace")
    return draw.choice((b"\xef\xbb\xbf" + content, text.encode("utf-16"), text.encode("utf-32"), b"", b"\0" * 1000))


def _number_changed(content: bytes, draw: random.Random) -> bytes:
    """Any number in the text replaced, whatever the format."""
    numbers = list(re.finditer(rb"\d[\d.]*", content))
    if not numbers:
        return content
    chosen = draw.choice(numbers)
    values = (b"-1", b"0", b"1e300", b"nan", b"inf", b"9" * 400, "²".encode(), b"1e-320", b"0.5", b"", b"1_0", b"0x10",
              b"1e18", b"-0.0", b"99999999999")  # fmt: skip
    return content[: chosen.start()] + draw.choice(values) + content[chosen.end() :]


def _line_moved(content: bytes, draw: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    if draw.random() < 0.5:
        lines.insert(draw.randrange(len(lines)), lines[at])
    else:
        del lines[at]
    return b"".join(lines)


def _json_changed(content: bytes, draw: random.Random) -> bytes:
    """One value of a JSON document, or of a line of JSON, replaced, removed, nested, or its key doubled."""
    lines = content.decode().splitlines() if content.count(b"\n{") else [content.decode()]
    number = draw.randrange(len(lines))
    document = json.loads(lines[number])
    for _ in range(draw.choice((1, 1, 1, 3))):
        _change(document, draw)
    lines[number] = json.dumps(document, ensure_ascii=False)
    if draw.random() < 0.1:
        lines[number] = lines[number].replace("{", '{"schema": 1, "schema": 2, ', 1)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _change(document: Any, draw: random.Random) -> None:
    inner = document
    while True:
        places: list[Any] = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not places:
            return
        place = draw.choice(places)
        if not isinstance(inner[place], dict | list) or not inner[place] or draw.random() < 0.15:
            break
        inner = inner[place]
    if draw.random() < 0.25:
        del inner[place]
    elif draw.random() < 0.1:
        nested: Any = inner[place]
        for _ in range(draw.choice((1, 3, 100, 900))):
            nested = [nested]
        inner[place] = nested
    elif isinstance(inner[place], int | float) and draw.random() < 0.4:
        inner[place] = inner[place] * draw.choice((-1, 1e3, 1e-3, 1e30, 0))
    else:
        inner[place] = draw.choice(STRANGE)


def _cell_changed(content: bytes, draw: random.Random) -> bytes:
    """One cell of a table replaced."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    row = rows[draw.randrange(len(rows))]
    if not row:
        return content
    row[draw.randrange(len(row))] = str(draw.choice(STRANGE))
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue().encode("utf-8", "surrogatepass")


def _toml_changed(content: bytes, draw: random.Random) -> bytes:
    """The value of one key of a TOML file replaced."""
    lines = content.decode().splitlines()
    keyed = [number for number, line in enumerate(lines) if "=" in line]
    number = draw.choice(keyed)
    key = lines[number].partition("=")[0]
    values = ("nan", "inf", "-1", "0", "1e300", "9" * 5000, '""', '"x"', "[]", "{}", "true", "1979-05-27", '"²"',
              '"' + "x" * 300 + '"', "[" * 2000 + "]" * 2000, "{a = " * 200 + "1" + "}" * 200, "07:32:00", '"1e999"',
              '"\\u0000"', "1e-320", "[1, 'x', {}]")  # fmt: skip
    lines[number] = f"{key} = {draw.choice(values)}"
    return "\n".join(lines).encode()


ANYWHERE: tuple[Mutation, ...] = (_cut, _flipped, _inserted, _marked, _number_changed, _number_changed, _line_moved)
STRUCTURED: dict[str, Mutation] = {
    ".json": _json_changed,
    ".jsonl": _json_changed,
    ".csv": _cell_changed,
    ".toml": _toml_changed,
}


def cases(seed: int, kinds: tuple[str, ...] = tuple(FORMATS)) -> Iterator[Case]:
    """Damaged files without end, the same ones for the same seed; half of them are bent within their structure."""
    draw = random.Random(seed)
    while True:
        kind = draw.choice(kinds)
        content = FORMATS[kind].valid()
        own = STRUCTURED.get(Path(FORMATS[kind].name).suffix)
        mutation = own if own is not None and draw.random() < 0.6 else draw.choice(ANYWHERE)
        yield Case(kind=kind, content=mutation(content, draw), choice=draw.randrange(100))


def run(case: Case) -> Outcome:
    """Run one case in this process, in an empty home and folder of its own."""
    form = FORMATS[case.kind]
    words = form.commands[case.choice % len(form.commands)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / form.name).write_bytes(case.content)
        if form.name == "prices.csv":
            (home / "data/mpplan").mkdir(parents=True)
            (home / "data/mpplan/prices.csv").write_bytes(case.content)
        return run_main(tuple(form.name if word == "FILE" else word for word in words), home)


class _HungError(BaseException):
    """The time limit passed."""


def run_main(words: tuple[str, ...], home: Path | None = None) -> Outcome:
    """Run `mpplan` with these arguments in this process, with a time limit."""
    import warnings

    from mpplan.app import main

    def stop(signum: int, frame: object) -> None:
        raise _HungError

    before, where = dict(os.environ), os.getcwd()
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    started = time.monotonic()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_S)
    try:
        if home is not None:
            os.chdir(home)
            os.environ.update(
                HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_DATA_HOME=str(home / "data"), COLUMNS="100"
            )
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = main(words)
    except _HungError:
        code = HUNG
    finally:
        signal.alarm(0)
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)
    out, err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in (stdout, stderr))  # type: ignore[attr-defined]
    return Outcome(code=code, out=out, err=err, seconds=time.monotonic() - started)


def kept(case: Case) -> Path:
    """Keep a finding as a small file: its format and its command are in its name."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    command = case.choice % len(FORMATS[case.kind].commands)
    path = CORPUS / f"{case.kind}-{command}-{hashlib.sha256(case.content).hexdigest()[:8]}"
    path.write_bytes(case.content)
    return path


def corpus() -> Iterator[tuple[str, Case]]:
    """The findings of the past, by name."""
    for path in sorted(CORPUS.glob("*-*-*")):
        kind, command, _ = path.name.split("-")
        yield path.name, Case(kind=kind, content=path.read_bytes(), choice=int(command))


def main() -> int:
    """Run cases for a while, and say what broke."""
    parser = argparse.ArgumentParser(description="Run damaged files through mpplan.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="", help="formats, with commas between them")
    parser.add_argument("--keep", action="store_true", help="keep findings in tests/corpus/files")
    given = parser.parse_args()
    kinds = tuple(given.only.split(",")) if given.only else tuple(FORMATS)
    deadline, codes, findings = time.monotonic() + given.seconds, dict[int, int](), 0
    for case in cases(given.seed, kinds):
        if time.monotonic() > deadline:
            break
        outcome = run(case)
        codes[outcome.code] = codes.get(outcome.code, 0) + 1
        if outcome.is_finding:
            findings += 1
            where = kept(case) if given.keep else f"{case.kind}-{case.choice % len(FORMATS[case.kind].commands)}"
            print(f"{where}: {outcome.code}: {outcome.err[:300]}", flush=True)  # noqa: T201 - a command
    print(f"{sum(codes.values())} files, exit codes {dict(sorted(codes.items()))}, {findings} findings")  # noqa: T201
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
