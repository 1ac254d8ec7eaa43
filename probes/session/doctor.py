"""What this machine can measure, precision by precision, and what to install or permit for the rest.

Nothing is measured. Questions that need torch are asked in a separate process, `python -m probes.session.doctor`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.errors import CannotMeasureError
from planner.lazy import dataclass

TIMEOUT_S = 120.0
ON_A_CLUSTER = (
    "on a cluster, run `mpplan doctor` on a node that has GPUs; `mpplan probe --recipe slurm` writes a job for one"
)
"""Remedy where there is no GPU, as on the login node of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One thing that was examined."""

    topic: str
    """packages, devices, precisions or energy."""
    device: str | None
    """The device concerned; None: the whole machine."""
    what: str
    ok: bool
    detail: str
    fix: str | None = None
    """Remedy if it is not OK; None if nothing helps."""


def examine() -> tuple[DoctorFinding, ...]:
    """Examine everything about this machine."""
    findings = list(_packages())
    if find_spec("torch") is None:
        return (*findings, *_without_torch())
    answer = _ask_child()
    if isinstance(answer, str):
        return (*findings, DoctorFinding(topic="devices", device=None, what="torch", ok=False, detail=answer))
    answered = tuple(DoctorFinding(**fields) for fields in answer)
    broken = {finding.what for finding in answered if finding.topic == "packages"}
    return (*(finding for finding in findings if finding.what not in broken), *answered)


_PACKAGES = (
    ("torch", "every probe", "pip install 'mpplan[probe]'"),
    ("transformers", "end-to-end steps of Llama, BERT and ResNet", "pip install 'mpplan[probe]'"),
    ("torchao", "FP8 as frameworks run it, MXFP8, 8-bit optimizers", "pip install 'mpplan[float8]'"),
    ("pynvml", "energy, power and clocks of NVIDIA GPUs", "pip install nvidia-ml-py"),
    ("sklearn", "the handwritten digits of `mpplan numerics`", "pip install 'mpplan[numerics]'"),
)
_DISTRIBUTIONS = {"pynvml": "nvidia-ml-py", "sklearn": "scikit-learn"}
"""Names of distributions that differ from their module's name."""


def _packages() -> list[DoctorFinding]:
    from importlib.metadata import PackageNotFoundError, version

    findings = []
    for module, purpose, fix in _PACKAGES:
        is_installed = find_spec(module) is not None
        try:
            number = version(_DISTRIBUTIONS.get(module, module)) if is_installed else ""
        except PackageNotFoundError:
            number = "of unknown version"
        detail = f"{number}, for {purpose}" if is_installed else f"missing; needed for {purpose}"
        findings.append(
            DoctorFinding(
                topic="packages",
                device=None,
                what=module,
                ok=is_installed,
                detail=detail,
                fix=None if is_installed else fix,
            )
        )
    return findings


def _without_torch() -> list[DoctorFinding]:
    from probes.sensors.nvml import load_nvml

    try:
        nvml = load_nvml()
        count = nvml.nvmlDeviceGetCount()
    except CannotMeasureError as error:
        return [DoctorFinding(topic="devices", device=None, what="gpu", ok=False, detail=error.message, fix=error.hint)]
    detail = f"{count} NVIDIA GPU{'s' if count != 1 else ''}, not measurable without torch"
    return [
        DoctorFinding(
            topic="devices", device=None, what="gpu", ok=False, detail=detail, fix="pip install 'mpplan[probe]'"
        )
    ]


def _ask_child() -> list[dict[str, Any]] | str:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "probes.session.doctor"],
            capture_output=True, text=True, timeout=TIMEOUT_S, env=os.environ | {"PYTHONPATH": path}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"torch did not answer within {TIMEOUT_S:.0f} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return f"torch is installed but does not work: {last}"
    answer: list[dict[str, Any]] = json.loads(lines[-1])
    return answer


def look() -> list[DoctorFinding]:
    """Examine devices, the precisions that each runs, and its sensor, in a process that may import torch."""
    import torch

    from probes.device.device import open_device, why_no_cuda

    findings = _torchao()
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        detail, fix = why_no_cuda()
        fix = fix or ON_A_CLUSTER
        findings.append(DoctorFinding(topic="devices", device=None, what="gpu", ok=False, detail=detail, fix=fix))
    devices = [open_device("cuda", index) for index in range(count)] + [open_device("cpu")]
    for device in devices:
        label = f"GPU {device.index} ({device.name})" if device.kind == "cuda" else f"CPU ({device.name})"
        usable = _usable(device, label)
        findings.append(usable)
        findings += _precisions(device, label) if usable.ok else []
        findings += _energy(device, label)
    return findings


def _torchao() -> list[DoctorFinding]:
    """Return a finding if torchao is installed but cannot be imported beside this torch."""
    from probes.precisions.low.float8 import why_no_torchao

    reason = None if find_spec("torchao") is None else why_no_torchao()
    if reason is None:
        return []
    detail = f"cannot be imported, so FP8 layers are mpplan's own: {reason}"
    fix = "install a version of torchao that fits this torch"
    return [DoctorFinding(topic="packages", device=None, what="torchao", ok=False, detail=detail, fix=fix)]


def _usable(device: Any, label: str) -> DoctorFinding:
    """Make a device the current one, and return whether it can be used."""
    command = "mpplan probe" if device.kind == "cuda" else "mpplan probe --device cpu"
    try:
        device.as_current()
    except CannotMeasureError as error:
        return DoctorFinding(
            topic="devices", device=label, what=device.kind, ok=False, detail=error.message, fix=error.hint
        )
    detail = f"`{command}` measures it"
    return DoctorFinding(topic="devices", device=label, what=device.kind, ok=True, detail=detail)


def _precisions(device: Any, label: str) -> list[DoctorFinding]:
    from probes.device.faults import DeviceLost
    from probes.precisions import RECIPES
    from probes.precisions.support import check_support

    findings: list[DoctorFinding] = []
    for recipe in RECIPES:
        try:
            support = check_support(recipe, device)
        except DeviceLost as error:  # what is asked of this device after that fails too
            detail = f"a small matrix product broke the GPU for this process: {error}"
            lost = DoctorFinding(topic="precisions", device=label, what=recipe.id, ok=False, detail=detail)
            return [*findings, lost]
        missing = recipe.needs if recipe.needs and find_spec(recipe.needs) is None else None
        detail = support.reason or f"{recipe.summary}; relative error of a matrix product {support.error_ratio:.0e}"
        findings.append(
            DoctorFinding(
                topic="precisions",
                device=label,
                what=recipe.id,
                ok=support.reason is None,
                detail=detail,
                fix="pip install 'mpplan[float8]'" if missing and "not installed" in detail else None,
            )
        )
    return findings


def _energy(device: Any, label: str) -> list[DoctorFinding]:
    from probes.sensors import open_sensor

    opened = open_sensor(device.kind, device.uuid, before_use=False)
    if opened.sensor is None:
        reason = opened.reason or "no sensor"
        return [DoctorFinding(topic="energy", device=label, what="energy", ok=False, detail=reason, fix=opened.hint)]
    missing = opened.sensor.missing
    findings = []
    for what in ("energy", "power"):
        detail = missing.get(what, f"{opened.sensor.name}, scope {opened.sensor.scope}")
        findings.append(DoctorFinding(topic="energy", device=label, what=what, ok=what not in missing, detail=detail))
    opened.sensor.close()
    return findings


if __name__ == "__main__":
    from dataclasses import asdict

    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    events.write(json.dumps([asdict(finding) for finding in look()]) + "\n")
    events.close()
