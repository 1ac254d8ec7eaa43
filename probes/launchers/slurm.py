"""Slurm: a batch script for `sbatch`. Options: see https://slurm.schedmd.com/sbatch.html and srun.html."""

from __future__ import annotations

from math import ceil
from textwrap import indent

from planner.units import MINUTE_S
from probes.launchers.base import NAME, Launcher, Need, ProbeJob
from probes.launchers.torchrun import HAS_MPPLAN, requirement, torchrun

_SCRIPT = """\
#!/bin/bash
# Measures {what} with mpplan; written by `mpplan probe --recipe slurm`.
#   sbatch FILE
# The record comes back as mpplan-probe-<job id>.jsonl in the directory of this call, its output as .log next to it.
{directives}

set -euo pipefail

# Edit me: Python >= 3.11 with mpplan[probe,float8] in a place that every node sees. It is created here if missing.
# module load python cuda
environment="$SLURM_SUBMIT_DIR/mpplan-env"
if ! {has_mpplan}; then
  python3 -m venv "$environment"
  export PATH="$environment/bin:$PATH"
  pip install --quiet {requirement}
fi

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export endpoint="${{nodes[0]}}:$((20000 + SLURM_JOB_ID % 10000))"  # below the ports that a system hands out itself
export run_id="$SLURM_JOB_ID"
export record="$SLURM_SUBMIT_DIR/mpplan-probe-$SLURM_JOB_ID.jsonl"

on_each_node() {{
  is_host=$((SLURM_NODEID == 0))
{torchrun}
}}
export -f on_each_node

# Without a binding, a node's one task could be held on one of its cores, and all ranks with it.
srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 bash -c on_each_node
echo "the record is $record"
"""


def _write(job: ProbeJob) -> str:
    return _SCRIPT.format(
        what=job.what,
        directives="\n".join(f"#SBATCH --{directive}" for directive in _directives(job)),
        has_mpplan=HAS_MPPLAN,
        requirement=requirement(),
        torchrun=indent(torchrun(job), "  "),
    )


def _directives(job: ProbeJob) -> list[str]:
    site = [f"{name}={job.settings[name]}" for name in ("partition", "account", "qos") if name in job.settings]
    gpus = [] if job.on_cpu else [f"gpus-per-node={job.ranks_per_node}"]
    return [
        f"job-name={NAME}",
        *site,
        f"nodes={job.nodes}",
        "ntasks-per-node=1",
        *gpus,
        "exclusive",  # other jobs on a node would be measured too
        "mem=0",  # all memory of a node
        f"time={job.settings.get('time') or _time(job.limit_s)}",
        "no-requeue",  # a second run would not overwrite the record of the first
        f"output={NAME}-%j.log",
    ]


def _time(limit_s: float) -> str:
    hours, minutes = divmod(ceil(limit_s / MINUTE_S), 60)
    return f"{hours:02d}:{minutes:02d}:00"


LAUNCHER = Launcher(
    name="slurm",
    takes=("partition", "account", "qos", "time"),
    needs=(Need(setting="partition", what="a partition", hint="`--partition NAME`; `sinfo -s` lists them"),),
    start="sbatch {file}",
    returned="the record comes back as mpplan-probe-<job id>.jsonl in the directory of that call",
    write=_write,
)
"""Slurm."""
