"""The public fields of an answer: the only place that decides what a copy without names contains.

A text is public if it belongs to the package: an id of its catalogues, a word of its code, or a date. Any other text
may be a name from the user (models, vendors, providers, tariffs, records, calibrations, files, the command line). A
text that is not listed here stays hidden, so a new field or value is hidden until it is listed. Numbers are public.
"""

from __future__ import annotations

from planner.safety.tasks import KIND_OF_TASK
from planner.training.policies import load_policies

TASKS = frozenset({*KIND_OF_TASK, "own"})
"""The package's own tasks of `mpplan numerics`, and the name that stands for a user's own task."""
RECIPES = frozenset(load_policies()) | {policy.precision for policy in load_policies().values()}
"""Names of precisions and policies."""

HIDDEN = "…"
"""Replaces a text that is not public."""

PUBLIC_INPUTS = frozenset({
    "params", "method", "tokens", "seq_len", "image_size", "samples", "examples",
    "epochs", "global_batch", "precision", "policy", "optimizer", "act_ckpt", "offload", "grad_compression",
    "stack", "attention", "moe_dispatcher", "mtp_layers", "gpu", "gpus", "deadline", "budget", "confidence", "max_gpus",
    "gpus_per_node", "network",
    "power_limit", "tp", "pp", "vp", "cp", "ep", "zero", "micro_batch", "memory_risk", "price", "price_like",
    "commitment", "as_of", "pue", "electricity", "power_cap", "grid", "market_grid", "embodied", "seed",
    "packed", "lora_rank", "lora_targets", "trained_layers", "single_quant", "in_backward",
    "loss",
})  # fmt: skip
"""Inputs of the question whose value is a number, a date or a name from the package's own lists."""

PRIVATE_INPUTS = frozenset({
    "model", "lengths", "network_file", "provider", "region", "quote", "own", "beside", "tariff", "records",
    "calibration", "numerics",
})  # fmt: skip
"""Inputs that name the user's own things or business partners; they are left out."""

PRICE_OF = "price "
"""Prefix of the inputs that hold the price of one of several GPUs: `price h100-sxm5-80gb`."""

PUBLIC_VALUES = frozenset({
    "stack", "amount", "rate",
    "arch", "as_of", "collective", "columns", "command", "commitment", "compute", "currencies", "currency", "date",
    "depreciation", "first", "flag", "gpu", "gpus", "home", "housing", "input", "instead", "known", "label", "lacking",
    "key", "learned_on", "like", "method", "methods", "newest", "other", "passes", "precision", "scaler", "until",
    "value", "word",
})  # fmt: skip
"""Message values whose text is public. `value` and `input` belong to one of `PUBLIC_INPUTS`; `method` is a name from
`methods.csv`, `columns` are columns of a file of runs, `passes` is `6N` or similar; `key`, `other` and `word` are names
and words of `own.toml`."""

PRIVATE_VALUES = frozenset({
    "device", "file", "id", "lines", "measured_on", "name", "names", "others", "problem", "provider", "providers",
    "offered", "record", "region", "row", "rows", "source", "task", "vendor", "what",
})  # fmt: skip
"""Message values whose text is not public; `what` is public only if a public source states it."""

WORDS = frozenset({
    "schema", "mpplan", "created_at",
    "model.kind",
    *(f"plans.{name}" for name in (
        "precision", "policy", "gpu", "layout.act_ckpt", "lost_layouts.layout.act_ckpt", "uncertainty.term",
        "uncertainty.label", "cost_lines.id", "cost_lines.unit", "products.where", "products.compute",
        "attention_kernel.compute", "collectives.item", "collectives.operation", "collectives.carries",
        "narrow_gain.compute",
    )),
    *(f"savings.{name}" for name in ("view", "gpu", "metric", "from", "to")),
    *(f"unsupported.{name}" for name in ("precision", "gpu", "instead")),
    "assumptions.id", "assumptions.change_with", "gaps.key",
    *(f"evidence.{name}" for name in ("kind", "gpu", "date", "used_in", "precisions", "terms")),
    "curve.gpu", "power_caps.gpu", "power_limit_search.gpu", "power_limit_search.precision",
    "run_totals.date", "calibration.gpus", "calibration.learned.unit",
    *(f"parity.{name}" for name in (
        "gpu", "precision", "basis", "per_nat.basis", "per_nat.baseline", "published_per_nat.basis",
        "published_per_nat.baseline",
    )),
    *(f"parity.measured.{name}" for name in ("baseline", "metric", "verdict", "recipe", "date")),
    "parity.untrained.date",
    *(f"parity.published.{name}" for name in (
        "baseline", "model", "recipe", "framework", "source", "date", "rates.baseline", "rates.model", "rates.gpu",
        "rates.source", "rates.date",
    )),
    "numerics.device_kind", "numerics.task", "numerics.magnitudes.tensor", "numerics.magnitudes.formats.format",
    "numerics.magnitudes.formats.label",
    "numerics.scale_path.name", "numerics.scale_stress.name", "numerics.scale_precision", "numerics.lowered_to",
    *(f"numerics.pairs.{name}" for name in ("precision", "baseline", "metric", "verdict", "task")),
    *(f"numerics.mixtures.{name}" for name in ("name", "precision", "high", "kind")),
    "money.prices.gpu", "money.prices.commitment", "money.quotes.gpu", "money.owned.gpu",
    *(f"money.start_hours.{name}" for name in ("gpu", "precision", "best_start", "dearest_start")),
    "money.power_limits.gpu", "money.power_limits.precision",
})  # fmt: skip
"""Fields of the document whose text is public, by path without indices; `same_deadline` is treated as `plans`."""

WORDS_OF_TRAINING = {
    "numerics.task": TASKS,
    "numerics.pairs.task": TASKS,
    **{f"numerics.{path}.name": frozenset({"usual", "short"}) for path in ("scale_path", "scale_stress")},
    "numerics.scale_precision": RECIPES,
    "numerics.lowered_to": RECIPES,
    **{f"numerics.pairs.{name}": RECIPES for name in ("precision", "baseline")},
    **{f"numerics.mixtures.{name}": RECIPES for name in ("precision", "high")},
    **{f"parity.measured.{name}": RECIPES for name in ("baseline", "recipe")},
}
"""Texts that are public only if they are the package's own, because anyone may have written the document."""

SOURCES = frozenset({"evidence", "evidence_id", "evidence_ids", "rental_evidence_ids"})
"""Fields that name a source by its id."""

EMPTY = frozenset({"money.prices.provider", "money.prices.region", "money.here"})
"""Private fields that are empty if nothing was chosen; the copy makes them empty."""

LEFT_OUT = frozenset({"money.elsewhere"})
"""Parts that have no information without their names."""

PARTS = frozenset({
    "schema", "mpplan", "created_at", "question", "model", "plans", "same_deadline", "deadline_days", "savings",
    "unsupported", "assumptions", "gaps", "warnings", "warnings_message", "evidence", "power_caps",
    "power_limit_search", "money", "calibration", "confidence", "curve", "run_totals", "tokens_per_sequence", "parity",
    "numerics",
})  # fmt: skip
"""Parts of the document that a copy without names keeps; parts added in the future are not shared by default."""
