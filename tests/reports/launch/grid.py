"""Plans of many kinds, real ones, and the files that each framework gets of them.

`python -m tests.reports.launch.grid FOLDER` writes the files, for `tools.launching.parsers`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mpplan.api.answer import estimate_briefly
from mpplan.api.document import to_document
from planner.errors import UsageError
from reports.launch import FRAMEWORKS, launch_file
from tests.shared import shared

H100, A100, B200, V100 = "h100-sxm5-80gb", "a100-sxm4-80gb", "b200-sxm-180gb", "v100-sxm2-32gb"
FSDP = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "zero": 3}
ALONE = {"tp": 1, "pp": 1, "zero": 1}
SHORT = {"tokens": "1B"}

GRID: dict[str, dict[str, Any]] = {
    "dense": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **SHORT},
    "dense-fsdp": {"model": "llama-3-8b", "gpu": H100, "gpus": 16, "stack": "fsdp-compile", "policy": "bf16-fsdp",
                   "precision": "bf16", **FSDP, **SHORT},
    "dense-zero2": {"model": "llama-3-8b", "gpu": H100, "gpus": 16, **FSDP, "zero": 2, **SHORT},
    "dense-zero1": {"model": "qwen3-4b", "gpu": H100, "gpus": 8, **ALONE, **SHORT},
    "dense-ddp": {"model": "qwen3-0.6b", "gpu": H100, "gpus": 8, **ALONE, "zero": 0, **SHORT},
    "uneven-nodes": {"model": "llama-3-8b", "gpu": H100, "gpus": 17, **SHORT},
    "dense-512": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 512, "tokens": "1T"},
    "pipeline": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 64, "tp": 4, "pp": 4, "vp": 1, **SHORT},
    "pipeline-virtual": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 64, "tp": 4, "pp": 4, "vp": 5, **SHORT},
    "pipeline-uneven": {"model": "llama-3.1-405b", "gpu": H100, "gpus": 512, "tp": 8, "pp": 8, "vp": 1, **SHORT},
    "pipeline-alone": {"model": "gpt-3-6.7b", "gpu": A100, "gpus": 8, "tp": 1, "pp": 4, "vp": 1, "zero": 1,
                       "act_ckpt": "full", **SHORT},
    "pipeline-qwen": {"model": "qwen3-8b", "gpu": H100, "gpus": 16, "tp": 1, "pp": 2, **SHORT},
    "titan-pipeline": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 128, "tp": 4, "pp": 4, "vp": 1, "zero": 3,
                       "stack": "fsdp-compile", **SHORT},
    "context": {"model": "llama-3.1-8b", "gpu": H100, "gpus": 16, "seq_len": 65536, "cp": 4,
                "global_batch": 16, **SHORT},
    "context-two": {"model": "llama-3.1-8b", "gpu": H100, "gpus": 16, "seq_len": 8192, "cp": 4, "tp": 1, "pp": 1,
                    "micro_batch": 2, "global_batch": 64, **SHORT},
    "context-fsdp": {"model": "llama-3.1-8b", "gpu": H100, "gpus": 16, "seq_len": 65536, **FSDP, "cp": 4,
                     "micro_batch": 1, "global_batch": 16, "stack": "fsdp-compile", **SHORT},
    "tensor-fsdp": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 64, **FSDP, "tp": 8,
                    "stack": "fsdp-compile", **SHORT},
    "moe": {"model": "mixtral-8x7b", "gpu": H100, "gpus": 64, "ep": 8, **SHORT},
    "moe-shared": {"model": "deepseek-v3", "gpu": H100, "gpus": 1024, "ep": 32, "pp": 16, "tp": 1, **SHORT},
    "moe-over-tensor": {"model": "mixtral-8x7b", "gpu": H100, "gpus": 64, "tp": 4, "pp": 4, "vp": 1, "cp": 1, "ep": 8,
                        "zero": 1, **SHORT},
    "moe-over-tensor-fsdp": {"model": "qwen3-30b-a3b", "gpu": H100, "gpus": 16, **FSDP, "tp": 2, "ep": 16,
                             "stack": "fsdp-compile", **SHORT},
    "moe-split": {"model": "qwen3-30b-a3b", "gpu": H100, "gpus": 16, **FSDP, "tp": 2, "ep": 4, "stack": "fsdp-compile",
                  **SHORT},
    "moe-fsdp": {"model": "qwen3-30b-a3b", "gpu": H100, "gpus": 32, **FSDP, "ep": 8, "stack": "fsdp-compile", **SHORT},
    "moe-deepep": {"model": "qwen3-30b-a3b", "gpu": H100, "gpus": 32, **FSDP, "ep": 8, "stack": "fsdp-compile",
                   "moe_dispatcher": "deepep", **SHORT},
    "moe-top-1": {"model": "llama-4-maverick", "gpu": H100, "gpus": 256, **SHORT},
    "moe-biases": {"model": "gpt-oss-20b", "gpu": H100, "gpus": 16, "tp": 2, "pp": 1, "cp": 1, "ep": 4, **SHORT},
    "windowed": {"model": "gemma-2-9b", "gpu": H100, "gpus": 16, **SHORT},
    "learned-positions": {"model": "gpt-2-1.5b", "gpu": V100, "gpus": 8, "precision": "fp16", **SHORT},
    "learned-positions-fsdp": {"model": "gpt-3-1.3b", "gpu": A100, "gpus": 8, **FSDP, **SHORT},
    "learned-positions-large": {"model": "gpt-3-175b", "gpu": B200, "gpus": 256, **FSDP, **SHORT},
    "learned-positions-sft": {"model": "gpt-3-1.3b", "gpu": A100, "gpus": 8, **FSDP, "method": "sft", "packed": True},
    "tied-pipeline-fsdp": {"model": "qwen3-4b", "gpu": H100, "gpus": 8, **FSDP, "pp": 2, **SHORT},
    "own-shape": {"params": "7B", "gpu": H100, "gpus": 8, **FSDP, **SHORT},
    "lora": {"model": "llama-3-8b", "gpu": A100, "gpus": 1, "method": "lora", "tokens": "50M"},
    "lora-8": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 8, "method": "lora", **FSDP, "tokens": "50M"},
    "lora-masters": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 8, "method": "lora", **FSDP, "policy": "bf16",
                     "precision": "bf16", "tokens": "50M"},
    "qlora": {"model": "llama-3.1-70b", "gpu": A100, "gpus": 1, "method": "qlora", "tokens": "20M",
              "optimizer": "adamw-8bit-paged"},
    "sft": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "sft", **FSDP, "tokens": "100M"},
    "sft-zero1": {"model": "qwen2.5-1.5b", "gpu": H100, "gpus": 8, "method": "sft", **ALONE, "tokens": "100M"},
    "one-gpu": {"model": "qwen3-0.6b", "gpu": "rtx-5090", "gpus": 1, **SHORT},
    "spot": {"model": "llama-3-8b", "gpu": H100, "gpus": 16, **FSDP, "commitment": "spot", "price": 2, **SHORT},
    "tensor-ddp": {"model": "qwen3-4b", "gpu": H100, "gpus": 8, "tp": 2, "pp": 1, "cp": 1, "zero": 0, **SHORT},
    "pure-one": {"model": "qwen3-0.6b", "gpu": H100, "gpus": 1, "policy": "bf16-pure", "precision": "bf16", **SHORT},
    "unnamed-gpu": {"model": "qwen3-4b", "gpu": "h100-pcie-80gb", "gpus": 8, **SHORT},
    "amd": {"model": "llama-3-8b", "gpu": "mi300x-192gb", "gpus": 16, **FSDP, **SHORT},
    "full-ckpt": {"model": "llama-3-8b", "gpu": A100, "gpus": 8, **FSDP, "act_ckpt": "full", **SHORT},
    "every-2": {"model": "llama-3-8b", "gpu": A100, "gpus": 8, "act_ckpt": "every-2", **SHORT},
    "every-4-fsdp": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "act_ckpt": "every-4", **SHORT},
    "selective": {"model": "llama-3-8b", "gpu": A100, "gpus": 8, "act_ckpt": "selective", **SHORT},
    "selective-moe": {"model": "mixtral-8x7b", "gpu": H100, "gpus": 64, "act_ckpt": "selective", **SHORT},
    "offload": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **ALONE, "offload": "optimizer", **SHORT},
    "offload-one": {"model": "qwen3-1.7b", "gpu": H100, "gpus": 1, "offload": "optimizer", **SHORT},
    "offload-one-fsdp": {"model": "llama-3-8b", "gpu": A100, "gpus": 1, "tp": 1, "zero": 3, "offload": "optimizer",
                         **SHORT},
    "offload-fsdp": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "offload": "optimizer", **SHORT},
    "offload-activations": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "offload": "activations",
                            "act_ckpt": "none", **SHORT},
    "offload-checkpoints": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "offload": "activations",
                            "act_ckpt": "full", **SHORT},
    "naive": {"model": "gpt-3-1.3b", "gpu": A100, "gpus": 8, "attention": "naive", **SHORT},
    "muon": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **ALONE, "optimizer": "muon", **SHORT},
    "muon-fsdp": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "optimizer": "muon", **SHORT},
    "lion": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "optimizer": "lion", **SHORT},
    "lamb": {"model": "bert-large", "gpu": A100, "gpus": 8, "optimizer": "lamb", **SHORT},
    "adafactor": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **FSDP, "optimizer": "adafactor", **SHORT},
    "adamw-8bit": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **FSDP, "optimizer": "adamw-8bit", **SHORT},
    "pure": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **FSDP, "policy": "bf16-pure", "precision": "bf16", **SHORT},
    "sgd": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, "optimizer": "sgd-momentum", **SHORT},
    "reserved": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "commitment": "1y", "price": 2, **SHORT},
    "autocast": {"model": "qwen3-4b", "gpu": H100, "gpus": 8, **ALONE, "policy": "bf16-autocast", "precision": "bf16",
                 "stack": "eager", **SHORT},
    "fp16-zero": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **ALONE, "policy": "fp16-zero", "precision": "fp16",
                  **SHORT},
    **{policy: {"model": "llama-3-8b", "gpu": B200, "gpus": 8, "policy": policy,
                "precision": policy.split("-", maxsplit=1)[0], **(FSDP if "fsdp" in policy else {}), **SHORT}
       for policy in ("bf16-bf16-grad", "bf16-fsdp", "bf16-fsdp-bf16-reduce", "fp8", "fp8-delayed", "fp8-rowwise",
                      "fp8-blockwise", "fp8-fsdp", "fp8-fsdp-rowwise", "mxfp8", "mxfp8-fsdp", "nvfp4")},
    "fp8-delayed-fsdp": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, **FSDP, "policy": "fp8-delayed",
                         "precision": "fp8", **SHORT},
    "mxfp8-zero3": {"model": "llama-3-8b", "gpu": B200, "gpus": 8, **FSDP, "policy": "mxfp8", "precision": "mxfp8",
                    **SHORT},
    "dora": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 8, "method": "dora", **FSDP, "examples": "10k", "epochs": 3,
             "lora_rank": 64, "lora_targets": "attention", "packed": True},
    "dpo": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "dpo", **FSDP, "act_ckpt": "full"},
    "dpo-packed": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "dpo-lora", **FSDP, "packed": True,
                   "loss": "chunked"},
    "dpo-qlora": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "dpo-qlora", **FSDP},
    "qlora-8": {"model": "llama-3.1-70b", "gpu": "rtx-4090", "gpus": 8, "method": "qlora", **FSDP, "lengths": 600,
                "packed": True},
    "qlora-fits-one": {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": 8, "method": "qlora", **FSDP, "zero": 2,
                       "single_quant": True},
    "qlora-context": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 8, "method": "qlora", **FSDP, "cp": 2},
    "qlora-checkpoints": {"model": "llama-3.1-70b", "gpu": H100, "gpus": 8, "method": "qlora", **FSDP,
                          "offload": "activations", "act_ckpt": "full"},
    "paged-fsdp": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **FSDP, "optimizer": "adamw-8bit-paged", **SHORT},
    "paged-zero1": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **ALONE, "optimizer": "adamw-8bit-paged", **SHORT},
    "qlora-paged": {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": 8, "method": "qlora", **FSDP,
                    "optimizer": "adamw-8bit-paged"},
    "freeze": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "freeze", **FSDP},
    "sft-padded": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "method": "sft", **FSDP},
    "sft-padded-zero1": {"model": "qwen2.5-1.5b", "gpu": H100, "gpus": 8, "method": "sft", **ALONE},
    "chunked": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "sft", **FSDP, "packed": True,
                "loss": "chunked"},
    "fused-loss": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, "method": "sft", **FSDP, "packed": True,
                   "loss": "fused"},
    "in-backward": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "method": "sft", **FSDP, "packed": True,
                    "in_backward": True, "loss": "full"},
    "in-backward-zero1": {"model": "qwen2.5-1.5b", "gpu": H100, "gpus": 8, "method": "sft", **ALONE, "packed": True,
                          "in_backward": True},
    "in-backward-pipeline": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "method": "sft", "tp": 1, "pp": 2, "vp": 1,
                             "zero": 3, "packed": True, "in_backward": True, "loss": "full"},
    "single-quant": {"model": "llama-3.1-70b", "gpu": A100, "gpus": 1, "method": "qlora", "examples": "10k",
                     "epochs": 2.5, "single_quant": True, "optimizer": "adamw-8bit-paged"},
    "torchtune": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "method": "sft", "stack": "torchtune", **FSDP},
    "unsloth": {"model": "llama-3-8b", "gpu": H100, "gpus": 1, "method": "qlora", "stack": "unsloth", "packed": True},
    "power-limit": {"model": "llama-3-8b", "gpu": H100, "gpus": 8, "power_limit": 500, **FSDP, **SHORT},
    "sgd-fsdp": {"model": "qwen3-4b", "gpu": A100, "gpus": 8, **FSDP, "optimizer": "sgd-momentum", **SHORT},
    "volta": {"model": "gpt-2-1.5b", "gpu": V100, "gpus": 8, **ALONE, "precision": "fp16", **SHORT},
    "vit": {"model": "vit-b-16", "gpu": H100, "gpus": 16, "image_size": 384, "samples": "115M"},
    "vit-fp8": {"model": "vit-b-16", "gpu": H100, "gpus": 8, "precision": "fp8", "samples": "115M"},
    "resnet": {"model": "resnet-50", "gpu": A100, "gpus": 8, "precision": "fp16"},
    "hybrid": {"model": "nemotron-h-8b", "gpu": H100, "gpus": 8, **SHORT},
    "bert": {"model": "bert-base", "gpu": A100, "gpus": 8, "samples": "10M", "seq_len": 128},
    "fp8-sft": {"model": "qwen2.5-7b", "gpu": H100, "gpus": 8, **FSDP, "method": "sft", "precision": "fp8",
                "tokens": "100M"},
}  # fmt: skip
"""Questions by name."""

REPLICAS: dict[str, tuple[str, int]] = {
    "replicas": ("dense-fsdp", 2),
    "replicas-zero1": ("dense-zero1", 2),
}
"""Answers by name whose layouts no search proposes: that of the grid they are made of, and the replicas."""


@cache
def answer(name: str) -> str:
    """The answer to a question of the grid, as the text of its document, without the view by one deadline."""
    return shared(f"grid {name}", lambda: json.dumps(to_document(estimate_briefly(**GRID[name]))))


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every answer, and those that somebody else's question or planner would get."""
    for name in GRID:
        yield name, json.loads(answer(name))
    for name in REPLICAS:
        yield name, document_of(name)


def document_of(name: str) -> dict[str, Any]:
    """The answer of a name."""
    base, replicas = REPLICAS.get(name, (name, 1))
    document: dict[str, Any] = json.loads(answer(base))
    for plan in document["plans"] if name in REPLICAS else ():
        plan["layout"] = plan["layout"] and plan["layout"] | {"replicas": replicas}
    return document


def files() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Name of the plan, framework, text of the file and the plan, of all that a framework can run.

    Every precision of an answer is a plan of its own.
    """
    for name, document in documents():
        for plan in document["plans"]:
            for framework in FRAMEWORKS:
                try:
                    made = launch_file(document, framework.name, precision=plan["precision"])
                except UsageError:
                    continue
                yield f"{name}-{plan['precision']}", framework.name, made.text, plan


def main(folder: Path) -> None:
    """Write every file into the folder of its framework, and beside it the number of GPUs of its plan."""
    suffixes = {framework.name: framework.suffix for framework in FRAMEWORKS}
    for name, framework, text, plan in files():
        (folder / framework).mkdir(parents=True, exist_ok=True)
        path = folder / framework / f"{name}.gpus{plan['gpus']}{suffixes[framework]}"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
