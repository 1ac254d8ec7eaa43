"""What a page holds for download, read as docs/report-schema.md says."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def unpacked(page: str) -> list[Any]:
    """First keys of the document, its CSV or the columns of it, its other keys."""
    inside = re.search(r'id="packed"[^>]*>([^<]+)<', page)
    assert inside, "nothing is packed into it"
    held: list[Any] = read(inside[1])
    return held


def read(text: str) -> Any:
    """The JSON in such a text."""
    return json.loads(gzip.decompress(base64.a85decode(text.replace("v", "<"))))
