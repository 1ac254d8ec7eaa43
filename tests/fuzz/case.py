"""One run of the program and what a shell sees of it, in a form that a small file can hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
"""The findings of every surface, a folder each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the program is run with."""

    arguments: tuple[str, ...]
    """After `mpplan`; bytes that are no UTF-8 as surrogates, the way `sys.argv` has them."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Content by path in the working folder, besides the files that always lie there (`tests.fuzz.program.INPUTS`)."""
    stdin: bytes = b""
    variables: dict[str, str] = field(default_factory=dict)
    """Of the environment."""
    expect: str = ""
    """What a person who reads the file should know of the finding; nothing reads it."""

    @property
    def name(self) -> str:
        """A file name that says what it is: the arguments, and a few letters that tell twins apart."""
        words = re.sub(r"[^a-z0-9]+", "-", " ".join(self.arguments).lower()).strip("-")[:60].strip("-")
        return f"{words or 'nothing'}-{hashlib.sha256(self.to_text().encode()).hexdigest()[:6]}"

    def to_text(self) -> str:
        """The case as JSON: plain text where there is plain text, base64 for the content of files and stdin."""
        document = {
            "arguments": list(self.arguments),
            "files": {name: _packed(content) for name, content in self.files.items()},
            "stdin": _packed(self.stdin),
            "variables": self.variables,
            "expect": self.expect,
        }
        return json.dumps({key: value for key, value in document.items() if value}, indent=1) + "\n"

    def keep(self, surface: str, sentences: Iterable[str]) -> Path:
        """Write the case beside the other findings of a surface and return its path."""
        folder = CORPUS / surface
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        text = Case(
            arguments=self.arguments, files=self.files, stdin=self.stdin, variables=self.variables,
            expect="; ".join(sentences)[:300],
        ).to_text()  # fmt: skip
        path.write_text(text, encoding="utf-8")
        return path


def read_case(path: Path) -> Case:
    """A case that was kept."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Case(
        arguments=tuple(document.get("arguments", ())),
        files={name: _unpacked(content) for name, content in document.get("files", {}).items()},
        stdin=_unpacked(document.get("stdin", "")),
        variables=document.get("variables", {}),
        expect=document.get("expect", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a shell sees of one run."""

    code: int
    """The exit code; `HUNG` where the run was stopped."""
    out: bytes
    err: str
    files: dict[str, bytes] = field(default_factory=dict)
    """Files that are new or have changed, by path in the working folder or in the user's data folder."""


HUNG = -1
"""In place of an exit code: the run did not end within its time."""
DIED = -2
"""In place of an exit code: the process ended without an answer."""


def _packed(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(content).decode()
    return text if not text.startswith("base64:") else "base64:" + base64.b64encode(content).decode()


def _unpacked(text: str) -> bytes:
    return base64.b64decode(text[7:]) if text.startswith("base64:") else text.encode("utf-8")
