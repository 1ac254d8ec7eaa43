"""The meter check: idle, sustained and switching power on one GPU, read by every method and window length.

    python benchmarks/h200/measure_meter.py OUT.json [--device cuda] [--seconds 24]

Without an energy counter it writes the reason. It changes no setting of the device.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from probes.device.device import Device, open_device
from probes.energy.meter import check_meter
from probes.energy.power import power_over
from probes.precisions import recipe_by_id
from probes.record.writer import RecordWriter
from probes.sensors import open_sensor
from probes.sensors.interface import Sensor, Trace
from probes.sensors.sampler import Sampler
from probes.session.group import trial_of
from probes.timing.protocol import run_batches
from probes.timing.trial import ProbePlan
from probes.workloads.canary import canary_point

SETTLE_S = 2.0


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=24.0)
    asked = parser.parse_args()
    device = open_device(asked.device)
    opened = open_sensor(device.kind, device.uuid)
    document: dict[str, Any] = {"device_name": device.name, "reason": opened.reason}
    if opened.sensor is not None:
        record = asked.out.with_suffix(".jsonl")
        writer = RecordWriter(record)
        document |= _measure(device, opened.sensor, asked.seconds, writer)
        writer.close()
        record.unlink()  # it has traces beside it, and no lines
    part = asked.out.with_name(f"{asked.out.name}.part")  # so that the final file is always complete
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(asked.out)
    sys.stdout.write(json.dumps(document)[:600] + "\n")


def _measure(device: Device, sensor: Sensor, seconds: float, writer: RecordWriter) -> dict[str, Any]:
    plan = ProbePlan(device=device, suite="default", recipes=(recipe_by_id("fp32"),))
    point = canary_point(plan)
    traces: dict[str, Any] = {"poll_s": _poll_cost(sensor), "scope": sensor.scope, "missing": dict(sensor.missing)}
    traces["idle"] = _steady(sensor, seconds / 3, lambda span: time.sleep(span), writer, "meter/idle")
    trial = trial_of(point, device)
    run = lambda span: run_batches(trial, point.recipe, device.clock, span, 1.5e-3)  # noqa: E731
    traces["sustained"] = _steady(sensor, seconds, run, writer, "meter/sustained")
    traces["switching"] = _switching(sensor, seconds / 2, run, writer)
    return traces


def _poll_cost(sensor: Sensor) -> float:
    """Return the mean time of one reading."""
    start = time.monotonic()
    for _ in range(50):
        sensor.read()
    return (time.monotonic() - start) / 50


def _steady(
    sensor: Sensor, seconds: float, run: Callable[[float], object], writer: RecordWriter, name: str
) -> dict[str, Any] | None:
    """Measure one kind of steady work and check it by window length and method."""
    with Sampler(sensor) as sampler:
        run(SETTLE_S)
        start = time.monotonic()
        run(seconds)
        end = time.monotonic()
    writer.add_trace("meter", name, sampler.trace)
    check = check_meter(sampler.trace.readings, start, end)
    return None if check is None else asdict(check)


def _switching(sensor: Sensor, seconds: float, run: Callable[[float], object], writer: RecordWriter) -> dict[str, Any]:
    """Alternate half a second of work and of rest, to see whether counter and power field still agree."""
    with Sampler(sensor) as sampler:
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            run(0.5)
            time.sleep(0.5)
        end = time.monotonic()
    writer.add_trace("meter", "meter/switching", sampler.trace)
    return _agreement(sampler.trace, start, end)


def _agreement(trace: Trace, start: float, end: float) -> dict[str, Any]:
    return asdict(power_over(trace.readings, start, end))


if __name__ == "__main__":
    main()
