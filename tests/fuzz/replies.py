"""What servers and price lists may answer: recorded replies that were damaged, and servers that mean harm.

A case is served by a real server in this process, or lies in a file where the source is one. Whatever it is, the
program ends in time with an exit code of a user's mistake, and the price book can be read back afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pricing.book.reading import load_user_book
from pricing.sources import web
from tests.fuzz.damage import damaged_bytes, damaged_csv, damaged_json, damaged_toml
from tests.fuzz.sources import BESIDE, BOOK, OWN, QUOTE, RATES, TARIFF, VMS

RECORDED = Path(__file__).parents[1] / "pricing" / "recorded"
CORPUS = Path(__file__).parents[1] / "corpus"
DAY = "2026-11-20"
LONGEST_S = 300.0
"""A case that takes longer hangs, on a busy machine, too: its commands take some five seconds on a free core."""
DEADLINE_S = 1.0
"""Of a refresh here, in the place of minutes."""
_SECRET = "s3cr3t"
_PLANTED = "planted-by-the-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a source answers."""

    source: str
    """`azure` and `grid` ask the server; the others read a file."""
    reply: bytes
    """All that the server sends, status line included, or the content of the file."""
    then: str = "close"
    """What the server does then: `close`, `dribble` a byte now and then, `flood` without end, or stay `silent`."""
    expect: str = ""
    """What a reader of a kept case should know."""

    @property
    def name(self) -> str:
        """A file name that tells twins apart."""
        return f"{self.source}-{self.then}-{hashlib.sha256(self.reply).hexdigest()[:8]}"

    def keep(self, surface: str, sentences: Iterable[str]) -> Path:
        """Write the case beside the other findings of a surface and return its path."""
        folder = CORPUS / surface
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        text = self.reply.decode("latin-1")
        document = {"source": self.source, "reply": text, "then": self.then, "expect": "; ".join(sentences)[:300]}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return path


def read_case(path: Path) -> Case:
    """A case that was kept."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Case(**{**document, "reply": document["reply"].encode("latin-1")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a shell sees, and the state of the book."""

    code: int
    out: bytes
    err: str
    seconds: float
    unreadable: int
    """Lines of the book that cannot be read back; -1: the whole book."""
    planted: bool
    """Whether rows of a local file, to which no server may lead, are in the book."""


def http(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    """A reply of a server, without a length: it ends where the connection does."""
    return b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n" + body


def _pages() -> list[Any]:
    pages = json.loads((RECORDED / "azure_pages.json").read_text(encoding="utf-8"))
    return [{"Items": page["Items"][:4], "NextPageLink": None} for page in pages]


def hostile(draw: random.Random) -> Case:
    """A server that means harm, or that is no web server at all."""
    pages = json.dumps(draw.choice(_pages())).encode()
    place = draw.choice(("{planted}", "http://127.0.0.1:9/x", "https://127.0.0.1/", "//a:b@[", "/prices?x", "\\\\a"))
    return draw.choice(
        (
            Case(source="azure", reply=http(b"", b"302 Go", b"Location: " + place.encode() + b"\r\n")),
            Case(source="azure", reply=http(b'{"Items": [], "NextPageLink": "%s"}' % place.replace("\\", "").encode())),
            Case(source="azure", reply=http(b'{"Items": [], "NextPageLink": "{base}"}')),
            Case(source="azure", reply=http(pages, headers=b"Content-Length: 10\r\n")),
            Case(source="azure", reply=http(pages, headers=b"Content-Length: 99999999\r\n")),
            Case(source="azure", reply=http(b"zz\r\n" + pages, headers=b"Transfer-Encoding: chunked\r\n")),
            Case(source="azure", reply=http(b"ffffffff\r\n" + pages, headers=b"Transfer-Encoding: chunked\r\n")),
            Case(source="azure", reply=http(b"\x1f\x8b\x08" + pages, headers=b"Content-Encoding: gzip\r\n")),
            Case(source="azure", reply=http(pages, headers=b"X: y\r\n" * 150)),
            Case(source="azure", reply=http(pages, headers=b"X: " + b"y" * 70_000 + b"\r\n")),
            Case(source="azure", reply=http(pages, b"%d x" % draw.choice((204, 301, 401, 404, 429, 500, 999, 20)))),
            Case(source="azure", reply=draw.randbytes(draw.randint(0, 300))),
            Case(source="azure", reply=b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
            Case(source="azure", reply=http(b"["), then="dribble"),
            Case(source="azure", reply=b"HTTP/1.1 200 OK\r\nX:", then="dribble"),
            Case(source="azure", reply=http(b" "), then="flood"),
            Case(source="azure", reply=b"", then="silent"),
            Case(source="azure", reply=damaged_bytes(http(pages, headers=b"Content-Type: application/json\r\n"), draw)),
        )
    )


def _azure(draw: random.Random) -> Case:
    return Case(source="azure", reply=http(damaged_json(draw.choice(_pages()), draw)))


def _stored_gpuhunt(draw: random.Random) -> Case:
    recorded = json.loads((RECORDED / "gpuhunt_items.json").read_text(encoding="utf-8"))
    return Case(source="gpuhunt", reply=damaged_json(recorded, draw))


def _grid(draw: random.Random) -> Case:
    recorded = json.loads((RECORDED / "electricity_maps_latest.json").read_text(encoding="utf-8"))
    return Case(source="grid", reply=http(damaged_json(recorded, draw)))


def _table(source: str, text: str) -> Callable[[random.Random], Case]:
    return lambda draw: Case(source=source, reply=damaged_csv(text, draw))


def _settings(source: str, text: str) -> Callable[[random.Random], Case]:
    return lambda draw: Case(source=source, reply=damaged_toml(text, draw))


KINDS: tuple[Callable[[random.Random], Case], ...] = (
    _azure, _azure, _azure, _stored_gpuhunt, _stored_gpuhunt, _grid, hostile, hostile, _table("vms", VMS),
    _table("own", OWN), _table("book", BOOK), _table("rates", RATES), _table("users-book", BOOK),
    _settings("quote", QUOTE), _settings("tariff", TARIFF), _settings("beside", BESIDE),
)  # fmt: skip


def cases(seed: int) -> Iterator[Case]:
    """Cases without end; the same seed gives the same ones."""
    at = 0
    while True:
        yield KINDS[at % len(KINDS)](random.Random(f"{seed}:{at}"))
        at += 1


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        case = self.server.case
        try:
            self.request.recv(65536)
            self.request.sendall(self.server.reply())
            ends = time.monotonic() + LONGEST_S
            while case.then != "close" and time.monotonic() < ends and not self.server.stopped.is_set():
                if case.then == "flood":
                    self.request.sendall(b" " * 65536)
                    continue
                if case.then == "dribble":
                    self.request.sendall(b" ")
                self.server.stopped.wait(0.05)
        except OSError:
            pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, case: Case, planted: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.case = case
        self.planted = planted
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/prices"

    def reply(self) -> bytes:
        """The reply, with the addresses that only this server knows."""
        known = {b"{base}": self.url.encode(), b"{planted}": self.planted.as_uri().encode()}
        reply = self.case.reply
        for mark, address in known.items():
            reply = reply.replace(mark, address)
        return reply

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is what is tested."""


@contextmanager
def serving(case: Case, planted: Path) -> Iterator[str]:
    """The address of a server that answers every request with the reply of a case.

    Args:
        case: what it answers.
        planted: a local file, whose address stands for `{planted}` in the reply.
    """
    with _Server(case, planted) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.url
        finally:
            server.stopped.set()
            server.shutdown()


FILES = {"vms": "vms.csv", "own": "own.csv", "book": "book.csv", "quote": "quote.toml", "tariff": "tariff.toml",
         "beside": "beside.toml", "grid": "", "azure": "", "gpuhunt": "", "rates": "", "users-book": ""}  # fmt: skip
ASKED = (
    "estimate",
    "--params",
    "7B",
    "--gpu",
    "h100-sxm5-80gb",
    "--gpus",
    "8",
    "--tokens",
    "1B",
    "--as-of",
    DAY,
    "--json",
)


def _arguments(case: Case, folder: Path, data: Path, url: str) -> list[tuple[str, ...]]:
    """The commands that meet the reply, after its file was put in place."""
    file = folder / (FILES[case.source] or "unused")
    if FILES[case.source]:
        file.write_bytes(case.reply)
    if case.source == "azure":
        return [("prices", "refresh", "--source", "azure", "--address", url.replace("//", f"//ada:{_SECRET}@"))]
    if case.source == "gpuhunt":
        stored = data / "fetched" / f"gpuhunt-{DAY}.json"
        stored.parent.mkdir(parents=True)
        stored.write_bytes(case.reply)
        return [("prices", "refresh", "--source", "gpuhunt", "--offline", "--json")]
    if case.source in ("rates", "users-book"):
        data.mkdir(parents=True)
        (data / ("prices.csv" if case.source == "users-book" else "exchange_rates.csv")).write_bytes(case.reply)
        add = (
            "prices",
            "add",
            "--gpu",
            "l4",
            "--provider",
            "acme",
            "--price",
            "0.5",
            "--currency",
            "EUR",
            "--date",
            DAY,
        )
        repair = (("prices", "repair", "--yes"), ASKED) if case.source == "users-book" else ()
        return [("prices", "check", "--as-of", DAY), ASKED, (*add, "--source", "offer"), *repair]
    if case.source in ("vms", "own", "book"):
        day = ("--date", DAY, "--provider", "acme")
        imports = [("prices", "import", str(file), *day, *more) for more in ((), ("--skip-invalid",))]
        return [*imports, ("prices", "check", str(file))] if case.source == "book" else imports
    return [(*ASKED, f"--{case.source}", str(file))]


def run(case: Case) -> Outcome:
    """Run a case in this process, in folders of its own; the worst exit code of its commands counts."""
    began = time.monotonic()
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place, serving(case, _plant(Path(place))) as url:
        home = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), place)
        patient = patch.multiple(web, DEADLINE_S=DEADLINE_S, MOST_BYTES=2**22)
        with patch.dict(os.environ, home), patient, patch("pricing.sources.web.time.sleep", lambda _: None):
            with redirect_stdout(out), redirect_stderr(err):
                codes = _codes(case, Path(place), url)
            unreadable, planted = _book_state()
    code = 1 if 1 in codes else max(codes)
    text = out.getvalue().encode("utf-8", "backslashreplace")
    seconds = time.monotonic() - began
    return Outcome(code=code, out=text, err=err.getvalue(), seconds=seconds, unreadable=unreadable, planted=planted)


def _codes(case: Case, place: Path, url: str) -> list[int]:
    from mpplan.app import main

    if case.source == "grid":
        return [_grid_code(url)]
    return [main(arguments) for arguments in _arguments(case, place, place / "mpplan", url)]


def _grid_code(url: str) -> int:
    """The exit code that live grid intensity leads to; its address is no flag."""
    from planner.errors import MpplanError
    from pricing.sources.live_grid import live_intensity

    try:
        fact = live_intensity("DE", _SECRET, address=url)
    except MpplanError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0 if 0 < fact.estimate.mid <= 2 else 1


def _plant(place: Path) -> Path:
    """A file that would be an answer of Azure, if a server could make the program read it."""
    pages = _pages()
    for item in pages[0]["Items"]:
        item["armRegionName"] = _PLANTED
    path = place / "planted.json"
    path.write_text(json.dumps(pages[0]), encoding="utf-8")
    return path


def _book_state() -> tuple[int, bool]:
    """Bad lines of the book, and whether it holds planted rows."""
    try:
        book = load_user_book()
    except Exception:
        return -1, False
    return book.set_aside.count, any(row.region == _PLANTED for row in book.rows)


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong with an outcome; nothing where it is what it should be."""
    findings = []
    if outcome.code not in (0, 2, 3):
        findings.append(f"exit {outcome.code}: {outcome.err.strip()[-300:]}")
    if outcome.seconds > LONGEST_S:
        findings.append(f"took {outcome.seconds:.0f} s")
    if outcome.unreadable:
        findings.append("the book cannot be read back")
    if outcome.planted:
        findings.append("a file of this machine was read into the book")
    if _SECRET in outcome.err or _SECRET.encode() in outcome.out:
        findings.append("a secret was printed")
    return findings


def main() -> int:
    """Run cases for a time, keep what is found, and say how many there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--cases", type=int, default=10**9)
    options = parser.parse_args()
    ends, count, wrong = time.monotonic() + options.seconds, 0, 0
    codes: dict[int, int] = {}
    for case in cases(options.seed):
        if time.monotonic() > ends or count >= options.cases:
            break
        outcome = run(case)
        count += 1
        codes[outcome.code] = codes.get(outcome.code, 0) + 1
        findings = faults(case, outcome)
        if findings:
            wrong += 1
            sys.stdout.write("\n  ".join([str(case.keep("replies", findings)), *findings]) + "\n")
    sys.stdout.write(f"{count} replies, {wrong} findings, exit codes {dict(sorted(codes.items()))}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
