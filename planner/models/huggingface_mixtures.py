"""How families of mixtures of experts write their shape into a Hugging Face `config.json`."""

from __future__ import annotations

from typing import Any

from planner.models.huggingface_decoder import decoder, heads_of, window_of
from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape

TOP_K = ("num_experts_per_tok", "experts_per_token")
"""Usual keys for the number of experts to which a token is routed."""


def experts_of(
    config: ConfigJson, experts: tuple[str, ...], expert_ffn: str, chosen: tuple[str, ...] = TOP_K
) -> dict[str, int]:
    """Experts per layer, experts per token and inner size of an expert, read from the given keys."""
    count, top_k = config.count(*experts), config.count(*chosen)
    if top_k > count:
        raise config.fail(chosen[0], f"at most {experts[0]} ({count})")
    return {"experts": count, "top_k": top_k, "expert_ffn": config.count(expert_ffn)}


def mixtral(config: ConfigJson) -> ModelShape:
    """Mixtral: experts in every layer, without shared experts."""
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    return decoder(config, ffn_hidden=0, **window_of(config), **experts)


def granite_moe_shared(config: ConfigJson) -> ModelShape:
    """Granite's mixtures: like Mixtral, in some models with a shared block beside the experts."""
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    shared = config.opt_count("shared_intermediate_size", low=0) or 0
    if shared % experts["expert_ffn"]:
        raise config.fail("shared_intermediate_size", "a multiple of intermediate_size")
    return decoder(config, ffn_hidden=0, shared_experts=shared // experts["expert_ffn"], **experts)


def gpt_oss(config: ConfigJson) -> ModelShape:
    """GPT-OSS: like Mixtral, with biases and local attention in every second layer."""
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    return decoder(config, ffn_hidden=0, biases=True, **window_of(config, global_every=2), **experts)


def _leading_dense(config: ConfigJson) -> int:
    """Number of dense layers listed in `mlp_only_layers`, which must be the first layers.

    Layers that a shortened model no longer has are ignored, as in transformers, which checks each layer that it builds.
    """
    layers = config.count("num_hidden_layers")
    named = sorted(number for number in set(config.whole_numbers("mlp_only_layers")) if number < layers)
    if named != list(range(len(named))):
        raise config.fail("mlp_only_layers", "the first layers only")
    return len(named)


def _every(config: ConfigJson, period: int, first: int = 0) -> dict[str, int]:
    """Experts in each layer whose number, counted from 1, is a multiple of a period, after the first dense layers.

    Where the layers are no multiple of the period, or the first ones are dense, some more layers at the start count as
    dense here, so that the numbers of dense layers and of those with experts are right.
    """
    layers = config.count("num_hidden_layers")
    moe = layers // period - min(first, layers) // period
    return {"dense_layers": layers - moe * period, "moe_every": period}


def qwen_moe(config: ConfigJson, **fields: Any) -> ModelShape:
    """Qwen mixtures: some dense layers, and shared experts given by their size; `fields` are specific to the family."""
    experts = experts_of(config, ("num_experts", "num_local_experts"), "moe_intermediate_size")
    dense = _leading_dense(config)
    period = config.opt_count("decoder_sparse_step") or 1
    shared = config.opt_count("shared_expert_intermediate_size", low=0) or 0
    if shared % experts["expert_ffn"]:
        raise config.fail("shared_expert_intermediate_size", "a multiple of moe_intermediate_size")
    return decoder(
        config,
        ffn_hidden=config.count("intermediate_size") if dense or period > 1 else 0,
        shared_experts=shared // experts["expert_ffn"],
        **_every(config, period, dense),
        **experts,
        **fields,
    )


def llama4(config: ConfigJson) -> ModelShape:
    """Llama 4: one shared expert; in some models every second layer is dense."""
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    period, layers = config.opt_count("interleave_moe_layer_step") or 1, config.count("num_hidden_layers")
    listed = tuple(layer for layer in config.whole_numbers("moe_layers") if 0 <= layer < layers)
    if listed:
        period = listed[0] + 1
        expected = range(listed[0], layers, period)
        if len(listed) != len(expected) or listed != tuple(expected):
            raise config.fail("moe_layers", f"every {period}-th layer, as the first one is {listed[0]}")
    dense = config.count("intermediate_size_mlp") if period > 1 else 0
    return decoder(config, ffn_hidden=dense, shared_experts=1, **_every(config, period), **experts)


def groups_of(config: ConfigJson, experts: int) -> dict[str, int]:
    """Groups of experts and groups per token; empty if tokens are routed over all groups (`greedy`, or one group)."""
    groups, token_groups = config.opt_count("n_group") or 1, config.opt_count("topk_group") or 1
    if config.text("topk_method") == "greedy" or groups == 1:
        return {}
    if experts % groups:
        raise config.fail("n_group", f"a divisor of n_routed_experts ({experts})")
    if token_groups > groups:
        raise config.fail("topk_group", f"at most n_group ({groups})")
    return {} if token_groups == groups else {"expert_groups": groups, "token_groups": token_groups}


def first_dense(config: ConfigJson, default: int = 0) -> int:
    """Number of leading layers with a dense feed-forward block, from `mlp_layer_types` or `first_k_dense_replace`.

    As in transformers, a model with fewer layers than the dense ones stated has only dense layers.
    """
    layers, listed = config.count("num_hidden_layers"), config.texts("mlp_layer_types")
    if not listed:
        stated = config.opt_count("first_k_dense_replace", low=0)
        return min(default if stated is None else stated, layers)
    dense = listed.count("dense")
    if len(listed) != layers or not set(listed[:dense]) <= {"dense"} or not set(listed[dense:]) <= {"sparse"}:
        raise config.fail("mlp_layer_types", "`dense` for the first layers, and `sparse` for all others")
    return dense


def _after_dense_layers(config: ConfigJson) -> dict[str, int]:
    """Routed and shared experts after leading dense layers, with DeepSeek's key names."""
    experts = experts_of(config, ("n_routed_experts",), "moe_intermediate_size")
    return {
        "shared_experts": config.opt_count("n_shared_experts", low=0) or 0,
        "dense_layers": first_dense(config),
        "moe_every": config.opt_count("moe_layer_freq") or 1,
        **experts,
        **groups_of(config, experts["experts"]),
    }


def glm(config: ConfigJson) -> ModelShape:
    """GLM: DeepSeek's experts with ordinary attention."""
    return decoder(config, **window_of(config), **_after_dense_layers(config))


def olmoe(config: ConfigJson) -> ModelShape:
    """OLMoE: like Mixtral, with a different key for the number of experts."""
    experts = experts_of(config, ("num_experts", "num_local_experts"), "intermediate_size")
    return decoder(config, ffn_hidden=0, **experts)


def _normed_heads(config: ConfigJson, norms: int) -> dict[str, int]:
    """Heads, and the parameters of `norms` norms in each layer, of the last one, and of those of q and k."""
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    heads = heads_of(config, hidden)
    keys_and_queries = (heads["heads"] + heads["kv_heads"]) * heads["head_dim"]
    biases = (keys_and_queries + heads["kv_heads"] * heads["head_dim"] + hidden) * config.flag("attention_bias", False)
    return {**heads, "other_params": layers * (norms * hidden + keys_and_queries + biases) + hidden}


def flex_olmo(config: ConfigJson) -> ModelShape:
    """FlexOlmo: like OLMoE, with norms behind its blocks."""
    experts = experts_of(config, ("num_experts", "num_local_experts"), "intermediate_size")
    return decoder(config, ffn_hidden=0, **_normed_heads(config, 2), **experts)


def minimax(config: ConfigJson) -> ModelShape:
    """MiniMax-M2: like Mixtral, with norms of queries and keys."""
    experts = experts_of(config, ("num_local_experts", "num_experts"), "intermediate_size")
    return decoder(config, ffn_hidden=0, **_normed_heads(config, 2), **experts)


def ernie(config: ConfigJson) -> ModelShape:
    """ERNIE: shared experts and leading dense layers, with different key names for all of them."""
    last, layers = config.values.get("moe_layer_end_index"), config.count("num_hidden_layers")
    if isinstance(last, int) and 0 <= last < layers - 1:
        raise config.fail("moe_layer_end_index", f"the last layer ({layers - 1})")
    return decoder(
        config,
        shared_experts=config.opt_count("moe_num_shared_experts", low=0) or 0,
        **_every(
            config,
            config.opt_count("moe_layer_interval") or 1,
            config.opt_count("moe_layer_start_index", low=0) or 0,
        ),
        **experts_of(config, ("moe_num_experts",), "moe_intermediate_size", ("moe_k",)),
    )


def _in_every_layer(config: ConfigJson, key: str) -> int:
    """A whole number, or a list with the same number for every layer."""
    listed = config.values.get(key)
    if not isinstance(listed, list):
        return config.count(key)
    numbers = config.whole_numbers(key)
    if len(numbers) != config.count("num_hidden_layers") or len(set(numbers)) != 1 or numbers[0] < 1:
        raise config.fail(key, "the same number for each layer")
    return numbers[0]


def hunyuan(config: ConfigJson) -> ModelShape:
    """Hunyuan's mixtures: one shared expert and routed experts, all of the same size, in every layer."""
    experts, top_k = _in_every_layer(config, "num_experts"), _in_every_layer(config, "moe_topk")
    if top_k > experts:
        raise config.fail("moe_topk", f"at most num_experts ({experts})")
    ffn = config.count("intermediate_size")
    return decoder(config, ffn_hidden=0, shared_experts=1, experts=experts, top_k=top_k, expert_ffn=ffn)


def bailing(config: ConfigJson) -> ModelShape:
    """Ling and Ring: DeepSeek's experts with ordinary attention and different key names."""
    experts = experts_of(config, ("num_experts",), "moe_intermediate_size")
    return decoder(
        config,
        shared_experts=config.opt_count("num_shared_experts", low=0) or 0,
        dense_layers=first_dense(config),
        **experts,
        **groups_of(config, experts["experts"]),
    )


def latent_of(config: ConfigJson) -> dict[str, Any]:
    """Latent attention with DeepSeek's key names."""
    rope, heads = config.count("qk_rope_head_dim"), config.count("num_attention_heads")
    return {
        "heads": heads,
        "kv_heads": heads,
        "head_dim": config.count("qk_nope_head_dim") + rope,
        "q_lora_rank": config.opt_count("q_lora_rank"),
        "kv_lora_rank": config.count("kv_lora_rank"),
        "rope_head_dim": rope,
        "v_head_dim": config.count("v_head_dim"),
    }


def deepseek(config: ConfigJson) -> ModelShape:
    """DeepSeek: latent attention, shared experts, leading dense layers, and routing within groups of experts."""
    return decoder(config, **latent_of(config), **_after_dense_layers(config))


def glm_lite(config: ConfigJson) -> ModelShape:
    """GLM-4.7-Flash: DeepSeek's layers, dense in the first one unless the file says otherwise."""
    hidden, layers, latent = config.count("hidden_size"), config.count("num_hidden_layers"), latent_of(config)
    ranks = latent["kv_lora_rank"] + (latent["q_lora_rank"] or 0)
    biases = (ranks + latent["rope_head_dim"] + hidden) * config.flag("attention_bias", False)
    fields = _after_dense_layers(config) | {"dense_layers": first_dense(config, default=1)}
    return decoder(config, other_params=layers * (2 * hidden + ranks + biases) + hidden, **latent, **fields)
