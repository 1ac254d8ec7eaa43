"""Read a document: the requested precision, the leading GPU, and lookups of plans, savings and sources."""

from __future__ import annotations

import math
from typing import Any

from planner.answer.leading import leading_gpu
from planner.evidence import EvidenceKind
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS
from reports.document.public import PRICE_OF
from reports.document.text_facts import allowed_memory_risk
from reports.text.clean import clean
from reports.text.names import pretty_slug

Doc = dict[str, Any]
"""A part of the document as plain JSON values."""

LADDER = tuple(kind.value for kind in EvidenceKind)
"""Kinds of evidence, best first."""

SHOWN = tuple(reversed((*PRECISIONS, *EXTRA_PRECISIONS)))
"""Precisions in the order of the report, lowest first."""

COST = "cost_usd"
DURATION = "duration_days"
ENERGY = "energy_mwh"
CARBON = "carbon_tco2e"
DEFAULT_CONFIDENCE = 0.8
"""Default of `estimate`, also assumed for a document that states none."""

QUANTITY = {
    COST: "money",
    DURATION: "days",
    "gpu_hours": "gpu_hours",
    ENERGY: "energy",
    CARBON: "carbon",
    "tokens_per_s_per_gpu": "tokens_per_s",
    "samples_per_s_per_gpu": "sequences_per_s",
    "tflops_per_gpu": "tflops",
    "mfu": "percent",
}
"""Name of the unit ladder for each metric."""


RESTS_ON = {
    COST: ("cost_usd", "price"),
    DURATION: (
        "step_s",
        "tokens_per_s_per_gpu",
        "samples_per_s_per_gpu",
        "duration_days",
        "goodput_ratio",
        "tflops_per_gpu",
        "mfu",
        "gpu_hours",
    ),
    ENERGY: ("energy_mwh", "gpu_power_w", "energy_items_mwh", "peak_power_mw"),
    CARBON: ("carbon_tco2e",),
    "memory_gib": ("memory_gib", "memory_capacity_gib"),
}
"""Names in `used_in` on which a figure rests directly."""


class Facts:
    """A cleaned document, with the lookups that all sections need."""

    __slots__ = ("asked", "doc", "gpu", "gpus")

    def __init__(self, document: Doc) -> None:
        self.doc = document
        self.gpus: tuple[str, ...] = tuple(dict.fromkeys(plan["gpu"] for plan in document["plans"]))
        """GPUs of the answer, in the document's order."""
        self.asked = self._asked()
        """The requested precision."""
        self.gpu = leading_gpu(document["plans"], self.asked)
        """GPU of the first screen: the cheapest on which the requested precision fits; without prices the first."""

    @property
    def sees_images(self) -> bool:
        """Whether the model is trained on images instead of tokens."""
        return bool(self.doc["model"].get("kind") == "image")

    def worded(self, tokens: str, images: str) -> str:
        """Return the key of the text about images if the model is trained on images, else of the text about tokens."""
        return images if self.sees_images else tokens

    @property
    def amount(self) -> float | None:
        """Tokens of the run, or images for an image model; None if the document does not say."""
        given = self.given("samples" if self.sees_images else "tokens")
        return float(given) if isinstance(given, int | float) and given else None

    @property
    def amount_quantity(self) -> str:
        """Name of the unit ladder of `amount`."""
        return "images" if self.sees_images else "tokens"

    def given(self, name: str) -> Any:
        """Return the value of an input of the question, or None."""
        entry = self.doc["question"].get(name)
        return entry.get("value") if isinstance(entry, dict) else None

    def source_of(self, name: str) -> str:
        """Return the origin of an input (flag, file, default …); empty if there is no such input."""
        entry = self.doc["question"].get(name)
        return clean(entry.get("source")) if isinstance(entry, dict) else ""

    def price_input(self, gpu: str | None = None) -> str:
        """Return the name in the question of the price of a GPU, by default the answer's.

        With several GPUs, each has a price of its own.
        """
        name = f"{PRICE_OF}{self.gpu if gpu is None else gpu}"
        return name if name in self.doc["question"] else "price"

    def _asked(self) -> str:
        given = self.given("precision")
        first = given[0] if isinstance(given, list) and given else given
        planned = [plan["precision"] for plan in self.doc["plans"]]
        for name in (first, *(p["policy"] == first and p["precision"] for p in self.doc["plans"])):
            if name in planned:
                return str(name)
        return next((name for name in SHOWN if name in planned), planned[0] if planned else "")

    def plan(self, precision: str, gpu: str | None = None, view: str = "plans") -> Doc | None:
        """Return the plan of a precision on a GPU (by default the leading one) in `plans` or `same_deadline`."""
        target_gpu = self.gpu if gpu is None else gpu
        for plan in self.doc.get(view) or ():
            if plan["precision"] == precision and plan["gpu"] == target_gpu:
                match: Doc = plan
                return match
        return None

    def lacks(self, gpu: str) -> Doc | None:
        """Return the row about the requested precision if a GPU does not support it, else None."""
        rows = self.doc.get("unsupported") or ()
        return next((row for row in rows if row["precision"] == self.asked and row.get("gpu") == gpu), None)

    def unsupported(self, gpu: str | None = None) -> list[Doc]:
        """Return the precisions that a GPU (by default the leading one) does not support, each with the reason."""
        gpus = (None, self.gpu if gpu is None else gpu)
        return [row for row in self.doc.get("unsupported") or () if row.get("gpu") in gpus]

    def asked_on(self, gpu: str | None = None) -> str:
        """Return the precision to show for a GPU: the requested one, or its best alternative if it lacks that."""
        lacking = self.lacks(self.gpu if gpu is None else gpu)
        return str((lacking or {}).get("instead") or self.asked)

    def plans(self, gpu: str | None = None, view: str = "plans") -> list[Doc]:
        """Return all plans of a GPU, lowest precision first."""
        target_gpu = self.gpu if gpu is None else gpu
        own = [plan for plan in self.doc.get(view) or () if plan["gpu"] == target_gpu]
        return sorted(own, key=lambda plan: SHOWN.index(plan["precision"]) if plan["precision"] in SHOWN else 99)

    def fitting(self, gpu: str | None = None, view: str = "plans") -> list[Doc]:
        """Return the plans of a GPU that fit."""
        return [plan for plan in self.plans(gpu, view) if plan["fits"]]

    @property
    def answer(self) -> Doc | None:
        """The plan of the requested precision on the leading GPU, if it fits."""
        plan = self.plan(self.asked)
        return plan if plan is not None and plan["fits"] else None

    def lead_metric(self, view: str = "plans") -> str:
        """Return the figure by which a view is compared: cost if one of its plans has one, else GPU-hours."""
        return COST if any(plan[COST] for plan in self.fitting(view=view)) else "gpu_hours"

    def references(self) -> list[str]:
        """Return precisions to compare the requested one with, BF16 and TF32 first.

        Strict FP32 comes last, or third if BF16 or a narrower precision was requested.
        """
        fitting = {plan["precision"] for plan in self.fitting()}
        order = ("bf16", "tf32", "fp16", "fp8", "fp32")
        if self.asked in ("fp8", "mxfp8", "nvfp4", "bf16"):
            order = ("bf16", "tf32", "fp32", "fp8", "fp16")
        return [name for name in order if name in fitting and name != self.asked]

    def untrained(self) -> set[str]:
        """Return precisions of the leading GPU that were shown to fail in training."""
        rows = self.doc.get("parity") or ()
        return {row["precision"] for row in rows if row["gpu"] == self.gpu and row.get("untrained")}

    def is_risky(self, plan: Doc) -> bool:
        """Return whether a plan runs out of memory with a higher probability than the question allows."""
        risk, allowed = plan.get("memory_risk"), allowed_memory_risk(self.doc)
        return bool(plan["fits"]) and risk is not None and allowed is not None and risk > allowed

    def is_reference(self, plan: Doc) -> bool:
        """Return whether a plan is shown only as a reference: strict FP32, unless it was requested."""
        return bool(plan["precision"] == "fp32" and self.asked != "fp32")

    def _no_rivals(self) -> set[str]:
        """Return precisions that the headline leaves out: their plans are risky, but the requested one's is not."""
        if self.answer is None or self.is_risky(self.answer):
            return set()
        return {plan["precision"] for plan in self.plans() if self.is_risky(plan)}

    @property
    def narrowest(self) -> str:
        """The narrowest precision that fits, is as safe as the requested one and was not shown to fail in training."""
        candidates = {plan["precision"] for plan in self.fitting()} - self.untrained() - self._no_rivals()
        return next((name for name in SHOWN if name in candidates), self.asked)

    def compared(self, metric: str) -> list[str]:
        """Return precisions with which the headline compares the requested one, in addition to the narrowest.

        There are at most two, and strict FP32 only if no other precision precedes it.
        """
        names: list[str] = []
        no_rivals = self._no_rivals() | {self.narrowest}
        for name in self.references():
            comparable = name not in no_rivals and self.saving(metric, name) is not None
            if comparable and (name != "fp32" or not names) and len(names) < 2:
                names.append(name)
        return names

    def saving(
        self, metric: str, frm: str, *, to: str | None = None, view: str = "same_gpus", gpu: str | None = None
    ) -> Doc | None:
        """Return the saving in a metric by one precision (default: the requested one) over another, from the draws."""
        target_gpu = self.gpu if gpu is None else gpu
        for saving in self.doc.get("savings") or ():
            key = (saving["view"], saving["metric"], saving["from"], saving["to"])
            if key == (view, metric, frm, to or self.asked_on(gpu)) and saving.get("gpu", target_gpu) == target_gpu:
                match: Doc = saving
                return match
        return None

    def unpriced(self) -> list[str]:
        """Return GPUs on which the requested precision fits without a known cost, if other GPUs have a cost."""
        asked = [plan for gpu in self.gpus if (plan := self.plan(self.asked, gpu)) is not None and plan["fits"]]
        return [plan["gpu"] for plan in asked if not plan[COST]] if any(plan[COST] for plan in asked) else []

    def probability(self, target: str) -> float | None:
        """Return the probability that the answer meets the `deadline` or `budget`; None if there is no such target."""
        value = ((self.answer or {}).get("probability") or {}).get(target)
        return None if value is None else float(value)

    @property
    def over_budget(self) -> bool:
        """Whether the high figure of the cost is above the budget that was given."""
        budget, cost = self.given("budget"), (self.answer or {}).get(COST)
        return bool(budget and cost and cost["high"] > float(budget))

    @property
    def confidence(self) -> float:
        """Minimum probability at which a target counts as met; the schema's default if the document states none."""
        return float(self.doc.get("confidence", DEFAULT_CONFIDENCE))

    @property
    def curve(self) -> list[Doc]:
        """Points of the requested precision over counts of the leading GPU, in increasing order."""
        return [point for point in self.doc.get("curve") or () if point["gpu"] == self.gpu]

    @property
    def gpus_allowed(self) -> float:
        """Number of the leading GPU that the cap on power allows; infinite without a cap."""
        caps = [cap["gpus_allowed"] for cap in self.doc.get("power_caps") or () if cap["gpu"] == self.gpu]
        return float(min(caps, default=math.inf))

    def evidence_for(self, metric: str, gpu: str | None = None) -> list[Doc]:
        """Return the sources behind a figure, best kind first, without those of other GPUs."""
        names = RESTS_ON.get(metric, (metric,))
        target_gpu = self.gpu if gpu is None else gpu
        sources = [
            source
            for source in self.doc.get("evidence") or ()
            if source.get("gpu") in (None, target_gpu)
            and any(used == name or used.startswith(name + ".") for used in source["used_in"] for name in names)
        ]
        return sorted(sources, key=lambda source: rung_of(source["kind"]))

    def evidence(self, evidence_id: str) -> Doc | None:
        """Return the source with this id, or None."""
        return next((source for source in self.doc.get("evidence") or () if source["id"] == evidence_id), None)

    def kinds_for(self, metric: str) -> list[str]:
        """Return the kinds of evidence behind a figure, best first."""
        return list(dict.fromkeys(source["kind"] for source in self.evidence_for(metric)))

    @property
    def model_name(self) -> str:
        """The model's name in its usual spelling; the name of a user's own file or folder stays unchanged."""
        name = clean(self.doc["model"].get("name"))
        own = self.evidence(f"model:{name}")
        return name if own is not None and own["kind"] == "given" else pretty_slug(name)


def memory_items(plan: Doc) -> Doc:
    """Return the items of the peak memory per GPU at mid, with their total as a number."""
    items: Doc = plan["memory_gib"]
    return items | {"total": items["total"]["mid"]}


def memory_range(plan: Doc) -> Any:
    """Return the peak memory per GPU with its range."""
    return plan["memory_gib"]["total"]


def rung_of(kind: str) -> int:
    """Return the rank of a kind of evidence; 0 is the best."""
    return LADDER.index(kind) if kind in LADDER else len(LADDER)
