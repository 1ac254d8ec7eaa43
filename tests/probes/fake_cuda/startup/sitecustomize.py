"""Puts the fake GPU into processes that measure; Python imports this first where its folder is on the path.

`tests.benchmarks.rehearsal` puts it there. Of a process only what it was started with is known here.
"""

from __future__ import annotations

import sys

MEASURES = ("probes.process.worker", "probes.session.doctor")
"""Modules that are started to ask a GPU."""
SCRIPTS = ("measure_meter.py", "measure_limits.py")
"""Scripts that do so without a module of ours."""

if any(word in MEASURES for word in sys.orig_argv):
    from tests.probes.fake_cuda.rehearsed import measure

    measure()
elif any(word.endswith(SCRIPTS) for word in sys.orig_argv):
    from tests.probes.fake_cuda.rehearsed import measure_by_script

    measure_by_script()
