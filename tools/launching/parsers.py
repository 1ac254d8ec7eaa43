"""Files of `mpplan export --launch` given to the frameworks' own parsers (`make launched`).

    python -m tests.reports.launch.grid FOLDER
    python -m tools.launching.parsers FOLDER --megatron ~/Megatron-LM

Each file is in the folder of its framework and has the number of GPUs of its plan in its name, `NAME.gpus8.yaml`. A
framework that cannot be imported is skipped and reported. Exits with 1 if a parser refuses a file, or none was tried.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import typing
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from unittest import mock

Check = Callable[[Path, int], None]
"""A check takes a file and its number of GPUs; it raises (or exits) if the parser refuses the file."""


def accelerate() -> Check:
    """Check that the file is read, merged with the arguments of `accelerate launch`, and passed to its processes."""
    launch = import_module("accelerate.commands.launch")
    environments = import_module("accelerate.utils.launch")

    def check(path: Path, gpus: int) -> None:
        arguments = launch.launch_command_parser().parse_args(["--config_file", str(path), "train.py"])
        arguments, defaults, _ = launch._validate_launch_command(arguments)
        assert defaults.num_processes == gpus, f"{defaults.num_processes} processes for {gpus} GPUs"
        with mock.patch.object(environments, "is_fp8_available", return_value=True):  # it would ask for a GPU
            variables = environments.prepare_multi_gpu_env(arguments)
        with mock.patch.dict(os.environ, {**variables, "WORLD_SIZE": str(gpus)}):
            if arguments.use_fsdp:
                with (  # it would ask for a GPU if rank 0 loads
                    mock.patch("accelerate.utils.dataclasses.is_cuda_available", return_value=True),
                    mock.patch("torch.cuda.current_device", return_value=0),
                ):
                    plugin = import_module("accelerate.utils").FullyShardedDataParallelPlugin()
                assert plugin.fsdp_version == defaults.fsdp_config["fsdp_version"]
            if arguments.use_parallelism_config:
                sizes = import_module("accelerate.parallelism_config").ParallelismConfig()
                assert sizes.total_size == gpus, f"{sizes.total_size} ranks for {gpus} GPUs"
            if arguments.mixed_precision == "fp8":
                import_module("accelerate.utils.dataclasses").FP8BackendType(arguments.fp8_backend)
            if arguments.use_deepspeed:
                assert arguments.zero_stage in (0, 1, 2, 3)

    return check


def deepspeed() -> Check:
    """Check that the file is read as by `deepspeed.initialize`, for as many ranks as share the data."""
    os.environ.setdefault("DS_BUILD_OPS", "0")
    config = import_module("deepspeed.runtime.config")
    expert = import_module("deepspeed.module_inject.auto_ep_config")

    def copies_of(given: dict[str, int]) -> int:
        micro, times = given["train_micro_batch_size_per_gpu"], given["gradient_accumulation_steps"]
        return given["train_batch_size"] // (micro * times)

    def check(path: Path, gpus: int) -> None:
        given = json.loads(path.read_text(encoding="utf-8"))
        split = given.get("sequence_parallel_size", 1)
        tensor = given.get("tensor_parallel", {}).get("autotp_size", 1)
        ranks = mock.Mock(get_rank=lambda: 0, get_world_size=lambda *_: gpus)
        copies = gpus // (split * tensor)
        mesh = mock.Mock(get_group=lambda *_, **__: None) if split > 1 else None
        stages = mock.Mock(get_data_parallel_world_size=lambda: copies_of(given)) if "pipeline" in given else None
        with mock.patch.object(config, "dist", ranks):
            if mesh is not None:  # as `deepspeed.initialize` derives it from the two sizes
                assert given["data_parallel_size"] == copies
                ranks.get_world_size = lambda *_: copies
            read = config.DeepSpeedConfig(given, mpu=stages, mesh_device=mesh)
        assert read.zero_optimization_stage == given["zero_optimization"]["stage"]
        parts = {"world_size": gpus, "pp_size": 1, "tp_size": tensor, "sp_size": split}
        if "expert_parallel" in given:
            expert.validate_autoep_config(read.expert_parallel_config, zero_stage=read.zero_optimization_stage, **parts)

    return check


def torchtitan() -> Check:
    """Check the file with the job's configuration manager, its degrees with the device mesh, its model by name."""
    manager = import_module("torchtitan.config.manager")
    dimensions = import_module("torchtitan.distributed.parallel_dims").ParallelDims

    def check(path: Path, gpus: int) -> None:
        job = manager.ConfigManager().parse_args([f"--job.config_file={path}"])
        degrees = job.parallelism
        dimensions(
            dp_replicate=degrees.data_parallel_replicate_degree, dp_shard=degrees.data_parallel_shard_degree,
            cp=degrees.context_parallel_degree, tp=degrees.tensor_parallel_degree, pp=degrees.pipeline_parallel_degree,
            ep=degrees.expert_parallel_degree, etp=degrees.expert_tensor_parallel_degree, world_size=gpus,
        )  # fmt: skip
        copies = degrees.data_parallel_replicate_degree * degrees.data_parallel_shard_degree
        shards = copies * degrees.context_parallel_degree * degrees.tensor_parallel_degree
        shards //= degrees.data_parallel_replicate_degree
        experts = degrees.expert_parallel_degree * degrees.expert_tensor_parallel_degree
        assert degrees.expert_parallel_degree == 1 or shards % experts == 0, f"{experts} ranks of experts in {shards}"
        assert job.training.global_batch_size % (job.training.local_batch_size * copies) == 0
        model = import_module(f"torchtitan.models.{job.model.name}")
        flavors = next(value for name, value in vars(model).items() if re.fullmatch(r"\w+_(args|configs)", name))
        shape = flavors[job.model.flavor]
        if degrees.pipeline_parallel_degree > 1:
            stages = -(-shape.n_layers // degrees.pipeline_parallel_layers_per_stage)
            assert stages % degrees.pipeline_parallel_degree == 0, f"{stages} stages"

    return check


def axolotl() -> Check:
    """Check the file with the schema and the capabilities of an H100, as `axolotl train` does before it starts."""
    yaml = import_module("yaml")
    validate = import_module("axolotl.utils.config").validate_config
    dictionary = import_module("axolotl.utils.dict").DictDefault

    def check(path: Path, gpus: int) -> None:
        given = dictionary(yaml.safe_load(path.read_text(encoding="utf-8")))
        known = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": min(8, gpus), "compute_capability": "sm_90"}
        with mock.patch.dict(sys.modules, {"ring_flash_attn": mock.MagicMock()}):
            modelled = import_module("axolotl.utils.schemas.config")
            with mock.patch.object(modelled, "is_fp8_available", return_value=True):
                read = validate(given, capabilities=known, env_capabilities={"torch_version": "2.11.0"})
        left = set(given) - set(read) - {name for name, value in given.items() if value is None}
        assert not left, f"unknown: {sorted(left)}"

    return check


def skypilot() -> Check:
    """Check the file as a task."""
    sky = import_module("sky")

    def check(path: Path, gpus: int) -> None:
        task = sky.Task.from_yaml(str(path))
        (resources,) = task.resources
        (number,) = resources.accelerators.values()
        assert number * task.num_nodes == gpus, f"{number} x {task.num_nodes} for {gpus} GPUs"

    return check


OF_THE_READER = ("--lr", "1e-4", "--mock-data", "--tokenizer-type", "NullTokenizer", "--eval-iters", "0")
"""Arguments that no plan contains, passed after the script's name."""


def megatron() -> Check:
    """Check that each rank validates the script's arguments, and that settings and groups can be built from them."""
    if not hasattr(typing, "override"):  # Python 3.11
        setattr(typing, "override", import_module("typing_extensions").override)  # noqa: B010
    module = import_module("megatron.training.arguments")
    modelled = import_module("megatron.core.transformer.transformer_config")
    turned = import_module("megatron.core.models.common.embeddings.rope_utils")
    hopper: tuple[contextlib.AbstractContextManager[object], ...] = (
        mock.patch.object(module, "get_device_arch_version", return_value=9),
        mock.patch("torch.cuda.get_device_capability", return_value=(9, 0)),
        mock.patch.object(turned, "fused_apply_rotary_pos_emb", object()),  # Transformer Engine's
    )
    versions = [
        mock.patch.object(place, name, return_value=True)
        for place in (module, modelled)
        for name in ("is_te_min_version", "is_flashinfer_min_version")
        if hasattr(place, name)
    ]

    def check(path: Path, gpus: int) -> None:
        script = path.read_text(encoding="utf-8")
        given = script.split("MEGATRON_ARGS=(\n")[1].split("\n)\n")[0].split()
        words = [word.strip("'") for word in given]
        variables = dict(re.findall(r"^export (\w+)=(\S+)$", script, flags=re.MULTILINE))
        with contextlib.ExitStack() as stack:
            for patch in (*hopper, *versions):
                stack.enter_context(patch)
            stack.enter_context(mock.patch.dict(os.environ, {**variables, "WORLD_SIZE": str(gpus), "RANK": "0"}))
            stack.enter_context(mock.patch.object(sys, "argv", ["pretrain_gpt.py", *words, *OF_THE_READER]))
            if "CUDA_DEVICE_MAX_CONNECTIONS" not in variables:
                os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
            arguments = module.validate_args(module.parse_args())
            module.core_transformer_config_from_args(arguments)
        assert arguments.global_batch_size % (arguments.micro_batch_size * arguments.data_parallel_size) == 0
        _groups_of_ranks(arguments, gpus)

    return check


def _groups_of_ranks(arguments: argparse.Namespace, gpus: int) -> None:
    """Build Megatron's groups of ranks, without communication between ranks."""
    states = import_module("megatron.core.parallel_state")
    sizes = {
        name: getattr(arguments, name)
        for name in (
            "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
            "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size",
            "num_distributed_optimizer_instances",
        )
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        for name, value in {"is_initialized": True, "get_world_size": gpus, "get_rank": 0}.items():
            stack.enter_context(mock.patch(f"torch.distributed.{name}", return_value=value))
        stack.enter_context(mock.patch("torch.distributed.new_group", mock.MagicMock()))
        stack.callback(states.destroy_model_parallel)
        states.initialize_model_parallel(**sizes)


CHECKS: dict[str, Callable[[], Check]] = {
    "megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed, "accelerate": accelerate,
    "axolotl": axolotl, "skypilot": skypilot,
}  # fmt: skip


def refused(name: str, folder: Path) -> list[str] | None:
    """Return what a framework's parser refuses in the files of a folder; None if the framework cannot be imported."""
    try:
        check = CHECKS[name]()
    except ImportError as error:
        sys.stderr.write(f"{name}: not importable here ({error})\n")
        return None
    faults = []
    for path in sorted(folder.iterdir()):
        gpus = int(re.findall(r"\.gpus(\d+)\.", path.name)[0])
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                check(path, gpus)
        except (Exception, SystemExit) as error:
            last = output.getvalue().strip().splitlines()[-1:] if isinstance(error, SystemExit) else []
            faults.append(f"{path.name}: {type(error).__name__}: {' '.join([*str(error).split(), *last])[:400]}")
    return faults


def main() -> int:
    """Check the files of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megatron", metavar="FOLDER", help="a checkout of Megatron-LM")
    given = parser.parse_args()
    if given.megatron:
        sys.path.insert(0, given.megatron)
    os.environ.setdefault("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
    tried, wrong = 0, 0
    with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, {"HOME": home}):
        for name in CHECKS:
            folder = given.folder / name
            faults = refused(name, folder) if folder.is_dir() else None
            if faults is None:
                continue
            number = len(list(folder.iterdir()))
            tried, wrong = tried + number, wrong + len(faults)
            sys.stdout.write(
                "".join([f"{name}: {number} files, {len(faults)} refused\n", *(f"  {x}\n" for x in faults)])
            )
    return 0 if tried and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
