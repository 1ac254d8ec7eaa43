"""An empty file of runs with a comment for each column, as printed by `mpplan calibrate --template`."""

from __future__ import annotations

COLUMNS = {
    "id": "a name of your own for the run",
    "model": "a model of `mpplan models`, or any name if the shape is given below",
    "precision": "fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4",
    "gpu": "a GPU of `mpplan gpus`",
    "n_gpus": "all GPUs of the run",
    "gpus_per_node": "blank: as the GPU is usually sold",
    "seq_len": "tokens per sequence",
    "global_batch_seqs": "sequences per optimizer step",
    "micro_batch": "sequences per micro-batch and GPU",
    "tp": "tensor parallel; blank: searched",
    "pp": "pipeline parallel; blank: searched",
    "vp": "layers of a stage in so many pieces (interleaved); blank: 1",
    "cp": "context parallel; blank: 1",
    "ep": "expert parallel; blank: 1",
    "zero_or_fsdp_stage": "0, 1, 2 or 3 (ZeRO), or fsdp; blank: the framework's default",
    "act_ckpt": "none, selective, full, every-2 or every-4; blank: the framework's default",
    "attention": "flash or naive; blank: the framework's default",
    "compile": "y or n",
    "framework": "what trains: Megatron-LM, NeMo, DeepSpeed, FSDP, Hugging Face …",
    "network": "between nodes, like 8x400Gb/s",
    "metric": "tokens_per_s_per_gpu, step_time_s, samples_per_s (of all GPUs), tflops_per_gpu, mfu, peak_mem_gib, "
    "avg_gpu_power_w, gpu_hours, time_to_train_min or energy_mwh",
    "value": "what was measured, in the unit of the metric, steady state; one line per metric",
    "mem_kind": "of peak_mem_gib: allocated, reserved (both of PyTorch) or device (nvidia-smi)",
    "tokens_total": "of a whole run, like 1.5T: for gpu_hours, time_to_train_min, energy_mwh",
    "params_total": "like 8B; blank: from the model",
    "n_layers": "blank: from the model, as are the seven below",
    "hidden": "size of the hidden state, like 4096",
    "n_heads": "attention heads (of queries)",
    "n_kv_heads": "attention heads of keys and values; fewer than n_heads in grouped-query attention, 1 in multi-query",
    "ffn_hidden": "inner size of the feed-forward layers, like 14336; in a mixture of experts that of one expert",
    "vocab": "entries of the vocabulary, like 128256",
    "n_experts": "of a mixture of experts, in each of its layers",
    "top_k": "experts that a token is routed to",
    "method": "pretrain, sft, freeze, lora, qlora, dpo …; blank: pretrain",
    "optimizer": "adamw, adamw-8bit, muon …; blank: the framework's default",
    "mean_tokens": "mean tokens of an example where each is padded to the longest of its micro-batch; blank: full",
    "lora_rank": "of adapters; blank: 16",
    "lora_targets": "all-linear, attention, mlp or qv; blank: the framework's default",
    "trained_layers": "last layers that freeze trains; blank: 2",
    "mtp_layers": "modules of multi-token prediction, 0: none; blank: as the model was published, with Megatron and "
    "the like",
    "offload": "none, optimizer or activations; blank: none",
    "fused_loss": "y or n; blank: the framework's default",
    "loss": "full, chunked or fused with the output layer: more than fused_loss says; blank: as fused_loss",
    "policy": "like bf16-pure or fp8-rowwise, as of `--policy`; blank: what the precision means in the framework",
    "in_backward": "y: the optimizer steps inside the backward pass",
    "flops_convention": "of tflops_per_gpu and mfu, the words that apply: model FLOP (attention in full), attention "
    "halved, hardware FLOP (recomputation counted), logits excluded; blank: model FLOP, attention halved",
    "series": "the same word on repeats of one configuration",
    "lineage": "the team and its software; one calibration is of one team: blank, or the same word on every line",
}
"""Columns that a person would fill, with their contents; other columns of `runs.COLUMNS` may be added."""


def template_text() -> str:
    """Return the comments, which every reader of runs skips, and the header line."""
    comments = [f"# {name}: {meaning}" for name, meaning in COLUMNS.items() if meaning]
    return "\n".join([*comments, ",".join(COLUMNS), ""])
