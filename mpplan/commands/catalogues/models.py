"""`mpplan models`: the catalogue of published models, as a list or one model in full."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from typing import Annotated, Any

import typer

from mpplan.commands.catalogues.short_names import meant
from mpplan.ui import options
from mpplan.ui.listing import details, figure, table
from planner.models.catalogue import find_model, load_models, model_named
from planner.models.images.catalogue import image_model_named, load_image_models
from planner.models.shape import ModelShape
from planner.question import names

SCHEMA = "mpplan.models/1"

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Show this model in full (name or alias).",
        autocompletion=options.completion(names.models),
    ),
]

Images = Annotated[bool, typer.Option("--images", help="List timm's vision models.")]


def models(name: Name = None, images: Images = False, json: options.JsonFlag = False) -> None:
    """List the models in the catalogue with their sources."""
    rows = [_find(name)] if name is not None else list((load_image_models() if images else load_models()).values())
    if json:
        document = {"schema": SCHEMA, "models": [_entry(model) for model in rows]}
        typer.echo(dumps(document, indent=2, ensure_ascii=False))
    elif name is not None:
        typer.echo(_details(rows[0]), nl=False)
    else:
        typer.echo(_list_images(rows) if images else _list(rows), nl=False)


def _find(name: str) -> ModelShape:
    if model_named(name) is not None:
        return find_model(name)
    images = image_model_named(name)
    return find_model(meant("model", name, load_models())) if images is None else images


def _predicting(model: ModelShape) -> str:
    number = model.mtp_layers
    shared = ", with the weights of one" * model.mtp_shares_weights
    return f"{number} module{'s' * (number > 1)}{shared}" if number else "-"


def _entry(model: ModelShape) -> dict[str, Any]:
    if model.network is not None:
        network = model.network
        source = None if model.evidence is None else asdict(model.evidence)
        return {
            "name": model.name, "kind": model.kind, "params_total": network.params, "image_size": network.image_size,
            "flop_per_image": network.flop_per_image, "evidence": source,
        }  # fmt: skip
    shape = asdict(model)
    del shape["network"], shape["mtp_unrolled"]
    return shape | {
        "params_total": model.params_total,
        "params_active": model.params_active,
        "matrix_params_active": model.matrix_params_active,
    }


def _source(model: ModelShape) -> tuple[str, str]:
    evidence = model.evidence
    return ("-", "-") if evidence is None else (evidence.date or "-", evidence.source)


def _list(rows: list[ModelShape]) -> str:
    size = ("params, B", "active, B", "layers", "hidden", "heads", "kv heads", "ffn", "experts")
    headers = ("name", *size, "vocab", "context", "batch, M tokens", "dated", "source")
    lines = [
        (
            model.name,
            figure(model.params_total, 1e9),
            figure(model.params_active, 1e9),
            str(model.layers),
            str(model.hidden),
            str(model.heads),
            str(model.kv_heads),
            str(model.expert_ffn or model.ffn_hidden),
            f"{model.experts}/{model.top_k}" if model.experts else "-",
            str(model.vocab),
            str(model.context),
            figure(model.global_batch_tokens, 1e6, 3),
            *_source(model),
        )
        for model in rows
    ]
    return table(headers, lines)


def _list_images(rows: list[ModelShape]) -> str:
    headers = ("name", "params, M", "pixels", "GFLOP per image", "dated", "source")
    lines = [
        (model.name, figure(network.params, 1e6), str(network.image_size), figure(network.flop_per_image, 1e9),
         *_source(model))
        for model in rows
        if (network := model.network) is not None
    ]  # fmt: skip
    return table(headers, lines)


def _details(model: ModelShape) -> str:
    date, source = _source(model)
    if model.network is not None:
        network = model.network
        mostly = "convolutions" if network.is_convolutional else "linear layers and attention"
        return details((
            ("name", model.name),
            ("kind", f"vision model, mostly {mostly}"),
            ("parameters", f"{figure(network.params, 1e6)}M in {network.tensors} tensors"),
            ("images", f"{network.image_size} pixels per side"),
            ("forward", f"{figure(network.flop_per_image, 1e9)} GFLOP per image"),
            ("source", f"{source} ({date})"),
        ))  # fmt: skip
    attention = f"{model.heads} heads of {model.head_dim}, {model.kv_heads} key/value heads"
    if model.kv_lora_rank is not None:
        attention = f"{model.heads} latent heads, rank {model.kv_lora_rank} for keys and values"
    if model.sliding_window is not None:
        attention += f", window {model.sliding_window}"
    if model.gated_attention:
        attention += ", gated"
    if model.attention_layers is not None:
        attention += f", in {model.attention_layers} layers"
    linear = model.linear
    scanned = "-" if linear is None else (
        f"{linear.value_heads} heads of {linear.value_dim}, "
        f"{linear.key_heads} key head{'s' * (linear.key_heads > 1)} of {linear.key_dim}, in {linear.layers} layers"
    )  # fmt: skip
    gated, batch = "gated" if model.gated_mlp else "not gated", model.global_batch_tokens
    experts = f"{model.experts} of {model.expert_ffn}, {model.top_k} per token, {model.shared_experts} shared"
    if model.expert_groups:
        experts += f", in at most {model.token_groups} of {model.expert_groups} groups"
    if model.expert_hidden is not None:
        experts += f", behind a projection to {model.expert_hidden}"
    fed = f"{model.ffn_hidden}, {gated}" if model.ffn_hidden else f"experts only, {gated}"
    if model.ffn_layers is not None:
        fed += f", in {model.ffn_layers} layers"
    return details(
        (
            ("name", model.name),
            ("kind", model.kind),
            ("parameters", f"{figure(model.params_total, 1e9)}B, {figure(model.params_active, 1e9)}B per token"),
            ("as published", f"{figure(model.params_published, 1e9)}B"),
            ("layers", str(model.layers)),
            ("hidden", str(model.hidden)),
            ("attention", attention),
            ("linear attention", scanned),
            ("feed-forward", fed),
            ("experts", experts if model.experts else "-"),
            ("vocabulary", f"{model.vocab:,}{', tied embeddings' if model.tied_embeddings else ''}"),
            ("multi-token prediction", _predicting(model)),
            ("training sequence", f"{model.context} tokens"),
            ("published batch", f"{figure(batch, 1e6, 3)}M tokens" if batch else "not known"),
            ("source", f"{source} ({date})"),
        )
    )
