"""The program as a process: the command `mpplan`, and `python -m mpplan`."""

from __future__ import annotations

import atexit
import gc
import sys
from contextlib import suppress


def run() -> int:
    """Run `mpplan` with the arguments of the command line and return its exit code (docs/exit-codes.md)."""
    gc.set_threshold(200_000)  # a short run makes little garbage, and collecting it takes a tenth of the time
    atexit.register(gc.freeze)  # skip collection at exit too: the process returns its memory as a whole
    try:
        from mpplan.app import main  # its imports are most of what would be collected

        return main()
    except KeyboardInterrupt:  # during the imports; `main` handles it from then on
        with suppress(AttributeError, OSError):  # stderr may be closed
            sys.stderr.write("error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
