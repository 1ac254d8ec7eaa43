"""Where the project lives, for the metadata of a built package: the address that its own clone was made from.

Hatchling runs this when it builds (`[tool.hatch.metadata.hooks.custom]`). No address is written into the repository,
so that a fork's packages name the fork. It is, in this order, `MPPLAN_ADDRESS`, the archive that is being built from,
and the remote `origin`; a remote on this machine, or none, gives no address. User names and tokens are left out.
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
"""`user@host.org:owner/name`, as `git` writes a remote over SSH."""


class Addresses(MetadataHookInterface):
    """Fills `project.urls`."""

    def update(self, metadata: dict[str, object]) -> None:
        """Write the addresses into the metadata of the package.

        Args:
            metadata: of the package by key of `[project]`; gets `urls`.
        """
        metadata["urls"] = urls(Path(self.root))


def urls(root: Path) -> dict[str, str]:
    """Addresses of the project by their label; empty where the project has none that others could open.

    Args:
        root: folder of the sources, a clone or an unpacked archive.
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


def public_address(remote: str) -> str | None:
    """The page of a remote, as `https://host/owner/name`; None for a folder or a machine without a public name.

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
    """The remote `origin` of the clone whose top `root` is; empty without one, or without git."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
