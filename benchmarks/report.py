"""Rendering time of a report, without start-up, and its size: `python -m benchmarks.report [PLAN.json]`."""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from statistics import median

import reports

RECORDED = Path(__file__).parents[1] / "tests" / "reports" / "recorded" / "plan.json.gz"
ROUNDS = 15


def main() -> None:
    """Print per form and language the median milliseconds of rendering once modules and templates are loaded."""
    text = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else gzip.decompress(RECORDED.read_bytes())
    document = json.loads(text)
    for fmt in ("html", "terminal", "markdown", "csv"):
        for lang in reports.LANGUAGES:
            content = str(reports.render(document, fmt, lang=lang))
            durations_s = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                reports.render(document, fmt, lang=lang)
                durations_s.append(time.perf_counter() - start)
            sys.stdout.write(f"{fmt:9} {lang}  {1e3 * median(durations_s):6.1f} ms  {len(content.encode()):7,} bytes\n")


if __name__ == "__main__":
    main()
