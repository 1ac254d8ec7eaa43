"""Reading a document: the requested precision, the leading GPU, and lookups of plans, savings and sources."""

from __future__ import annotations

import math
from typing import Any

from planner.answer.leading import leading_gpu
from planner.evidence import EvidenceKind
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS
from reports.document.told import allowed_memory_risk
from reports.text.clean import clean
from reports.text.names import pretty_slug

Doc = dict[str, Any]
"""A part of the document: plain JSON values."""

LADDER = tuple(kind.value for kind in EvidenceKind)
"""Kinds of evidence, best first."""

SHOWN = tuple(reversed((*PRECISIONS, *EXTRA_PRECISIONS)))
"""Precisions in the order of the report, lowest first."""

COST = "cost_usd"
DURATION = "duration_days"
ENERGY = "energy_mwh"
CARBON = "carbon_tco2e"
DEFAULT_CONFIDENCE = 0.8
"""Of `estimate`, and of a document that states none."""

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
"""Which ladder of units a metric is written with."""


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
"""Names in `used_in` that a figure rests on directly."""


class Facts:
    """A cleaned document, with the lookups that every section needs."""

    __slots__ = ("asked", "doc", "gpu", "gpus")

    def __init__(self, document: Doc) -> None:
        self.doc = document
        self.gpus: tuple[str, ...] = tuple(dict.fromkeys(plan["gpu"] for plan in document["plans"]))
        """GPUs of the answer, in its order."""
        self.asked = self._asked()
        """The precision that was asked for."""
        self.gpu = leading_gpu(document["plans"], self.asked)
        """The GPU of the first screen: the cheapest on which the asked precision fits, without prices the first."""

    @property
    def sees_images(self) -> bool:
        """Whether the model is trained on images instead of tokens."""
        return bool(self.doc["model"].get("kind") == "image")

    def worded(self, tokens: str, images: str) -> str:
        """The key of a text about tokens or sequences, or of that about images."""
        return images if self.sees_images else tokens

    @property
    def amount(self) -> float | None:
        """Tokens of the run, or images of a model that sees them; None where the document does not say."""
        given = self.given("samples" if self.sees_images else "tokens")
        return float(given) if isinstance(given, int | float) and given else None

    @property
    def amount_quantity(self) -> str:
        """Ladder of units of `amount`."""
        return "images" if self.sees_images else "tokens"

    def given(self, name: str) -> Any:
        """The value of an input of the question, or None."""
        entry = self.doc["question"].get(name)
        return entry.get("value") if isinstance(entry, dict) else None

    def source_of(self, name: str) -> str:
        """Where an input came from (flag, file, default …); empty if there is no such input."""
        entry = self.doc["question"].get(name)
        return clean(entry.get("source")) if isinstance(entry, dict) else ""

    def _asked(self) -> str:
        given = self.given("precision")
        first = given[0] if isinstance(given, list) and given else given
        there = [plan["precision"] for plan in self.doc["plans"]]
        for name in (first, *(p["policy"] == first and p["precision"] for p in self.doc["plans"])):
            if name in there:
                return str(name)
        return next((name for name in SHOWN if name in there), there[0] if there else "")

    def plan(self, precision: str, gpu: str | None = None, view: str = "plans") -> Doc | None:
        """The plan of a precision on a GPU (the leading one by default) in `plans` or `same_deadline`."""
        target_gpu = self.gpu if gpu is None else gpu
        for plan in self.doc.get(view) or ():
            if plan["precision"] == precision and plan["gpu"] == target_gpu:
                match: Doc = plan
                return match
        return None

    def lacks(self, gpu: str) -> Doc | None:
        """Where a GPU lacks the requested precision: what is said of it."""
        rows = self.doc.get("unsupported") or ()
        return next((row for row in rows if row["precision"] == self.asked and row.get("gpu") == gpu), None)

    def unsupported(self, gpu: str | None = None) -> list[Doc]:
        """The precisions that a GPU (the leading one by default) does not support, each with the reason."""
        here = (None, self.gpu if gpu is None else gpu)
        return [row for row in self.doc.get("unsupported") or () if row.get("gpu") in here]

    def asked_on(self, gpu: str | None = None) -> str:
        """The precision that a GPU is asked for: the requested one, or its best where it lacks that."""
        lacking = self.lacks(self.gpu if gpu is None else gpu)
        return str((lacking or {}).get("instead") or self.asked)

    def plans(self, gpu: str | None = None, view: str = "plans") -> list[Doc]:
        """All plans of a GPU, lowest precision first."""
        target_gpu = self.gpu if gpu is None else gpu
        own = [plan for plan in self.doc.get(view) or () if plan["gpu"] == target_gpu]
        return sorted(own, key=lambda plan: SHOWN.index(plan["precision"]) if plan["precision"] in SHOWN else 99)

    def fitting(self, gpu: str | None = None, view: str = "plans") -> list[Doc]:
        """The plans that fit."""
        return [plan for plan in self.plans(gpu, view) if plan["fits"]]

    @property
    def answer(self) -> Doc | None:
        """The plan of the requested precision on the leading GPU, if it fits."""
        plan = self.plan(self.asked)
        return plan if plan is not None and plan["fits"] else None

    def lead_metric(self, view: str = "plans") -> str:
        """The figure that a view is compared by: cost where one of its plans has one, else GPU-hours."""
        return COST if any(plan[COST] for plan in self.fitting(view=view)) else "gpu_hours"

    def references(self) -> list[str]:
        """Precisions to compare the requested one with, BF16 and TF32 first.

        Strict FP32 is the last, or the third where BF16 or a narrower one was asked for.
        """
        there = {plan["precision"] for plan in self.fitting()}
        order = ("bf16", "tf32", "fp16", "fp8", "fp32")
        if self.asked in ("fp8", "mxfp8", "nvfp4", "bf16"):
            order = ("bf16", "tf32", "fp32", "fp8", "fp16")
        return [name for name in order if name in there and name != self.asked]

    def untrained(self) -> set[str]:
        """Precisions of the leading GPU that training showed to train no model."""
        rows = self.doc.get("parity") or ()
        return {row["precision"] for row in rows if row["gpu"] == self.gpu and row.get("untrained")}

    def is_risky(self, plan: Doc) -> bool:
        """Whether a plan runs out of memory with a probability above the one that the question allows."""
        risk, allowed = plan.get("memory_risk"), allowed_memory_risk(self.doc)
        return bool(plan["fits"]) and risk is not None and allowed is not None and risk > allowed

    def is_reference(self, plan: Doc) -> bool:
        """Whether a plan is shown as a reference only: strict FP32, unless it was requested."""
        return bool(plan["precision"] == "fp32" and self.asked != "fp32")

    def _no_rivals(self) -> set[str]:
        """Precisions that the headline leaves out: their plans are risky while the requested one's is not."""
        if self.answer is None or self.is_risky(self.answer):
            return set()
        return {plan["precision"] for plan in self.plans() if self.is_risky(plan)}

    @property
    def narrowest(self) -> str:
        """The narrowest precision that fits, is as safe as the requested one and was not shown to train no model."""
        there = {plan["precision"] for plan in self.fitting()} - self.untrained() - self._no_rivals()
        return next((name for name in SHOWN if name in there), self.asked)

    def compared(self, metric: str) -> list[str]:
        """Precisions that the headline compares the requested one with, beside the narrowest.

        Two at most, and strict FP32 only where no other comes before it.
        """
        told: list[str] = []
        no_rivals = self._no_rivals() | {self.narrowest}
        for name in self.references():
            there = name not in no_rivals and self.saving(metric, name) is not None
            if there and (name != "fp32" or not told) and len(told) < 2:
                told.append(name)
        return told

    def saving(
        self, metric: str, frm: str, *, to: str | None = None, view: str = "same_gpus", gpu: str | None = None
    ) -> Doc | None:
        """How much less of a metric one precision (by default the requested one) needs than another, from the draws."""
        target_gpu = self.gpu if gpu is None else gpu
        for saving in self.doc.get("savings") or ():
            key = (saving["view"], saving["metric"], saving["from"], saving["to"])
            if key == (view, metric, frm, to or self.asked_on(gpu)) and saving.get("gpu", target_gpu) == target_gpu:
                match: Doc = saving
                return match
        return None

    def unpriced(self) -> list[str]:
        """GPUs on which the requested precision fits at no known cost, where it has one on others."""
        asked = [plan for gpu in self.gpus if (plan := self.plan(self.asked, gpu)) is not None and plan["fits"]]
        return [plan["gpu"] for plan in asked if not plan[COST]] if any(plan[COST] for plan in asked) else []

    def probability(self, target: str) -> float | None:
        """Probability that the answer meets the `deadline` or the `budget`; None where none was asked."""
        value = ((self.answer or {}).get("probability") or {}).get(target)
        return None if value is None else float(value)

    @property
    def confidence(self) -> float:
        """Least probability at which a target counts as met; without one, the schema's default."""
        return float(self.doc.get("confidence", DEFAULT_CONFIDENCE))

    @property
    def curve(self) -> list[Doc]:
        """The requested precision over numbers of the leading GPU, in rising order."""
        return [point for point in self.doc.get("curve") or () if point["gpu"] == self.gpu]

    @property
    def gpus_allowed(self) -> float:
        """How many of the leading GPU the cap on power allows; infinite without a cap."""
        caps = [cap["gpus_allowed"] for cap in self.doc.get("power_caps") or () if cap["gpu"] == self.gpu]
        return float(min(caps, default=math.inf))

    def evidence_for(self, metric: str, gpu: str | None = None) -> list[Doc]:
        """Sources that a figure is based on, best kind first, without those of other GPUs."""
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
        """A source by its id."""
        return next((source for source in self.doc.get("evidence") or () if source["id"] == evidence_id), None)

    def kinds_for(self, metric: str) -> list[str]:
        """Kinds of evidence behind a figure, best first."""
        return list(dict.fromkeys(source["kind"] for source in self.evidence_for(metric)))

    @property
    def model_name(self) -> str:
        """The model's name as people write it; that of a user's own file or folder as it is."""
        name = clean(self.doc["model"].get("name"))
        own = self.evidence(f"model:{name}")
        return name if own is not None and own["kind"] == "given" else pretty_slug(name)


def memory_items(plan: Doc) -> Doc:
    """Items of the peak per GPU at mid, with their total as a number."""
    items: Doc = plan["memory_gib"]
    return items | {"total": items["total"]["mid"]}


def memory_range(plan: Doc) -> Any:
    """The peak per GPU with its range."""
    return plan["memory_gib"]["total"]


def rung_of(kind: str) -> int:
    """Rank of a kind of evidence, 0 for the best."""
    return LADDER.index(kind) if kind in LADDER else len(LADDER)
