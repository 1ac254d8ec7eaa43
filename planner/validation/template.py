"""An empty file of runs with a comment for each column, as printed by `mpplan calibrate --template`."""

from __future__ import annotations

COLUMNS = {
    "id": "your own name for the run",
    "model": "a name listed by `mpplan models` or `mpplan models --images`, or any name if the shape is given below",
    "precision": "fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4",
    "gpu": "a GPU listed by `mpplan gpus`",
    "n_gpus": "total number of GPUs in the run",
    "gpus_per_node": "blank: the usual number for the GPU",
    "seq_len": "tokens per sequence",
    "global_batch_seqs": "sequences per optimizer step",
    "micro_batch": "sequences per micro-batch and GPU",
    "tp": "degree of tensor parallelism; blank: searched",
    "pp": "degree of pipeline parallelism; blank: searched",
    "vp": "virtual stages per pipeline stage (interleaved schedule); blank: 1",
    "cp": "degree of context parallelism; blank: 1",
    "ep": "degree of expert parallelism; blank: 1",
    "zero_or_fsdp_stage": "0, 1, 2 or 3 (ZeRO), or fsdp; blank: the framework's default",
    "act_ckpt": "none, selective, full, every-2 or every-4; blank: the framework's default",
    "attention": "flash or naive; blank: the framework's default",
    "compile": "y or n: whether torch.compile was used",
    "framework": "the training software: Megatron-LM, NeMo, DeepSpeed, FSDP, Hugging Face …",
    "network": "network between nodes, like 8x400Gb/s",
    "power_limit_w": "power limit of each GPU in watts; blank: as sold",
    "metric": "tokens_per_s_per_gpu, step_time_s, samples_per_s (of all GPUs), tflops_per_gpu, mfu, peak_mem_gib, "
    "avg_gpu_power_w, avg_node_power_w, gpu_hours, time_to_train_min or energy_mwh",
    "value": "the measured figure, in the unit of the metric, in steady state; one row per metric",
    "mem_kind": "what peak_mem_gib is: allocated or reserved (as PyTorch reports them), or device (nvidia-smi); "
    "blank: what the framework logs",
    "energy_scope": "where energy_mwh was metered: gpu (the GPUs' own meters), node_dc, node_ac (a node's plug) or "
    "facility (the building's meter); blank: facility",
    "pue": "PUE that energy_mwh includes; blank: 1.25 at the building's meter, 1 elsewhere",
    "tokens_total": "tokens of the whole run, like 1.5T: for gpu_hours, time_to_train_min, energy_mwh",
    "params_total": "number of parameters, like 8B; blank: from the model",
    "n_layers": "number of layers; blank: from the model, like the seven columns below",
    "hidden": "size of the hidden state, like 4096",
    "n_heads": "attention heads (of queries)",
    "n_kv_heads": "attention heads of keys and values; fewer than n_heads in grouped-query attention, 1 in multi-query",
    "ffn_hidden": "inner size of the feed-forward layers, like 14336; in a mixture of experts, that of one expert",
    "vocab": "entries of the vocabulary, like 128256",
    "n_experts": "experts per layer, in a mixture of experts",
    "top_k": "experts that each token is routed to",
    "method": "pretrain, sft, freeze, lora, qlora, dpo …; blank: pretrain",
    "optimizer": "adamw, adamw-8bit, muon …; blank: the framework's default",
    "mean_tokens": "mean tokens per example, if padded to the longest of the micro-batch; blank: full length",
    "lora_rank": "rank of the adapters; blank: 16",
    "lora_targets": "all-linear, attention, mlp or qv; blank: the framework's default",
    "trained_layers": "number of last layers that the method freeze trains; blank: 2",
    "mtp_layers": "number of multi-token prediction modules; blank: as the model was published, with Megatron and "
    "similar software",
    "offload": "none, optimizer or activations; blank: none",
    "fused_loss": "y or n; blank: the framework's default",
    "loss": "full, chunked or fused (with the output layer); blank: as fused_loss says",
    "policy": "like bf16-pure or fp8-rowwise, as for `--policy`; blank: the framework's default for the precision",
    "in_backward": "y: the optimizer steps inside the backward pass",
    "flops_convention": "how tflops_per_gpu and mfu count; all words that apply: model FLOP (attention in full), "
    "attention halved, hardware FLOP (recomputation counted), logits excluded; blank: as a plan does (model FLOP, "
    "attention halved)",
    "series": "the same word on all repeats of one configuration",
    "lineage": "the team and its software; a calibration covers one team, so leave it blank or the same on every row",
}
"""Columns that a person would fill, with their contents; other columns of `runs.COLUMNS` may be added."""


def template_text() -> str:
    """Return the comments, which every reader of runs skips, and the header line."""
    comments = [f"# {name}: {meaning}" for name, meaning in COLUMNS.items() if meaning]
    return "\n".join([*comments, ",".join(COLUMNS), ""])
