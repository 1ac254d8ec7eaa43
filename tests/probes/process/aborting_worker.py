"""A probe process that has measured and written all, and then aborts while it ends."""

from __future__ import annotations

import os
import sys

from probes.process.worker import EventWriter

if __name__ == "__main__":
    events = EventWriter(sys.stdout)
    events.began("record.jsonl", "cpu")
    events.write("ended", points=3, left_out=[], lost_device=None)
    os.abort()
