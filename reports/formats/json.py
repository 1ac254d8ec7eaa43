"""The document itself, cleaned and redacted, as JSON."""

from __future__ import annotations

import json

from reports.view import View


def render(view: View) -> str:
    """Return indented JSON, ending in a line break."""
    return json.dumps(view.data["document"], ensure_ascii=False, indent=2, allow_nan=False) + "\n"
