"""One plan of an answer as what a launcher needs to know: `PlannedRun`, read in one place.

The answer is the document `mpplan.estimate/2`, checked before it comes here. Inputs are taken from its echo of the
question with a default for each, so that an older answer reads, and a newer one brings more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from typing import Any

from planner.errors import UsageError
from planner.parallelism.layout import Layout
from planner.rows import near_names
from planner.training.method import Method, find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import LORA_RANK


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A plan that fits, with the question behind it."""

    model: str
    shape: dict[str, Any]
    """The model's dimensions as the document has them (`model`)."""
    policy: PrecisionPolicy
    gpu: str
    """Its id in the catalogue."""
    gpus: int
    nodes: int
    layout: Layout
    method: str
    """pretrain, sft, lora, qlora and so on."""
    optimizer: str
    """Its id in the catalogue."""
    offload: str
    """none, optimizer or activations."""
    attention: str
    """flash or naive."""
    stack: str
    seq_len: int
    """Tokens of the longest sequence."""
    mean_len: float
    """Tokens of a sequence on average, padding left out."""
    tokens: float
    """Of the whole run."""
    epochs: float | None
    """Passes over the data, where the question counts them."""
    lora_rank: int
    lora_targets: str | None
    """What gets an adapter, in the question's words; None: every linear layer."""
    packed: bool
    """Whether short examples share a sequence."""
    quant_double: bool
    """Whether the scales of 4-bit weights are quantised, too."""
    loss: str | None
    """full or chunked, where the question says."""
    in_backward: bool
    """Whether weights are updated inside the backward pass."""
    commitment: str
    """on-demand, spot, 1y, 3y or owned."""
    days: tuple[float, float, float]
    """Low, mid and high of the duration."""
    view: str
    created_at: str
    """ISO 8601, UTC."""
    version: str
    """mpplan's, as the document says."""
    schema: str

    @property
    def gpus_per_node(self) -> int:
        """GPUs that each server of the plan gives."""
        return ceil(self.gpus / self.nodes)

    @property
    def steps(self) -> int:
        """Optimizer steps, the last one whole."""
        return max(1, ceil(self.tokens / (self.layout.global_batch * self.mean_len)))

    @property
    def adapts(self) -> bool:
        """Whether only adapters are trained."""
        return self.how.adapts

    @property
    def how(self) -> Method:
        """The row of the method."""
        return find_method(self.method)

    @property
    def needs_script(self) -> bool:
        """Whether the training script makes the method's loss or freezes its layers."""
        return self.how.pairs or self.how.trains == "last-layers"

    @property
    def precision(self) -> str:
        """The policy's precision, for example `bf16`."""
        return self.policy.precision

    @property
    def is_moe(self) -> bool:
        """Whether the model has experts."""
        return bool(self.shape.get("experts"))

    @property
    def recomputes(self) -> bool:
        """Whether any activation is computed again."""
        return self.layout.act_ckpt != "none"

    def count(self, name: str) -> int:
        """A dimension of the model; 0 where it has none."""
        return int(self.shape.get(name) or 0)


def planned_run(document: dict[str, Any], *, precision: str | None, gpu: str | None, view: str) -> PlannedRun:
    """The plan of a precision, GPU and view; by default the asked precision on the first GPU.

    Args:
        document: the answer, checked.
        precision: of the plan.
        gpu: id of its GPU.
        view: `plans` or `same_deadline`.

    Raises:
        UsageError: there is no such plan, or it does not fit.
    """
    asked = _Echo(document.get("question") or {})
    plan = _chosen(document, precision or asked.text("precision"), gpu, view)
    layout = plan["layout"]
    days = plan["duration_days"]
    shape = document["model"]
    seq_len = int(asked.number("seq_len") or shape["context"])
    mean_len = float(document.get("tokens_per_sequence") or seq_len)
    return PlannedRun(
        model=str(shape["name"]),
        shape=shape,
        policy=find_policy(plan["policy"]),
        gpu=plan["gpu"],
        gpus=plan["gpus"],
        nodes=plan["nodes"],
        layout=Layout(**{field.name: layout[field.name] for field in fields(Layout) if field.name in layout}),
        method=asked.text("method") or "pretrain",
        optimizer=find_optimizer(asked.text("optimizer") or "adamw").id,
        offload=asked.text("offload") or "none",
        attention=asked.text("attention") or "flash",
        stack=asked.text("stack") or "typical",
        seq_len=seq_len,
        mean_len=mean_len,
        loss=asked.text("loss"),
        tokens=asked.number("tokens") or 0.0,
        epochs=asked.number("epochs"),
        lora_rank=int(asked.number("lora_rank") or LORA_RANK),
        lora_targets=asked.text("lora_targets"),
        packed=asked.flag("packed", default=mean_len >= seq_len),
        quant_double=not asked.flag("single_quant", default=False),
        in_backward=asked.flag("in_backward", default=False),
        commitment=asked.text("commitment") or "on-demand",
        days=(days["low"], days["mid"], days["high"]),
        view="same GPUs" if view == "plans" else "same deadline",
        created_at=str(document.get("created_at", "")),
        version=str(document.get("mpplan", "")),
        schema=str(document["schema"]),
    )


@dataclass(frozen=True, slots=True)
class _Echo:
    """The question as the document repeats it, `{input: {"value", …}}`."""

    question: dict[str, Any]

    def _value(self, name: str) -> object:
        entry = self.question.get(name)
        return entry.get("value") if isinstance(entry, dict) else None

    def text(self, name: str) -> str | None:
        value = self._value(name)
        return value if isinstance(value, str) and value else None

    def number(self, name: str) -> float | None:
        value = self._value(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._value(name)
        if isinstance(value, bool):
            return value
        words = {"yes": True, "on": True, "true": True, "packed": True, "no": False, "off": False, "false": False}
        return words.get(str(value).lower(), default)


def _chosen(document: dict[str, Any], precision: str | None, gpu: str | None, view: str) -> dict[str, Any]:
    plans: list[dict[str, Any]] = document.get(view) or []
    names = {"--precision": (precision, "precision"), "--gpu": (gpu, "gpu")}
    for flag, (name, key) in names.items():
        known = list(dict.fromkeys(str(plan[key]) for plan in plans))
        if name is not None and name not in known:
            near = near_names(name, known) or known
            raise UsageError(f"{flag}: the answer has no plan of `{name}`", hint=f"one of {', '.join(near) or 'none'}")
    held = [plan for plan in plans if precision in (None, plan["precision"]) and gpu in (None, plan["gpu"])]
    if not held:
        raise UsageError("the answer has no such plan", hint="leave `--precision`, `--gpu` and `--view` out")
    plan = held[0]
    if not plan["fits"] or not plan.get("layout") or not plan.get("duration_days"):
        fitting = [f"{row['precision']} on {row['gpu']}" for row in plans if row["fits"]]
        raise UsageError(
            f"the plan in {plan['precision']} on {plan['gpu']} does not fit: there is nothing to launch",
            hint=f"the answer has {', '.join(fitting)}" if fitting else "plan again with more GPUs",
        )
    return plan
