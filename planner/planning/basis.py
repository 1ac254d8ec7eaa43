"""Collect what an answer rests on: evidence with the figures it supports, assumptions, and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from planner.answer.plan import Plan, Unsupported
from planner.costs.prices import GpuPrice, Ledger, OwnedPrice, SiteFacts
from planner.errors import Message
from planner.evidence import Assumption, Estimate, Evidence, Gap, distinct_gaps
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.planning.case import Case
from planner.planning.commitments import bills_the_rest, commitment_warnings, machine_warnings
from planner.planning.inputs import batches_of
from planner.planning.surroundings import surrounding_assumptions
from planner.question.asked import InputValue
from planner.question.question import Question
from planner.rates.conditions import has_effect
from planner.rates.parameters import EVIDENCE_GROUPS, FIGURES
from planner.units import DAY_S, GIB, HOUR_S, MINUTE_S

_TIME = FIGURES["time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """The uses of one source, or of a group of sources reported together, across all cases."""

    group: str = ""
    """One of `EVIDENCE_GROUPS`; empty for a source that is reported separately."""
    members: dict[str, Evidence] = field(default_factory=dict)
    """Sources by id, in the order of their first use."""
    figures: set[str] = field(default_factory=set)
    terms: set[str] = field(default_factory=set)
    precisions: set[str] = field(default_factory=set)


class _Sources:
    """Collects every source once, with the figures, terms and precisions that it is used for.

    Sources of the same group and kind are merged into one, which names each of them with its range.
    """

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def add(
        self, evidence: Evidence, figures: Iterable[str], *, term: str = "", precision: str = "", group: str = ""
    ) -> None:
        """Record one use; an empty precision means all of them, an empty group means that the source stands alone."""
        group = group if evidence.id.startswith("parameter:") else ""  # the user's measurements stay separate
        key = f"parameters:{group}.{evidence.kind}" if group else evidence.id
        use = self._uses.setdefault(key, _Use(group=group))
        use.members.setdefault(evidence.id, evidence)
        use.figures.update(figures)
        use.terms.update([term] if term else [])
        use.precisions.add(precision)

    def collected(self, precisions: set[str]) -> tuple[Evidence, ...]:
        """Return the sources; one that is used for all `precisions` of the answer lists none of them."""
        all_precisions = {"", *precisions}
        return tuple(
            replace(
                _together(name, use.group, tuple(use.members.values())),
                used_in=tuple(sorted(use.figures)),
                terms=tuple(sorted(use.terms)),
                precisions=tuple(sorted(use.precisions)) if use.precisions < all_precisions - {""} else (),
            )
            for name, use in self._uses.items()
        )


def _together(name: str, group: str, members: tuple[Evidence, ...]) -> Evidence:
    """Merge the members of a group into one source that states each of them; an ungrouped source is unchanged."""
    if not group:
        return members[0]
    return replace(
        members[0],
        id=name,
        what=f"{EVIDENCE_GROUPS[group]} – {'; '.join(member.what for member in members)}",
        source="; ".join(dict.fromkeys(member.source for member in members)),
        date=max((member.date for member in members if member.date), default=None),
        public=all(member.public for member in members),
    )


def collect_evidence(cases: Iterable[Case], site: SiteFacts) -> tuple[Evidence, ...]:
    """Return every source used, once each, with the figures, terms and precisions that rest on it."""
    sources, precisions, billed = _Sources(), set(), False
    for case in cases:
        precision = case.policy.precision
        precisions.add(precision)
        sources.add(case.cluster.gpu.evidence, (*_TIME, "memory_gib", "mfu", "mfu.peak"))
        sources.add(case.policy.evidence, ("memory_gib", "step_s"), precision=precision)
        sources.add(
            case.recipe.optimizer.evidence,
            ("memory_gib", "memory_gib.optimizer_states", "step_s", "step_s.optimizer"),
        )
        if case.recipe.grad_compression is not None:
            sources.add(case.recipe.grad_compression.evidence, ("memory_gib", "step_s", "step_s.dp_comm"))
        if case.recipe.how.fine_tunes:
            sources.add(case.recipe.how.evidence, ("memory_gib", "step_s"))
        if case.recipe.model.evidence is not None:
            sources.add(case.recipe.model.evidence, (*_TIME, "memory_gib", "mfu", "params_total"))
        _add_rates(sources, case)
        for row in case.price.evidence:
            sources.add(row, ("cost_usd", "cost_usd.gpu_hour"))
        for row in case.ledger.evidence:
            sources.add(row, row.used_in)
        billed = billed or case.electricity_on
    for row in site.evidence(billed=billed):  # where rent includes electricity, no figure rests on its price
        sources.add(row, row.used_in or ("energy_mwh", "carbon_tco2e"))
    sources.add(site.pue_evidence, ("energy_items_mwh.pue_overhead",))
    sources.add(site.grid_evidence, ("carbon_tco2e.grid_factor",))
    return sources.collected(precisions)


def _add_rates(sources: _Sources, case: Case) -> None:
    for term in case.rates.terms.values():
        if has_effect(term, case.recipe, case.mid):
            for source in (term.evidence, *term.learned_evidence):
                sources.add(
                    source, term.family.used_in, term=term.name, precision=case.policy.precision,
                    group=term.family.evidence_group,
                )  # fmt: skip


def collect_gaps(question: Question, cases: Iterable[Case], site: SiteFacts) -> tuple[Gap, ...]:
    """Return the missing inputs: prices, GPU power, facts needed about the site, and embodied carbon if requested."""
    used = {case.cluster.gpu.id: case for case in cases}
    gaps = _price_gaps({gpu: case.price for gpu, case in used.items()})
    gaps += [case.ledger.owned.price.gap for case in used.values() if case.ledger.owned is not None]
    gaps += [Gap.of("power", gpu=gpu) for gpu, case in used.items() if case.cluster.gpu.tdp_w <= 0]
    if question.money.embodied:
        gaps += [Gap.of("embodied", gpu=gpu) for gpu, case in used.items() if case.ledger.embodied is None]
    gaps += site.gaps(billed=any(case.electricity_on for case in used.values()))
    return distinct_gaps(gap for gap in gaps if gap is not None)


def _price_gaps(prices: Mapping[str, GpuPrice]) -> list[Gap | None]:
    """Return the gap of each GPU's price; stale prices of some of the GPUs alone name them."""
    gaps = {gpu: price.gap for gpu, price in prices.items()}
    stale = {gpu: dict(gap.values) for gpu, gap in gaps.items() if gap is not None and gap.key == "price.stale"}
    if len(stale) < len(gaps):
        for gpu, values in stale.items():
            gaps[gpu] = Gap.of("price.stale_of", gpus=tuple(stale), as_of=values["as_of"], rows=values["rows"])
    return list(gaps.values())


def collect_warnings(
    question: Question, prices: Mapping[str, GpuPrice], ledgers: Mapping[str, Ledger], plans: Sequence[Plan] = ()
) -> tuple[Message, ...]:
    """Return warnings about prices: commitments, historic rows, vague dates, a borrowed range, an unused stand-in."""
    rows = [prices[cluster.gpu.id] for cluster in question.clusters]
    bound = [*commitment_warnings(rows, ledgers, plans), *machine_warnings(rows, plans)]
    like = question.money.price_like
    own = [price.gpu for price in rows if price.usd_per_gpu_h is not None and price.commitment != "owned"]
    idle = like is not None and bool(own) and not any(price.like for price in rows)
    bound += [Message.of("price.warning.like_unused", like=str(like), gpu=gpu) for gpu in own if idle]
    return tuple(dict.fromkeys([*(warning for price in rows for warning in price.warnings), *bound]))


def lacking_gaps(unsupported: list[Unsupported]) -> list[Gap]:
    """Return a gap for each GPU that is planned in another precision than the requested one, because it lacks that."""
    return [
        Gap.of(
            "precision", gpu=row.gpu, precision=row.precision.upper(), reason=row.reason, instead=row.instead.upper()
        )
        for row in unsupported
        if row.instead is not None
    ]


def extrapolated(case: Case, nodes: int) -> Message | None:
    """Return a warning that a plan has more nodes than the user measured the network on; None where it does not."""
    per_domain = case.cluster.near_gpus / case.cluster.gpus_per_node
    measured = round(float(case.mid.measured_domains) * per_domain)
    if not measured or nodes <= measured:
        return None
    spread = case.rates.terms["beyond_measured_ratio"].own_sd
    return Message.of(
        "warning.network_extrapolated", gpu=case.cluster.gpu.id, measured=measured, planned=nodes, spread=spread
    )


def on_hosts(case: Case, plan: Plan) -> Message | None:
    """Return a warning with the memory that the plan needs on each host, since host sizes are unknown; None if none."""
    assert plan.layout is not None
    needed_bytes = case.host_bytes(Layouts.of(plan.layout))
    if not needed_bytes:
        return None
    gpus_per_host = min(case.cluster.gpus_per_node, plan.gpus)
    return Message.of("warning.host_memory", gpu=plan.gpu, needed_gib=needed_bytes / GIB, gpus=gpus_per_host)


_DEFAULTS = {
    "tokens": "assumption.tokens",
    "examples": "assumption.examples",
    "lengths": "assumption.lengths",
    "global_batch": "assumption.global_batch",
    "seq_len": "assumption.seq_len",
    "gpu": "assumption.gpu",
    "gpus_per_node": "assumption.gpus_per_node",
    "deadline": "assumption.deadline",
    "optimizer": "assumption.optimizer",
    "stack": "assumption.stack",
    "mtp_layers": "assumption.mtp_layers",
    "loss": "assumption.loss",
    "memory_risk": "assumption.memory_risk",
    "confidence": "assumption.confidence",
    "max_gpus": "assumption.max_gpus",
    "method": "assumption.method",
    "network": "assumption.network",
}
"""Inputs whose default is an assumption worth reading, with the message that states it."""

_NOT_GIVEN = {
    "global_batch": ("default", "catalogue", "derived"), "gpus_per_node": ("default",), "loss": ("derived",),
}  # fmt: skip
"""Sources that count as not given by the user, for the inputs where they differ from `default` and `catalogue`. A batch
near the default and a loss chosen for lack of memory are derived; the node size of the catalogue is no assumption."""

_IMAGE_DEFAULTS = _DEFAULTS | {
    "global_batch": "assumption.images_per_step",
    "image_size": "assumption.image_size",
    "examples": "assumption.examples",
    "epochs": "assumption.epochs",
    "stack": "assumption.image_stack",
}
"""As `_DEFAULTS`, for vision models."""

_COMMITTED = {
    "spot": Assumption(id="spot", message=Message.of("assumption.spot"), input="commitment"),
    "1y": Assumption(id="commitment", message=Message.of("assumption.commitment_1y"), input="quote"),
    "3y": Assumption(id="commitment", message=Message.of("assumption.commitment_3y"), input="quote"),
}
"""The assumption behind each spot or committed price."""


def _owned(case: Case) -> Assumption:
    """State the hourly cost of the user's own GPU, and how it compares with renting one."""
    owned = case.ledger.owned
    assert owned is not None
    price, ratio = owned.price.usd_per_gpu_h, owned.utilisation_ratio
    lacking = price is not None and price.at_least  # the price of electricity is unknown
    message = Message.of(
        "assumption.own_without_electricity" if lacking else "assumption.own",
        gpu=case.cluster.gpu.id,
        hour=_hour_price(price),
        used="" if ratio is None else Message.of("assumption.own_used", utilisation_ratio=ratio),
        against=_against_renting(owned, lacking=lacking),
    )
    return Assumption(id="own", message=message, input="own")


def _against_renting(owned: OwnedPrice, *, lacking: bool) -> Message | str:
    """State from which utilisation owning costs less than renting, with the range of that figure."""
    rented, even = owned.rental_usd_per_gpu_h, owned.break_even_utilisation_ratio
    low, high = owned.break_even_low_ratio, owned.break_even_high_ratio
    if rented is None:
        return ""
    if even is None and low is not None and not lacking:
        return Message.of("assumption.own_perhaps_cheaper", rented_usd=rented, low_ratio=low)
    if even is None:
        return Message.of("assumption.own_never_cheaper", rented_usd=rented)
    values = {"rented_usd": rented, "utilisation_ratio": even}
    if lacking:
        return Message.of("assumption.own_cheaper_from_at_least", **values)
    if low is None or low == high:
        return Message.of("assumption.own_cheaper_from", **values)
    if high is None:
        return Message.of("assumption.own_cheaper_perhaps_never", **values, low_ratio=low)
    return Message.of("assumption.own_cheaper_within", **values, low_ratio=low, high_ratio=high)


def _like(case: Case) -> Assumption:
    """State that a price is borrowed from another GPU."""
    price = case.price
    message = Message.of(
        "assumption.price_like", gpu=price.gpu, like=str(price.like), hour=_hour_price(price.usd_per_gpu_h)
    )
    return Assumption(id="price_like", message=message, input="price_like")


def _idle(case: Case, plans: Iterable[Plan]) -> Assumption | None:
    """State that an offer bills more GPUs than the plan uses; None where it does not."""
    gpu, quote = case.cluster.gpu.id, case.ledger.quote
    used = next((plan.gpus for plan in plans if plan.gpu == gpu), 0)
    if quote is None or not 0 < used < quote.minimum_gpus:
        return None
    billed, days = quote.minimum_gpus, quote.minimum_term_h * HOUR_S / DAY_S
    if days > 0:
        message = Message.of("assumption.idle_for_term", gpu=gpu, gpus=billed, planned=used, days=days)
    else:
        message = Message.of("assumption.idle", gpu=gpu, gpus=billed, planned=used)
    return Assumption(id="idle", message=message, input="quote")


def _hour_price(price: Estimate | None) -> Message:
    if price is None:
        return Message.of("text.unknown_sum")
    return Message.of("text.at_least_usd" if price.at_least else "text.usd", usd=price.mid)


def _default(key: str, name: str, value: object, note: Message | None) -> Assumption:
    """State a default as an assumption, with its note in brackets."""
    value_shown = value if isinstance(value, int | float | str | Message) else str(value)
    message = Message.of(key, value=value_shown, note="" if note is None else Message.of("text.brackets", text=note))
    return Assumption(id=name, message=message, input=name)


def _differ(question: Question, plans: tuple[Plan, ...]) -> bool:
    """Return whether the plans of different GPUs have different batches."""
    return len({batch for batch, _ in batches_of(question, plans).values()}) > 1


def _batches(question: Question, plans: tuple[Plan, ...], entry: InputValue) -> Assumption:
    """State the batch of each GPU's plan, with the note about the default that these batches are close to."""
    key = "text.image_batch_on" if question.model.has_network else "text.batch_on"
    batches = tuple(
        Message.of(key, batch=batch, gpu=gpu, gpus=plan.gpus)
        for gpu, (batch, plan) in batches_of(question, plans).items()
    )
    note = "" if entry.note is None else Message.of("text.brackets", text=entry.note)
    return Assumption(
        id="global_batch", message=Message.of("assumption.batches", batches=batches, note=note), input="global_batch"
    )


def _short_names(question: Question) -> Iterator[Assumption]:
    """State which model or GPU was taken for a short name that fits several."""
    for name in ("model", "gpu"):
        entry = question.inputs.get(name)
        if entry is not None and entry.source == "derived" and entry.note is not None:
            yield Assumption(id=name, message=Message.of("assumption.usual_name", note=entry.note), input=name)


def _network_measured(cases: tuple[Case, ...]) -> bool:
    """Return whether the user measured the network, so that no plan takes its rate from the catalogue."""
    return bool(cases) and all(not case.rates.terms["nic_bytes_per_s"].rests_on for case in cases)


def collect_assumptions(
    question: Question, inputs: Mapping[str, InputValue], cases: tuple[Case, ...], plans: tuple[Plan, ...] = ()
) -> tuple[Assumption, ...]:
    """Return the defaults that the user could replace, and the assumptions of the model itself.

    Args:
        question: the question.
        inputs: every input as the answer shows it; a batch chosen near its default is the batch of the plan.
        cases: every precision on every GPU.
        plans: the plans on the same GPUs; plans on different GPUs may have different batches.
    """
    defaults = _IMAGE_DEFAULTS if question.model.has_network else _DEFAULTS
    given = {name: inputs[name] for name in defaults if name in inputs}
    assumptions = list(_short_names(question))
    assumptions += [
        _batches(question, plans, entry) if name == "global_batch" and _differ(question, plans)
        else _default(defaults[name], name, entry.value, entry.note)
        for name, entry in given.items()
        if entry.source in _NOT_GIVEN.get(name, ("default", "catalogue"))
        and not (name == "network" and _network_measured(cases))
    ]  # fmt: skip
    assumptions += dict.fromkeys(_owned(case) for case in cases if case.ledger.owned is not None)
    assumptions += dict.fromkeys(_like(case) for case in cases if case.price.like is not None)
    assumptions += dict.fromkeys(idle for idle in (_idle(case, plans) for case in cases) if idle is not None)
    assumptions += dict.fromkeys(surrounding_assumptions(cases, inputs))
    kinds = dict.fromkeys(case.price.commitment for case in cases if not bills_the_rest(case.price, case.ledger))
    assumptions += [_COMMITTED[kind] for kind in kinds if kind in _COMMITTED]
    if question.model.top_k > 1:
        once = any(case.recipe.moe_dispatcher == "deepep" for case in cases)
        text = Message.of("assumption.sent_once" if once else "assumption.sent_to_each")
        assumptions.append(Assumption(id="dispatcher", message=text, input="moe_dispatcher"))
    return (*assumptions, *(_model_assumptions(cases[0]) if cases else ()))


def _model_assumptions(case: Case) -> Iterator[Assumption]:
    """Yield the model's assumptions about the data, failures and stops."""
    rates = case.mid
    if case.recipe.model.has_network:
        yield Assumption(id="input_pipeline", message=Message.of("assumption.input_pipeline"))
    compression = case.recipe.grad_compression
    if compression is not None:
        text = Message.of(
            "assumption.grad_compression", name=compression.name, home=compression.home, source=compression.paper
        )
        yield Assumption(id="grad_compression", message=text, input="grad_compression")
    lengths = case.recipe.lengths
    if lengths is not None:
        text = Message.of("assumption.padding", mean=lengths.mean_tokens, seq_len=case.recipe.seq_len)
        yield Assumption(id="padding", message=text, input="packed")
    hours = float(f"{1 / float(rates.failures_per_gpu_h):.2g}")  # it is known to two digits at most
    restart_min = float(rates.restart_s) / MINUTE_S
    yield Assumption(id="goodput", message=Message.of("assumption.goodput", hours=hours, restart_min=restart_min))
    longer_ratio = case.rates.parameters.find("standstill_ratio").high
    yield Assumption(id="stops", message=Message.of("assumption.stops", longer_ratio=longer_ratio))
