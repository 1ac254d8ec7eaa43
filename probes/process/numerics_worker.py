"""The process of `mpplan numerics`: `python -m probes.process.numerics_worker OPTIONS_JSON`; events as in `worker`."""

from __future__ import annotations

import sys

from probes.numerics.session.options import NumericsOptions
from probes.process.worker import EXIT_DEVICE_LOST, EventWriter, main, without_torch


def run_numerics(options: NumericsOptions, events: EventWriter) -> int:
    """Run the instruments in this process; return its exit code.

    Raises:
        MpplanError: the device, a task, the options or the record cannot be used.
    """
    if (code := without_torch(events)) is not None:
        return code
    from probes.numerics.session.suite import NumericsSession

    session = NumericsSession(options, events)
    try:
        outcome = session.run()
    finally:
        session.close()
    events.write("ended", points=outcome.points, left_out=list(outcome.left_out), lost_device=outcome.lost_device)
    return EXIT_DEVICE_LOST if outcome.lost_device else 0


if __name__ == "__main__":
    sys.exit(main(NumericsOptions.from_json, run_numerics))
