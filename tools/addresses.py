"""Addresses of the project for the metadata of a built package, derived from the clone that it is built from.

Hatchling runs this during a build (`[tool.hatch.metadata.hooks.custom]`). The repository contains no address, so that a
fork's packages name the fork. The address comes from `MPPLAN_ADDRESS`, else from the archive that is being built, else
from the remote `origin`. A local remote, or none, gives no address. User names and tokens are removed.

A package index shows the README without the files to which it links, so these links get the address too.
"""

from __future__ import annotations

import os
import re
import subprocess
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

_SECURE_SHELL = re.compile(r"(?:[^@/\s]+@)?(?P<host>[\w-]+(?:\.[\w-]+)+):(?!/)(?P<path>\S+)")
"""`user@host.org:owner/name`, the form in which `git` writes a remote over SSH."""


_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<path>[^)\s]+)\)")
"""A Markdown link or image whose target is a file of the repository."""


class Addresses(MetadataHookInterface):
    """The build hook that fills `project.urls` and `project.readme`."""

    def update(self, metadata: dict[str, object]) -> None:
        """Write the addresses into the metadata of the package.

        Args:
            metadata: metadata of the package by key of `[project]`; receives `urls` and `readme`.
        """
        root = Path(self.root)
        metadata["urls"] = addresses = urls(root)
        text = described((root / "README.md").read_text(encoding="utf-8"), addresses.get("Homepage"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def urls(root: Path) -> dict[str, str]:
    """Return the addresses of the project by label; empty if the project has no publicly accessible address.

    Args:
        root: folder of the sources, which is a clone or an unpacked archive.
    """
    packed = root / "PKG-INFO"
    given = os.environ.get("MPPLAN_ADDRESS")
    if given is None and packed.is_file():
        lines = HeaderParser().parsestr(packed.read_text(encoding="utf-8")).get_all("Project-URL", [])
        return {label: address for label, _, address in (line.partition(", ") for line in lines)}
    home = public_address(given if given is not None else _origin(root))
    if home is None:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/tree/HEAD/docs",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def described(readme: str, home: str | None) -> str:
    """Return the README with full addresses in place of links to files; unchanged without an address.

    Args:
        readme: text of the README, in Markdown.
        home: page of the project, as `public_address` gives it.
    """
    if home is None:
        return readme

    def full(link: re.Match[str]) -> str:
        kind = "raw" if link["image"] else "blob"  # a page about a picture cannot be shown as one
        return f"{link['image']}[{link['text']}]({home}/{kind}/HEAD/{link['path']})"

    return _LINK.sub(full, readme)


def public_address(remote: str) -> str | None:
    """Return the page of a remote, as `https://host/owner/name`; None for a folder or a machine without a public name.

    Args:
        remote: as `git remote get-url` prints it.
    """
    shell = _SECURE_SHELL.fullmatch(remote.strip())
    parts = urlsplit(f"ssh://{shell['host']}/{shell['path']}" if shell else remote.strip())
    path = parts.path.strip("/").removesuffix(".git")
    if parts.scheme not in {"https", "ssh", "git"} or "." not in (parts.hostname or "") or not path:
        return None
    return f"https://{parts.hostname}/{path}"


def _origin(root: Path) -> str:
    """Return the remote `origin` of the clone at `root`; empty without a remote or without git."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
