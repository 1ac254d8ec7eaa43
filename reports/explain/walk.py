"""Trace a number of an answer to its inputs and their sources, as a tree whose arithmetic adds up.

The middle of a range is the geometric mean of the draws, so the middle of a product is the product of its factors'
middles. This does not hold for sums; any difference becomes a separate node. Each line can be checked with a
calculator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isclose
from typing import Any

from planner.costs.rounding import LUMP_SUM, exact, product_usd
from planner.errors import UsageError
from planner.lazy import dataclass
from planner.question.usual_names import named_among
from planner.units import DAY_S, HOUR_S, KWH_J, MWH_J, TERA
from reports.document.facts import Doc, Facts
from reports.document.redact import left_out
from reports.explain.carbon import UNKNOWN_POWER, carbon_node, embodied_node, market_node, score_node
from reports.explain.collectives import collective_nodes
from reports.explain.derivation import Node, derived, ends_of
from reports.explain.energy import (
    AT_THE_PEAK,
    building_node,
    constant_power_node,
    gpu_node,
    mean_power_node,
    peak_power_node,
    power_node,
)
from reports.explain.goodput import goodput_node
from reports.explain.inputs import batch_node, input_node
from reports.explain.products import attention_node, narrow_words, product_nodes
from reports.explain.work import beside_matrices, flop_per_param
from reports.page.build import checked
from reports.text.language import Words, words_for
from reports.text.names import pretty_gpu

EXPLAIN_SCHEMA = "mpplan.explain/1"
HOURS_PER_DAY = DAY_S / HOUR_S
KWH_PER_MWH = MWH_J / KWH_J
NOTHING = 1e-9
"""Share of a step below which an item counts as rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The derivation of one figure of a plan."""

    figure: str
    precision: str
    gpu: str
    root: Node
    sources: tuple[Doc, ...]
    """The evidence rows to which the tree refers."""


class Derivation:
    """The derivation trees of one plan."""

    def __init__(self, facts: Facts, plan: Doc, words: Words) -> None:
        self._facts = facts
        self._plan = plan
        self._words = words

    def figures(self) -> dict[str, Callable[[], Node]]:
        """Return every figure that can be derived, by name."""
        return {
            "cost": self.cost, "gpu-hours": self.gpu_hours, "time": self.time, "steps": self.steps,
            "tokens": self.tokens, "step": self.step, "goodput": self.goodput, "throughput": self.throughput,
            "rate": self.rate, "mfu": self.mfu, "memory": self.memory, "energy": self.energy, "power": self.power,
            "carbon": self.carbon, "embodied": self.embodied,
            "carbon-market": lambda: market_node(self._plan, self.energy(), self._ids("carbon_market_tco2e")),
            "sci": lambda: score_node(self._plan, self.carbon(), self.embodied()),
            "mean-power": lambda: mean_power_node(self._plan, self.energy(), self.time()),
            "peak-power": lambda: peak_power_node(self._plan, self._ids(*AT_THE_PEAK)),
        }  # fmt: skip

    _made = staticmethod(derived)

    def _ids(self, *figures: str, whole: bool = False) -> tuple[str, ...]:
        """Return the ids of sources for any of the figures in this plan's precision.

        Args:
            figures: names as in `used_in`, with an item (`step_s.matmul`) or without.
            whole: only sources of a figure as a whole, not sources of one of its items.
        """
        sources = self._facts.evidence_for(figures[0].partition(".")[0], self._plan["gpu"])
        ids = []
        for source in sources:
            names = set(source["used_in"])
            of_item = any(name.startswith(f"{figure}.") for name in names for figure in figures)
            precisions = source.get("precisions") or (self._plan["precision"],)
            if names & set(figures) and not (whole and of_item) and self._plan["precision"] in precisions:
                ids.append(source["id"])
        return tuple(ids)

    # the run

    def tokens(self) -> Node:
        """Tokens of the run, derived from the parameters if they were not given; images for an image model."""
        if self._facts.sees_images:
            return input_node(self._facts, "samples", "Images", "images")
        tokens, params = float(self._facts.given("tokens") or 0), self._facts.doc["model"]["params_total"]
        if self._facts.source_of("tokens") != "default" or not tokens:
            return input_node(self._facts, "tokens", "Tokens", "tokens")
        ids = self._ids("params_total")
        children = [
            Node(label="Parameters", value=params, note="counted from the model's shape", evidence=ids),
            Node(label="Tokens per parameter", value=tokens / params, note=str(self._note("tokens"))),
        ]
        return self._made("Tokens", tokens, "tokens", "parameters × tokens per parameter", "product", children)

    @property
    def _unit(self) -> str:
        return self._facts.amount_quantity

    def _note(self, name: str) -> str:
        entry = self._facts.doc["question"].get(name) or {}
        return str(entry.get("note") or entry.get("source") or "")

    def batch_tokens(self, power: int = 1) -> Node:
        """Tokens or images per step."""
        if self._facts.sees_images:
            return batch_node(self._facts, self._plan, "Images per step", "images", power)
        batch = batch_node(self._facts, self._plan, "Sequences per step")
        length = input_node(self._facts, "seq_len", "Tokens per sequence")
        mean = self._facts.doc.get("tokens_per_sequence")
        if mean and mean != length.value:
            length = Node(label="Tokens per sequence, without padding", value=mean)
        size = (batch.value or 0.0) * (length.value or 0.0)
        return self._made(
            "Tokens per step", size, "tokens", "sequences × length", "product", [batch, length], power=power
        )

    def steps(self) -> Node:
        """Number of steps of the run."""
        tokens, batch = self.tokens(), self.batch_tokens(power=-1)
        if not (tokens.value and batch.value):
            return Node(label="Steps", value=None)
        exact = tokens.value / batch.value
        rounding = Node(label="Rounded up to whole steps", value=ceil(exact) / exact)
        children = [tokens, batch] if exact.is_integer() else [tokens, batch, rounding]
        formula = f"{self._unit} ÷ {self._unit} per step" + ("" if exact.is_integer() else ", rounded up")
        return self._made("Steps", float(ceil(exact)), "steps", formula, "product", children)

    def step(self) -> Node:
        """Time of a step, item by item."""
        plan = self._plan
        talking = {row["item"] for row in plan.get("collectives", ())}  # shown even if compute hides all of it
        items = [
            self._item(name, size)
            for name, size in plan["step_s"].items()
            if name != "total" and (size > NOTHING * plan["step_s"]["total"] or name in talking)
        ]  # fmt: skip
        stated = plan["step_range_s"] or plan["step_s"]["total"]
        ids = self._ids("step_s", whole=True)
        return self._made("Step time", stated, "s", "sum of its items", "sum", items, evidence=ids)

    def _item(self, name: str, size: float) -> Node:
        """Return one item of a step, split by kernel or collective if the plan lists them."""
        label, ids = self._words.name("step", name), self._ids(f"step_s.{name}")
        if name == "matmul" and self._plan.get("products"):
            return self._products(size)
        if name == "attention":
            return attention_node(self._plan, label, ids, self._facts.evidence)
        collectives = collective_nodes(self._plan, name)
        if collectives:
            return self._made(label, size, "s", "sum of its messages", "sum", list(collectives), evidence=ids)
        return Node(label=label, value=size, unit="s", evidence=ids)

    def _products(self, size: float) -> Node:
        """Return the matrix products of a step, each by its shape."""
        return self._made(self._words.name("step", "matmul"), size, "s", "sum of its products", "sum",
                          list(product_nodes(self._plan, self._facts.evidence)), evidence=self._ids("step_s.matmul"),
                          note=narrow_words(self._plan))  # fmt: skip

    def goodput(self, power: int = 1) -> Node:
        """Share of the hours that advances the training."""
        return goodput_node(self._plan, self._ids("goodput_ratio"), power)

    def time(self) -> Node:
        """Duration in days."""
        children = [
            self.steps(),
            self.step(),
            self.goodput(power=-1),
            Node(label="Seconds per day", value=DAY_S, power=-1),
        ]
        return self._made("Time", self._plan["duration_days"], "days",
                          "steps × step time ÷ goodput ÷ seconds per day", "product", children)  # fmt: skip

    def gpu_hours(self) -> Node:
        """GPU-hours of the run."""
        children = [self._gpus(), self.time(), Node(label="Hours per day", value=HOURS_PER_DAY)]
        return self._made("GPU-hours", self._plan["gpu_hours"], "GPU-hours", "GPUs × days × 24", "product", children)

    def _gpus(self, power: int = 1) -> Node:
        return input_node(self._facts, "gpus", "GPUs", value=float(self._plan["gpus"]), power=power)

    # money, energy, carbon

    def cost(self) -> Node:
        """Cost, line by line."""
        plan = self._plan
        if plan["cost_usd"] is None:
            redacted = "prices" in left_out(self._facts.doc)
            why = "prices were left out of this copy" if redacted else "no price was found; see the gaps"
            return Node(label="Cost", value=None, note=why)
        lines = [self._line(line) for line in plan["cost_lines"]]
        if len(lines) == 1 and lines[0].value == plan["cost_usd"]["mid"]:
            return replace(lines[0], label=f"Cost: {lines[0].label}")
        return self._made("Cost", plan["cost_usd"], "USD", "sum of its lines", "sum", lines)

    def _line(self, line: Doc) -> Node:
        if line["children"]:
            parts = [self._line(child) for child in line["children"]]
            return self._made(line["label"], line["usd"], "USD", "sum of its lines", "sum", parts)
        price = line["unit_price_usd"]
        if line["quantity"] is None or price is None:
            return self._made(line["label"], line["usd"], "USD", "", "", [], evidence=tuple(line["evidence_ids"]))
        if line["unit"] == LUMP_SUM:
            return self._made(line["label"], line["usd"], "USD", "", "", [], evidence=tuple(line["evidence_ids"]))
        children = [
            self._quantity(line),
            Node(label=f"Price per {line['unit']}", **ends_of(price), unit="USD",
                 note=self._note(self._facts.price_input(self._plan["gpu"])) if line["id"] == "gpu_rental" else "",
                 evidence=tuple(line["evidence_ids"])),
        ]  # fmt: skip
        usd, formula = line["usd"], f"{children[0].label.lower()} × price"
        if product_usd(line["quantity"], price["mid"]) != exact(usd["mid"]):  # of an earlier version, not in cents
            return self._made(line["label"], usd, "USD", formula, "product", children)
        return Node(label=line["label"], **ends_of(usd), unit="USD", formula=f"{formula}, to the cent", how="product",
                    children=tuple(children))  # fmt: skip

    def _quantity(self, line: Doc) -> Node:
        known = {"gpu_rental": self.gpu_hours, "gpu_owned": self.gpu_hours, "electricity": self._kwh}
        node = known[line["id"]]() if line["id"] in known else None
        if node is not None and node.value is not None and isclose(node.value, line["quantity"], rel_tol=1e-6):
            return node
        return Node(label="Quantity", value=line["quantity"], unit=line["unit"] or "")

    def _kwh(self) -> Node:
        energy = self.energy()
        scale = Node(label="kWh per MWh", value=KWH_PER_MWH)
        stated = (energy.value or 0.0) * KWH_PER_MWH
        return self._made("Energy in kWh", stated, "kWh", "energy × 1,000", "product", [energy, scale])

    def energy(self) -> Node:
        """Energy at the building's meter."""
        items = self._plan["energy_items_mwh"]
        if items is None or self._plan["energy_mwh"] is None:
            return Node(label="Energy", value=None, unit="MWh", note=UNKNOWN_POWER)
        children = [self._energy_item(name, items) for name in items if name != "total"]
        return self._made("Energy", self._plan["energy_mwh"], "MWh", "sum of its items", "sum", children)

    def _energy_item(self, name: str, items: Doc) -> Node:
        if name == "gpu":
            return gpu_node(items[name], self.gpu_hours(), self.power())
        label, ids = self._words.name("energy", name), self._ids(f"energy_items_mwh.{name}")
        if name == "pue_overhead":
            return building_node(label, items, self._facts.given("pue"), self._note("pue"), ids)
        return constant_power_node(name, label, items[name], self._plan["gpu_hours"]["mid"], ids)

    def power(self) -> Node:
        """Mean board power of a GPU while it trains."""
        return power_node(self._plan, self._ids("energy_items_mwh.gpu"))

    def carbon(self) -> Node:
        """Location-based carbon."""
        ids = self._ids("carbon_tco2e.grid_factor")
        return carbon_node(self._plan, self.energy(), self._facts.given("grid"), self._note("grid"), ids)

    def embodied(self) -> Node:
        """The run's share of the carbon of making its GPUs."""
        return embodied_node(self._plan, self.gpu_hours(), self._ids("embodied_tco2e"))

    # rates and memory

    def throughput(self) -> Node:
        """Steady-state tokens or images per second and GPU."""
        name = "samples_per_s_per_gpu" if self._facts.sees_images else "tokens_per_s_per_gpu"
        children = [self.batch_tokens(), replace(self.step(), power=-1), self._gpus(power=-1)]
        return self._made("Throughput per GPU", self._plan[name], f"{self._unit}/s",
                          f"{self._unit} per step ÷ step time ÷ GPUs", "product", children)  # fmt: skip

    def rate(self) -> Node:
        """Model TFLOP per second and GPU."""
        if self._facts.sees_images:
            return self._image_rate()
        flop = self._plan["tflops_per_gpu"]["mid"] * TERA / self._plan["tokens_per_s_per_gpu"]["mid"]
        params = self._facts.doc["model"]["matrix_params_active"]
        per_param = flop_per_param(self._facts.given("method"))
        if per_param is None:
            return self._per_tflop(Node(label="Work per token, not all layers backward", value=flop, unit="FLOP"))
        matrices = [Node(label="Matrix parameters used per token", value=params),
                    Node(label="Operations per parameter and token", value=per_param)]  # fmt: skip
        other_work = beside_matrices(self._facts.given("method"))
        parts = [
            self._made("Matrices", per_param * params, "FLOP", f"{per_param:.0f} × parameters", "product", matrices),
            Node(label=f"{other_work.capitalize()}, causal half", value=flop - per_param * params, unit="FLOP"),
        ]
        return self._per_tflop(self._made("Work per token", flop, "FLOP", f"matrices + {other_work}", "sum", parts))

    def _per_tflop(self, work: Node, sample: str = "token") -> Node:
        children = [work, self.throughput(), Node(label="FLOP per TFLOP", value=TERA, power=-1)]
        return self._made("Rate per GPU", self._plan["tflops_per_gpu"], "TFLOP/s",
                          f"work per {sample} × {sample}s per second ÷ 10^12", "product", children)  # fmt: skip

    def _image_rate(self) -> Node:
        forward = self._facts.doc["model"]["flop_per_image"]
        work = [Node(label="Forward FLOP of an image", value=forward),
                Node(label="Forward and twice as much backward", value=3.0)]  # fmt: skip
        per_image = self._made("Work per image", 3.0 * forward, "FLOP", "3 × forward", "product", work)
        return self._per_tflop(per_image, "image")

    def mfu(self) -> Node:
        """Model FLOP utilisation (MFU)."""
        plan = self._plan
        peak = Node(label="Dense peak of the precision", value=plan["tflops_per_gpu"]["mid"] / plan["mfu"]["mid"],
                    unit="TFLOP/s", power=-1, evidence=self._ids("mfu.peak"))  # fmt: skip
        return self._made("MFU", plan["mfu"], "", "rate ÷ peak", "product", [self.rate(), peak])

    def memory(self) -> Node:
        """Peak memory of one GPU, item by item."""
        plan = self._plan
        items = [Node(label=self._words.name("memory", name), value=size, unit="GiB")
                 for name, size in plan["memory_gib"].items() if name != "total" and size > 0]  # fmt: skip
        return self._made("Memory", plan["memory_gib"]["total"], "GiB", "sum of its items", "sum", items,
                          note=f"of {plan['memory_capacity_gib']:.4g} GiB",
                          evidence=self._ids("memory_gib"))  # fmt: skip


ALIASES = {
    "cost_usd": "cost", "price": "cost", "money": "cost", "duration": "time", "duration_days": "time", "days": "time",
    "gpu_hours": "gpu-hours", "hours": "gpu-hours", "energy_mwh": "energy", "carbon_tco2e": "carbon", "co2": "carbon",
    "step_s": "step", "memory_gib": "memory", "tokens_per_s_per_gpu": "throughput", "tflops_per_gpu": "rate",
    "goodput_ratio": "goodput", "carbon_market_tco2e": "carbon-market", "embodied_tco2e": "embodied",
    "sci_kg_per_run": "sci", "gpu_power_w": "power", "mean_power_mw": "mean-power", "peak_power_mw": "peak-power",
}  # fmt: skip
"""Aliases of the figures: keys of the document and everyday words."""

FIGURES = tuple(Derivation(None, {}, None).figures())  # type: ignore[arg-type]
"""Names that `mpplan explain` accepts."""


def explain(
    document: Any, figure: str, *, precision: str | None = None, gpu: str | None = None, name: str = "document"
) -> Explanation:
    """Derive a figure of a plan from its inputs.

    Args:
        document: an estimate (`mpplan.estimate/2`).
        figure: one of `FIGURES`, or a key of the document.
        precision: precision of the plan; default: the requested one.
        gpu: GPU of the plan, by id or short name; default: the leading one.
        name: name of the document in errors.

    Raises:
        InputFileError: the document is not an estimate.
        UsageError: the figure is unknown, or no plan fits for this precision and GPU.
    """
    canonical = ALIASES.get(figure.lower(), figure.lower())
    if canonical not in FIGURES:
        raise UsageError(f"no figure `{figure}`", hint=f"use one of {', '.join(FIGURES)}")
    facts, words = Facts(checked(document, name)), words_for("en")
    plan = _chosen(facts, precision or facts.asked, gpu or facts.gpu)
    facts.gpu = plan["gpu"]
    root = Derivation(facts, plan, words).figures()[canonical]()
    ids = list(dict.fromkeys(_evidence_ids(root)))
    rows = (facts.evidence(evidence_id) for evidence_id in ids)
    return Explanation(figure=canonical, precision=plan["precision"], gpu=plan["gpu"], root=root,
                       sources=tuple(row for row in rows if row is not None))  # fmt: skip


def _chosen(facts: Facts, precision: str, gpu: str) -> Doc:
    plan = facts.plan(precision.strip().lower(), named_among("gpu", gpu, facts.gpus) or gpu)
    if plan is None:
        available = dict.fromkeys(f"{row['precision']} on {row['gpu']}" for row in facts.doc["plans"])
        raise UsageError(f"the answer has no plan in {precision} on {gpu}", hint=f"it has {', '.join(available)}")
    if not plan["fits"]:
        hint = "choose another precision or GPU"
        raise UsageError(f"{precision} has no figures on {pretty_gpu(gpu)}: {plan['why_not']}", hint=hint)
    return plan


def _evidence_ids(node: Node) -> list[str]:
    return [*node.evidence, *(evidence_id for child in node.children for evidence_id in _evidence_ids(child))]
