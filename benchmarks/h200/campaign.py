"""Measure a GPU that is available for forty minutes: commands of at most ten minutes, each useful on its own.

    python benchmarks/h200/campaign.py smoke    --out DIR [--wheels WHEELS]
    python benchmarks/h200/campaign.py plans    --out DIR
    python benchmarks/h200/campaign.py products --out DIR
    python benchmarks/h200/campaign.py verify   --out DIR
    python benchmarks/h200/campaign.py again    --out DIR

or, if the GPU is available for only a quarter of an hour,

    python benchmarks/h200/campaign.py smoke    --out DIR [--wheels WHEELS]
    python benchmarks/h200/campaign.py short    --out DIR

All commands write to the same folder and nowhere else. A record is flushed line by line, so a command may be
interrupted at any point and continues when it is run again. To rehearse on a CPU, which runs the same code:
`--device cpu --minutes 2`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]  # the package is not installed where the campaign runs

from benchmarks.h200.fitness import unfit  # noqa: E402
from benchmarks.h200.workplace import Workplace, say  # noqa: E402

REFUSED = 2
"""Exit code of `mpplan probe` for a record that it refuses to continue; also the campaign's own."""
UNFIT = 4
"""Exit code where the state of the machine makes the rest worthless."""
MINUTES = {"smoke": 3.0, "plans": 9.5, "products": 9.5, "limits": 1.5, "verify": 9.5, "again": 9.5, "short": 9.5}
"""Time limit of each command on a GPU, in minutes."""
QUICK_S = 100.0
"""Time of the quick suite."""
METER_S = {"cuda": 24.0, "cpu": 2.0}
"""Sustained work under the meter; the whole measurement takes two and a half times as long."""
SHORT_METER_S = {"cuda": 10.0, "cpu": 2.0}
LOOP_S = 30.0
"""Time of the limits by a loop."""
FOR_PLANS = "idle,bandwidth,launch,attention,memory-ops,power,optimizer,block"
FOR_PRODUCTS = "gemm,end-to-end"
DRIVER_QUERY = (
    "name,driver_version,vbios_version,power.limit,clocks.max.sm,memory.total,mig.mode.current,ecc.mode.current"
)


def smoke(place: Workplace) -> int:
    """Check that this machine is fit for the rest: driver, `mpplan doctor`, a quick suite, versions."""
    if place.device == "cuda":
        place.run("driver", "nvidia-smi", f"--query-gpu={DRIVER_QUERY}", "--format=csv", limit_s=30.0)
    place.python(
        "doctor", "-m", "mpplan", "doctor", "--json", reserve_s=QUICK_S + 15.0, stdout=place.out / "doctor.json"
    )
    record = place.out / "quick.jsonl"
    place.probe("quick suite", record, "--suite", "quick", "--resume", limit_s=min(QUICK_S, place.left_s - 10.0))
    reasons = unfit(record, place.device)
    for reason in reasons:
        say(f"stop: {reason}")
    return UNFIT if reasons else 0


def plans(place: Workplace) -> int:
    """Measure what plans need most: idle, bandwidth, launch, attention, memory, power, optimizers, layers."""
    return place.probe("what plans need", place.record, "--workload", FOR_PLANS, "--resume")


def products(place: Workplace) -> int:
    """Measure products and whole steps into the same record, then the limits by a loop and the meter by a trace."""
    meter_s = METER_S[place.device]
    code = place.probe("products", place.record, "--workload", FOR_PRODUCTS, "--resume", reserve_s=3 * meter_s + 90.0)
    return code if code == REFUSED else code or _limits(place, meter_s)


def limits(place: Workplace) -> int:
    """Measure the limits by a separate loop, and the meter against a trace."""
    return _limits(place, SHORT_METER_S[place.device])


def _limits(place: Workplace, meter_s: float) -> int:
    out = place.out
    asked = ("--device", place.device, "--record", str(place.record))
    by_loop = place.python(
        "limits", str(HERE / "measure_limits.py"), str(out / "limits.json"), *asked, reserve_s=3 * meter_s
    )
    meter = ("--device", place.device, "--seconds", f"{meter_s:.0f}")
    by_trace = place.python("meter", str(HERE / "measure_meter.py"), str(out / "meter.json"), *meter)
    return by_loop or by_trace


def short(place: Workplace) -> int:
    """Run part of the suite and of a verification in one process, then measure the limits and the meter."""
    reserve_s = 3 * SHORT_METER_S[place.device] + LOOP_S
    code = place.probe("suite and verification", place.record, "--resume", "--verify", reserve_s=reserve_s)
    return code if code == REFUSED else code or limits(place)


def verify(place: Workplace) -> int:
    """Predict models that were not probed from the record and run them, only on the GPU of the record."""
    code = place.probe("verification", place.record, "--workload", "canary", "--resume", "--verify")
    if code == REFUSED:
        say("stop: the record is of another GPU, driver or torch than this one; begin with `plans` in a new folder")
    return code


def again(place: Workplace) -> int:
    """Run a second suite in another process, compare it with the first, and judge the claims about one GPU."""
    second = place.out / "suite-2.jsonl"
    code = place.probe("second suite", second, "--resume", reserve_s=75.0)
    agreement = (str(place.record), str(second), str(place.out / "agreement.json"))
    agreed = place.python("agreement", str(HERE / "compare_records.py"), *agreement)
    answer = ("--json", "-o", str(place.out / "claims.json"))
    judged = place.python("claims", "-m", "mpplan", "claims", "--records", str(place.record), *answer)
    return code or agreed or judged


COMMANDS: dict[str, Callable[[Workplace], int]] = {
    "smoke": smoke,
    "plans": plans,
    "products": products,
    "limits": limits,
    "verify": verify,
    "again": again,
    "short": short,
}


def main() -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--out", type=Path, required=True, help="the one folder that is written")
    parser.add_argument("--record", type=Path, help="an earlier record to go on with, where --out holds none")
    parser.add_argument("--wheels", type=Path, help="wheels of what the machine may lack")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, help="most time of the command")
    asked = parser.parse_args()
    minutes = asked.minutes or MINUTES[asked.command]
    place = Workplace(asked.out, asked.device, minutes, name=asked.command, record=asked.record)
    try:
        place.install(asked.wheels)
        code = COMMANDS[asked.command](place)
    finally:
        place.pack()
    place.note(_summary(asked.command, code))
    return code


def _summary(command: str, code: int) -> str:
    document: dict[str, Any] = {"command": command, "exit_code": code}
    return json.dumps(document)


if __name__ == "__main__":
    sys.exit(main())
