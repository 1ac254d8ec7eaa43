"""SkyPilot: a task for `sky launch`, as 0.14.1 reads it; it starts a training script with torchrun on every node."""

from __future__ import annotations

from planner.errors import UsageError
from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import find_gpu
from planner.hardware.skypilot_names import skypilot_name
from planner.hardware.torch_builds import torch_install
from reports.launch.forms import to_yaml
from reports.launch.framework import Framework, Mapped, Rule, Settings
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import ENVIRONMENT, POWER_LIMIT, UNEVEN_NODES

IDLE_MINUTES = 30
"""Machines that are idle for this many minutes are released."""

_SETUP = """\
# Edit me: what the training needs.
if [ ! -d ~/train-env ]; then
  uv venv --quiet --seed --python 3.12 ~/train-env
  ~/train-env/bin/pip install --quiet {torch}
fi
"""

_RUN = """\
PATH="$HOME/train-env/bin:$PATH"
torchrun \\
  --nnodes "$SKYPILOT_NUM_NODES" --node-rank "$SKYPILOT_NODE_RANK" \\
  --nproc-per-node "$SKYPILOT_NUM_GPUS_PER_NODE" \\
  --master-addr "$(head -n 1 <<< "$SKYPILOT_NODE_IPS")" --master-port 29500 \\
  $TRAIN
"""


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    return to_yaml(settings(run), about)


def settings(run: PlannedRun) -> Settings:
    """Return the task."""
    return {
        "name": "mpplan-train",
        "num_nodes": run.nodes,
        "resources": _resources(run),
        "envs": {"TRAIN": "train.py", **_environment(run)},
        "setup": _SETUP.format(torch=torch_install(run.gpu)),
        "run": _RUN,
    }


def _resources(run: PlannedRun) -> Settings:
    asked: dict[str, object] = {
        "accelerators": f"{skypilot_name(run.gpu)}:{run.gpus_per_node}",
        "use_spot": run.commitment == "spot",
        "autostop": {"idle_minutes": IDLE_MINUTES, "down": True},
    }
    if run.nodes > 1:
        asked["network_tier"] = "best"
    return asked


def _environment(run: PlannedRun) -> dict[str, str]:
    return dict([ENVIRONMENT[run.precision]]) if run.precision in ENVIRONMENT else {}


def _nameless(run: PlannedRun) -> bool:
    try:
        skypilot_name(run.gpu)
    except UsageError:
        return True
    return False


OTHER_ON_RUNPOD = ("h100-sxm5-80gb", "a100-sxm4-80gb")
"""GPUs whose name means a different board on RunPod."""

FRAMEWORK = Framework(
    name="skypilot",
    title="SkyPilot 0.14.1",
    source="https://docs.skypilot.co/en/latest/reference/yaml-spec.html",
    form="a task for `sky launch`",
    suffix=".yaml",
    start="sky launch -c train --env TRAIN='train.py --your arguments' {file}",
    takes=(
        Mapped(what="GPU, nodes", where=("resources.accelerators", "num_nodes", "resources.network_tier")),
        Mapped(what="commitment: spot or not", where=("resources.use_spot",)),
        Mapped(what="strict FP32, TF32", where=("envs.NVIDIA_TF32_OVERRIDE", "envs.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")),
        Mapped(what="what the task does: an environment, and torchrun on every node", where=(
            "name", "setup", "run", "envs.TRAIN",
        )),
        Mapped(what="giving idle machines back", where=("resources.autostop.idle_minutes", "resources.autostop.down")),
    ),
    refuses=(
        UNEVEN_NODES,
        Rule(
            applies=_nameless,
            what="the SkyPilot name of the GPU is not known",
            hint="plan with another `--gpu`; `mpplan gpus` lists them",
        ),
    ),
    leaves_out=(
        Rule(
            applies=lambda run: True,
            what="layout, batch, precision and length: they are the training script's, as another `--launch` writes "
            "them; give its command in `TRAIN`",
        ),
        POWER_LIMIT,
        Rule(
            applies=lambda run: run.nodes > 1 and find_architecture(find_gpu(run.gpu).arch).vendor == "AMD",
            what="several nodes with AMD GPUs: RunPod and Shadeform, the clouds from which SkyPilot rents them, do not "
            "connect nodes, so name a cluster of yours (`infra:`)",
        ),
        Rule(
            applies=lambda run: run.gpu in OTHER_ON_RUNPOD,
            what="the board on RunPod, where `H100` and `A100-80GB` are PCIe cards and the plan's boards `H100-SXM` "
            "and `A100-80GB-SXM` (sky/provision/runpod/utils.py): name another cloud (`infra:`) or that accelerator",
        ),
        Rule(
            applies=lambda run: True,
            what="provider and region of the plan's price: SkyPilot takes the cheapest that has the GPUs now",
        ),
        Rule(
            applies=lambda run: run.commitment not in ("on-demand", "spot"),
            what="reserved or own machines: SkyPilot rents on demand, or what `infra:` names",
        ),
        Rule(
            applies=lambda run: run.commitment == "spot",
            what="resuming after a spot machine is reclaimed: start it with `sky jobs launch`, and load checkpoints",
        ),
    ),
    trains=False,
    write=_write,
)  # fmt: skip
"""SkyPilot."""
