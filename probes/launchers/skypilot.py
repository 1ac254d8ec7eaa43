"""SkyPilot: a task for `sky launch`. Keys: see https://docs.skypilot.co/en/latest/reference/yaml-spec.html."""

from __future__ import annotations

from json import dumps
from textwrap import indent

from planner.hardware.skypilot_names import skypilot_name
from probes.launchers.base import NAME, Launcher, Need, ProbeJob
from probes.launchers.settings import GPU
from probes.launchers.torchrun import HAS_MPPLAN, PRINT_RECORD, UNPACK_RECORD, requirement, torchrun

_FETCH = f"sky logs {NAME} --no-follow 2>&1 | {UNPACK_RECORD}"

_TASK = """\
# Measures {what} with mpplan; written by `mpplan probe --recipe skypilot`.
#   sky launch -c {name} FILE
# The record is at the end of the log. To get it as one file, and then to stop the cost:
#   {fetch}
#   sky down {name}

name: {name}
num_nodes: {nodes}
{resources}
setup: |
  # Edit me: Python >= 3.11 with mpplan[probe,float8]. It is created here if there is none.
  if ! {has_mpplan}; then
    uv venv --quiet --seed --python 3.12 ~/mpplan-env
    ~/mpplan-env/bin/pip install --quiet {requirement}
  fi

run: |
  if [ -d ~/mpplan-env ]; then PATH="$HOME/mpplan-env/bin:$PATH"; fi
  mapfile -t addresses <<< "$SKYPILOT_NODE_IPS"
  endpoint="${{addresses[0]}}:29400"
  run_id="$SKYPILOT_TASK_ID"
  is_host=$((SKYPILOT_NODE_RANK == 0))
  record="$HOME/mpplan-$SKYPILOT_TASK_ID.jsonl"
  status=0
{torchrun} || status=$?
  # The first rank wrote it; which node that is on, torchrun decides.
  if [ -s "$record" ]; then
    {print_record}
  fi
  exit "$status"
"""


def _write(job: ProbeJob) -> str:
    return _TASK.format(
        what=job.what,
        name=NAME,
        fetch=_FETCH,
        nodes=job.nodes,
        resources=_resources(job),
        has_mpplan=HAS_MPPLAN,
        requirement=requirement(),
        torchrun=indent(torchrun(job, local_address='"${addresses[SKYPILOT_NODE_RANK]}"'), "  "),
        print_record=PRINT_RECORD,
    )


def _resources(job: ProbeJob) -> str:
    lines = []
    if job.gpu is not None:
        accelerators = f"{skypilot_name(job.gpu.id)}:{job.ranks_per_node}"
        lines.append(f"  accelerators: {dumps(accelerators)}  # {job.gpu.name}; the name may also mean its other forms")
    if job.on_cpu:
        lines.append(f'  cpus: "{job.ranks_per_node}+"')
    if "image" in job.settings:
        lines.append(f"  image_id: {dumps('docker:' + job.settings['image'])}")
    return "".join(f"{line}\n" for line in ["resources:", *lines])


LAUNCHER = Launcher(
    name="skypilot",
    takes=(GPU, "image"),
    needs=(Need(setting=GPU, what="a GPU", hint="`--gpu ID`, for example `h100-sxm5-80gb`; `mpplan gpus` lists them"),),
    start=f"sky launch -c {NAME} {{file}}",
    returned="the top of the file has the line that brings the record back",
    write=_write,
)
"""SkyPilot."""
