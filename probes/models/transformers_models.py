"""Models of the `transformers` library, built from configurations with random weights; nothing is downloaded."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from probes.models.cases import BERTS, LLAMAS, TIED, ModelCase
from probes.models.transformer import causal_attention, randomise


def build_model(case: ModelCase, seed: int, device: torch.device) -> nn.Module:
    """Build the model of a case on the device, in FP32, in training mode without dropout."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    make = {"llama": _llama, "bert": _bert, "resnet": _resnet}[case.family]
    with torch.device(device):
        model = make(case)
    randomise(model, seed)
    model.train()
    if case.recompute:
        _recompute_layers(model)
    if case.compiled:
        _compile_layers(model)
    return model


def _llama(case: ModelCase) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LLAMAS[case.size]
    config = LlamaConfig(
        hidden_size=shape.hidden,
        intermediate_size=shape.ffn,
        num_hidden_layers=case.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab,
        max_position_embeddings=max(case.seq_len, 2048),
        tie_word_embeddings=case.size in TIED,
        attn_implementation=_fused_attention(),
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def _bert(case: ModelCase) -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    sizes = BERTS[case.size]
    config = BertConfig(
        hidden_size=sizes.hidden,
        num_hidden_layers=case.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=sizes.ffn,
        vocab_size=sizes.vocab,
        max_position_embeddings=max(case.seq_len, 512),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    return BertForMaskedLM(config)


def _resnet(case: ModelCase) -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig(num_labels=1000))
    for parameter in model.parameters():  # one by one: `to` swaps parameters, which fake tensors do not allow
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return model


def _fused_attention() -> str:
    """Register causal attention without a mask in the library's registry and return its name; `sdpa` if it has none.

    The library's `sdpa` decides at run time whether a mask is needed, which makes the host wait; on fake tensors it
    always builds a mask.
    """
    try:
        from transformers import AttentionInterface
    except ImportError:
        return "sdpa"

    def attend(
        module: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, None]:
        return causal_attention(q, k, v).transpose(1, 2).contiguous(), None

    AttentionInterface.register("mpplan_causal", attend)
    return "mpplan_causal"


def _recompute_layers(model: nn.Module) -> None:
    """Enable full activation checkpointing, by the method name of the installed version."""
    enable = getattr(model, "activation_checkpointing_enable", None)
    if enable is not None:
        enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def _compile_layers(model: nn.Module) -> None:
    """Compile layer by layer, so that one compilation serves every layer of the same shape."""
    for name, child in model.named_modules():
        if name.rsplit(".", 1)[-1].isdigit() and type(child).__name__.endswith("Layer"):
            child.compile(dynamic=False)


def make_batch(case: ModelCase, seed: int, device: torch.device, held: str) -> dict[str, Any]:
    """Return one random batch: tokens that are their own labels, or images with classes."""
    generator = torch.Generator(device=device).manual_seed(seed)
    if case.family == "resnet":
        size = (case.batch, 3, case.seq_len, case.seq_len)
        pixels = torch.randn(size, generator=generator, device=device).to(getattr(torch, held))
        labels = torch.randint(0, 1000, (case.batch,), generator=generator, device=device)
        return {"pixel_values": pixels.contiguous(memory_format=torch.channels_last), "labels": labels}
    vocab = LLAMAS[case.size].vocab if case.family == "llama" else BERTS[case.size].vocab
    tokens = torch.randint(0, vocab, (case.batch, case.seq_len), generator=generator, device=device)
    return {"input_ids": tokens, "labels": tokens}
