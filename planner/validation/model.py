"""The shape of a published run's model: as its row states it, completed from the catalogue and by arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from planner.models.catalogue import model_named
from planner.models.images.catalogue import image_model_named
from planner.models.shape import ModelShape
from planner.validation.defaults import Filled
from planner.validation.runs import PublishedRun

DEFAULT_VOCAB = 50257
"""Vocabulary of GPT-2, used where neither the row nor the catalogue states one."""

MASKED_SHARE = 0.15
"""Share of the tokens that masked language modelling predicts (Devlin et al., arXiv 1810.04805)."""


class CannotPredictError(Exception):
    """A row lacks what a prediction needs; its argument is the reason to show, a text or a message."""


def catalogue_model(name: str) -> ModelShape | None:
    """Return the catalogue model with which a name starts.

    Trailing words (`LoRA`, `(debug)`, `proxy-21L`) are dropped.
    """
    return _starting(name, model_named)


def _starting(name: str, named: Callable[[str], ModelShape | None]) -> ModelShape | None:
    words = re.sub(r"\(.*?\)", " ", name).split()
    for last in range(len(words), 0, -1):
        model = named(" ".join(words[:last]))
        if model is not None:
            return model
    return None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value), None)


def _agrees(run: PublishedRun, base: ModelShape) -> bool:
    """Return whether a row that names a catalogue model also has its width."""
    return run.hidden in (None, base.hidden) and run.n_heads in (None, base.heads)


def model_of(run: PublishedRun, filled: Filled) -> ModelShape:
    """Return the shape of the row's model; values that were not in the row are noted in `filled`.

    Raises:
        CannotPredictError: neither the row nor the catalogue gives a shape.
    """
    if run.family == "cnn":
        return _network(run)
    base = catalogue_model(run.model)
    if base is not None and not _agrees(run, base):
        base = None
    if base is None and run.hidden is None:
        network = None if run.family else _starting(run.model, image_model_named)
        if network is not None:
            return network
        raise CannotPredictError("shape: n_layers, hidden, n_heads blank, and the model is not in the catalogue")
    if base is None and run.n_layers is None and run.params_total is None:
        raise CannotPredictError("n_layers: blank, and the model is not in the catalogue")
    shape = _assembled(run, base, filled)
    if run.n_layers is None and base is None:
        shape = _with_layers_from_params(run, shape, filled)
    if base is None:
        shape = _closest_variant(run, shape, filled)
    return shape


def _network(run: PublishedRun) -> ModelShape:
    model = _starting(run.model, image_model_named)
    if model is None:
        raise CannotPredictError(f"shape: no network is called `{run.model}`; `mpplan models --images` lists them")
    return model


def _assembled(run: PublishedRun, base: ModelShape | None, filled: Filled) -> ModelShape:
    """Combine the row's values, the catalogue's where the row has none, and documented defaults."""
    hidden = _first(run.hidden, base.hidden if base else None) or 0
    heads = _first(run.n_heads, base.heads if base else None)
    if heads is None:
        heads = max(1, hidden // 128)
        filled.take("n_heads", as_=f"{heads} of 128")
    ffn = _first(run.ffn_hidden, base.ffn_hidden if base else None)
    experts = _first(run.n_experts, base.experts if base else None) or 0
    if ffn is None and not experts:
        ffn = 4 * hidden
        filled.take("ffn_hidden", as_=f"{ffn}, 4 x hidden")
    vocab = _first(run.vocab, base.vocab if base else None)
    if vocab is None:
        vocab = DEFAULT_VOCAB
        filled.take("vocab", as_=str(vocab))
    layers = _first(run.n_layers, base.layers if base else None) or 1
    if base is not None:
        if any(not getattr(run, name) for name in ("n_layers", "hidden", "n_heads")):
            filled.take("shape", as_=f"{base.name} of the catalogue")
        return replace(
            _shortened(base, layers),
            vocab=vocab,
            kv_heads=run.n_kv_heads or base.kv_heads,
            ffn_hidden=base.ffn_hidden if experts or not ffn else ffn,
        )
    encoder, encoder_decoder = run.family == "bert", run.family == "encdec"
    expert_ffn = run.expert_ffn or ffn or 0
    return ModelShape(
        name=run.model,
        kind="encoder" if encoder else "encoder-decoder" if encoder_decoder else "decoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=run.n_kv_heads or heads,
        head_dim=max(1, round(hidden / heads)),
        ffn_hidden=ffn or 0,
        gated_mlp=False,
        vocab=vocab,
        context=run.seq_len or 2048,
        tied_embeddings=encoder,
        learned_positions=512 if encoder else 0,
        biases=encoder,
        cross_attention_layers=layers // 2 if encoder_decoder else 0,
        head_ratio=MASKED_SHARE if encoder else 1.0,
        experts=experts,
        top_k=run.top_k or min(2, experts),
        shared_experts=run.n_shared_experts or 0,
        expert_ffn=expert_ffn if experts else 0,
    )


def _shortened(base: ModelShape, layers: int) -> ModelShape:
    """Return a catalogue model with the layers that a row states; a hybrid keeps its shares of each kind of layer.

    Where a hybrid's layers are counted in pairs here, its publisher and the rows count each layer of a pair.
    """
    if base.ffn_layers is not None and layers != base.layers:
        layers = -(-layers // 2)
    dense = min(base.dense_layers, max(layers - 1, 0))
    if layers == base.layers or base.linear is None:
        return replace(base, layers=layers, dense_layers=dense)

    def kept(of_base: int) -> int:
        return max(min(of_base, 1), round(of_base * layers / base.layers))

    linear = replace(base.linear, layers=kept(base.linear.layers))
    attended = None if base.attention_layers is None else kept(base.attention_layers)
    fed = None if base.ffn_layers is None else kept(base.ffn_layers)
    return replace(base, layers=layers, attention_layers=attended, linear=linear, ffn_layers=fed, dense_layers=dense)


def _with_layers_from_params(run: PublishedRun, shape: ModelShape, filled: Filled) -> ModelShape:
    plain = shape.ffn_hidden == 4 * shape.hidden  # GPT's block has a tied output layer; other widths mean gated blocks
    shape = replace(shape, gated_mlp=not plain, tied_embeddings=plain or shape.tied_embeddings)
    one_layer, two_layers = replace(shape, layers=1).params_total, replace(shape, layers=2).params_total
    assert run.params_total is not None
    layers = max(1, round((run.params_total - one_layer) / (two_layers - one_layer) + 1))
    filled.take("n_layers", as_=f"{layers}, from {run.params_total:.4g} parameters")
    return replace(shape, layers=layers)


def _closest_variant(run: PublishedRun, shape: ModelShape, filled: Filled) -> ModelShape:
    """Choose gated or plain feed-forward and tied or untied output, whichever is closest to the parameter count."""
    if shape.kind == "encoder" or run.n_layers is None:
        return shape
    options = ((False, True), (False, False), (True, True), (True, False))
    variants = [replace(shape, gated_mlp=gated, tied_embeddings=tied) for gated, tied in options]
    if run.params_total is None:
        gated = bool(run.ffn_hidden) and run.ffn_hidden != 4 * shape.hidden
        filled.take("feed-forward", as_=f"{'gated' if gated else 'plain'}, by its width")
        return next(v for v in variants if v.gated_mlp == gated)
    published = run.params_total
    return min(variants, key=lambda v: abs(v.params_total - published))
