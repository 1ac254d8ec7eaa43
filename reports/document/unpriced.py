"""The fields of an answer unrelated to money: the only place that decides what a copy without prices contains.

A part, a plan's figure, an input or a sentence that is not listed here is left out until it is listed. Everything
inside a listed figure is kept, except sentences, each of which must be listed as well.
"""

from __future__ import annotations

from reports.document.public import PRIVATE_VALUES, PUBLIC_VALUES, WORDS

PRICED_INPUTS = frozenset({
    "price", "price_like", "provider", "commitment", "as_of", "electricity", "budget", "quote", "own", "beside",
    "tariff",
})  # fmt: skip
"""Inputs that are a price or give the origin of a price."""

INPUTS = frozenset({
    "examples", "epochs", "lengths", "packed", "lora_rank", "lora_targets", "trained_layers", "single_quant",
    "in_backward", "loss", "image_size", "samples",
    "params", "model", "method", "tokens", "seq_len", "global_batch", "precision", "policy", "optimizer", "act_ckpt",
    "offload", "grad_compression", "moe_dispatcher", "mtp_layers",
    "stack", "attention", "gpu", "gpus", "deadline", "confidence", "max_gpus", "gpus_per_node", "network",
    "network_file", "power_limit", "tp", "pp", "vp", "cp", "ep", "zero", "micro_batch", "memory_risk", "pue",
    "power_cap", "grid", "market_grid", "embodied", "region", "records", "calibration", "numerics", "seed",
})  # fmt: skip
"""All other inputs of the question."""

PLAN = frozenset({
    "precision", "policy", "gpu", "gpus", "nodes", "layout", "fits", "why_not", "memory_gib", "memory_capacity_gib",
    "memory_risk", "step_s", "step_range_s", "tokens_per_s_per_gpu",
    "samples_per_s_per_gpu", "tflops_per_gpu", "mfu", "mfu_full_attention",
    "hfu", "model_flop", "goodput_ratio", "skipped_step_ratio", "duration_days", "gpu_hours", "energy_mwh",
    "energy_items_mwh",
    "gpu_power_w", "mean_power_mw", "peak_power_mw", "carbon_tco2e", "carbon_market_tco2e", "embodied_tco2e",
    "carbon_with_embodied_tco2e", "sci_kg_per_run", "sci_kg_per_1e21_flop", "uncertainty", "lost_layouts",
    "layouts_evaluated", "products", "attention_kernel", "collectives", "narrow_gain",
})  # fmt: skip
"""Fields of a plan."""

FIGURES = PLAN | {"params_total"}
"""Figures for which a source may be used, and metrics of a saving."""

FIELDS = frozenset({
    "schema", "mpplan", "created_at", "model", "deadline_days", "unsupported", "power_caps", "calibration",
    "confidence", "run_totals", "tokens_per_sequence", "numerics",
    *(f"parity.{name}" for name in (
        "gpu", "precision", "basis", "measured", "published", "untrained",
        *(f"{part}.{name}" for part in ("per_nat", "published_per_nat")
          for name in ("basis", "baseline", "nats", "saved_gpu_hours", "gpu_hours_per_nat")),
    )),
    *(f"plans.{name}" for name in PLAN), "plans.probability.deadline",
    *(f"curve.{name}" for name in (
        "gpu", "gpus", "global_batch", "duration_days", "energy_mwh", "in_time", "chosen", "knee",
    )),
    *(f"savings.{name}" for name in ("view", "gpu", "metric", "from", "to", "low", "mid", "high", "amount")),
    *(f"assumptions.{name}" for name in ("id", "text", "change_with")),
    *(f"gaps.{name}" for name in ("key", "what", "why", "effect")),
    *(f"evidence.{name}" for name in (
        "id", "kind", "what", "source", "date", "gpu", "precisions", "terms", "used_in", "public",
    )),
})  # fmt: skip
"""Fields by path without indices; their contents are kept. `same_deadline` is treated as `plans`."""

EMPTIED = {
    "plans.cost_usd": None, "plans.cost_lines": (), "plans.probability.budget": None, "curve.cost_usd": None,
    "curve.in_budget": None,
    **{f"parity.{part}.{name}": None for part in ("per_nat", "published_per_nat")
       for name in ("saved_usd", "usd_per_nat")},
}  # fmt: skip
"""Fields that every answer has, with the value that replaces theirs in a copy."""

TEXTS = WORDS | {
    *(f"parity.measured.{name}" for name in ("task", "device", "source")),
    *(f"parity.untrained.{name}" for name in ("task", "device", "source")),
    *(f"numerics.{name}" for name in ("source", "device", "layers.name")),
    "model.name", "calibration.name", "calibration.source",
    "plans.products.evidence", "plans.attention_kernel.evidence", "plans.collectives.evidence",
    "plans.uncertainty.measure_with",
    *(f"evidence.{name}" for name in ("id", "what", "source")),
}  # fmt: skip
"""Fields whose text is kept although it has no message: texts of the package, names, and texts of sources."""

VALUES = (PUBLIC_VALUES | PRIVATE_VALUES) - {"what", "problem"}
"""Message values whose text is a word or a name; a sentence as a value comes from a source or is unknown."""

MESSAGES = frozenset({
    "text.brackets", "text.network_rate", "text.network_run", "text.batch_on", "text.image_batch_on",
    "flag.with_value", "hint.with", "hint.with_lean_loss", "hint.without",
    *(f"assumption.{name}" for name in (
        "tokens", "global_batch", "batches", "seq_len", "gpu", "gpus_per_node", "deadline", "optimizer", "stack",
        "loss", "memory_risk", "method", "usual_name", "network", "host_share", "goodput", "skipped_steps",
        "skipped_steps_emulated", "stops", "padding", "input_pipeline", "pue", "grid", "examples", "lengths", "epochs",
        "image_size", "images_per_step", "image_stack", "sent_once", "sent_to_each",
    )),
    *(f"note.{name}" for name in (
        "derived_shape", "shape", "ffn", "experts", "tokens_per_param", "published_batch", "batch_by_tokens",
        "critical_batch", "batch_in_band", "tuning_batch_in_band", "policy", "gpu_of_record", "usual", "usual_others",
        "usual_names", "usual_model", "network_assumed", "fastest_under_cap", "fewest_gpus",
        "sold_alone", "pue", "grid", "grid_market", "grid_given",
        "image_model", "image_scaled", "imagenet", "epochs", "samples", "images_per_step", "images_in_band",
        "image_stack", "tokens_of_samples", "tokens_of_examples", "usual_examples", "usual_lengths",
        "counted_lengths", "usual_batch", "usual_other", "published_batch_left", "usual_batch_left", "lean_loss",
    )),
    *(f"gap.{name}.{part}" for name in ("power", "embodied", "precision", "place.grid")
      for part in ("what", "why", "effect")),
    *(f"warning.{name}" for name in (
        "cap", "memory_risk", "memory_risk_tuning", "safe_way", "assumed_lengths",
        "far_dearer_hours", "years", "years_capped", "own_record", "fleet_record",
        "shipped_record", "records_aside", "records_aside_more", "store_unlisted", "record_damaged", "record_untrusted",
        "record_part", "record_slower", "record_faster", "records_ahead", "record_other_cpu",
        "calibration", "calibration_gpu", "calibration_without_record", "calibration_record_gone", "network_file",
        "network_record", "network_extrapolated", "network_rate_hidden", "network_gpus_per_node",
        "network_other_gpu", "network_inside_alone", "network_rate_unused", "network_unused", "positions",
        "unused_line", "stack_over_nodes", "one_stack_over_nodes", "lean_loss", "one_lean_loss",
        "unusual_checkpointing",
    )),
    "record.aside", "record.ahead",
    *(f"why.{name}" for name in (
        "no_matrix_path", "not_measured", "no_block_scales", "no_even_split", "no_batch_splits", "does_not_fit",
        "too_big", "too_risky", "likely_too_big", "simpler", "other_batch", "slower_on_average", "slower", "over_cap",
    )),
    *(f"narrow.{name}" for name in (
        "probe", "network_between_nodes", "network_in_node", "run_on_two_nodes", "run_on_one_node", "own_runs",
        "lengths",
    )),
    *(f"learned.{name}" for name in ("more", "less", "hidden_better", "hidden_worse", "surer")),
    *(f"error.{name}" for name in (
        "too_slow", "within_days", "no_even_split", "fits_nowhere", "unsupported", "no_plan_on", "over_deadline",
        "fits_not_under_cap", "more_power", "tp_heads", "pp_layers", "ep_experts", "cp_sequence", "micro_batch",
        "gpus_multiple", "dp_batch", "likely_fits_nowhere", "fits_not_within", "likely_fits_not_within",
    )),
})  # fmt: skip
"""Sentences that mention no price, cost, budget or offer."""
