"""`--gpu auto` and `--method auto`: choose the cheapest GPU, or pair of method and GPU, that meets the question.

With a budget as the only target, the choice is the plan that ends soonest within it, as it is for a named GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import Message, NoPlanError, UsageError
from planner.evidence import Assumption
from planner.lazy import dataclass
from planner.question.asked import Ask
from planner.question.cost_inputs import OWN, PRICE, QUOTE, RECORDS
from planner.question.inputs import BUDGET, DEADLINE, GPU, GPUS, MAX_GPUS, METHOD
from planner.question.parsers import AUTO, is_auto
from planner.records.home import user_path

if TYPE_CHECKING:
    from mpplan.api.network import MeasuredNetwork
    from mpplan.api.record_shelf import RecordShelf
    from planner.answer.plan import Answer
    from planner.calibration.document import ReadCalibration
    from planner.planning.case import Case, Measured
    from planner.question.question import Question
    from planner.rates.parameters import Parameters

AUTO_METHODS = ("sft", "lora", "qlora")
"""Methods among which `--method auto` takes the cheapest, ordered from the most to the fewest trained weights."""
SHOWN = 3
"""Number of GPUs in the answer: the cheapest, then the next in order."""
CHOICE_DRAWS = 301
"""Number of draws behind the checks of memory and targets."""
MOST_ASKED = 4
"""Number of GPUs whose required budget is worked out when none fits the budget: those with the cheapest peak FLOP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One pair of GPU and method that meets the question."""

    gpu: str
    method: str
    gpus: int
    usd: float
    """Cost at mid."""
    soon_enough_s: float
    """Duration at mid. For fine-tuning, all durations up to `SOON_ENOUGH_S` count as equally good."""
    current: bool
    """Whether the GPU has a current price, and not only a historic one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A question after its GPUs and its method were chosen."""

    ask: Ask
    notes: Mapping[str, Message]
    """A note for each input that was chosen, by the input's name."""


def is_open(ask: Ask) -> bool:
    """Return whether a question leaves its GPU or its method to the search."""
    return any(is_auto(ask.text(item)) for item in (GPU, METHOD))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """The records, the network and the calibration with which GPUs are compared, the same as behind the answer."""

    shelf: RecordShelf
    recorded: frozenset[str | None]
    """GPUs of which the shelf has records that can be used."""
    network: MeasuredNetwork | None
    parameters: Parameters | None

    def of(self, question: Question) -> Measured:
        """Return measured terms by GPU id, policy id and name, for the GPUs of a question."""
        from mpplan.api.measurements import ChosenRecords, chosen_records, measured_for
        from mpplan.api.network import recorded_networks, with_network

        gpus = [cluster.gpu.id for cluster in question.clusters if cluster.gpu.id in self.recorded]
        chosen = chosen_records(self.shelf, gpus) if gpus else ChosenRecords(records={})
        networks = recorded_networks(chosen.networks, named=self.shelf.named is not None)
        if self.network is not None:
            networks = {cluster.gpu.id: self.network for cluster in question.clusters}
        measured = measured_for(question, chosen, self.parameters)
        return with_network(question, measured, networks, self.parameters).measured


def _evidence(ask: Ask, calibration: ReadCalibration | None, network: MeasuredNetwork | None) -> _Evidence:
    from mpplan.api.measurements import recorded_gpus
    from mpplan.api.record_shelf import RecordShelf

    shelf = RecordShelf(ask.text(RECORDS), not_shipped_of=() if calibration is None else calibration.facts.gpus)
    parameters = None if calibration is None else calibration.parameters
    return _Evidence(shelf=shelf, recorded=recorded_gpus(shelf), network=network, parameters=parameters)


def settle(ask: Ask, calibration: ReadCalibration | None = None, network: MeasuredNetwork | None = None) -> Settled:
    """Choose what a question leaves open: the cheapest GPUs at mid among those that hold it safely.

    With a budget as the only target, choose the GPUs that end soonest within it. GPUs that have only historic prices
    come after those with a current price.

    Args:
        ask: a question with `auto` for its GPU or its method.
        calibration: what the user's own runs taught, if anything.
        network: the network that the user measured, if any.

    Raises:
        NoPlanError: no GPU with a price does what is asked.
        UsageError: an input is wrong.
    """
    methods = AUTO_METHODS if is_auto(ask.text(METHOD)) else (ask.text(METHOD),)
    gpus = tuple(_all_gpus(ask)) if is_auto(ask.text(GPU)) else (ask.text(GPU),)
    if is_auto(ask.text(GPU)):
        _check_prices_differ(ask)
    evidence = _evidence(ask, calibration, network)
    offers: list[Offer] = []
    looked_at: set[str] = set()
    refused: UsageError | None = None
    layouts: list[UsageError | None] = []
    for method in methods:
        for gpu in gpus:
            try:
                offers += _offers(_with(ask, method=method, gpu=gpu), looked_at, layouts, evidence)
            except UsageError as error:  # for example an input that does not apply to this method or GPU
                refused = error
    if refused is not None and not looked_at:
        raise refused
    _check_layouts(layouts)
    if not offers and len(gpus) == 1 and "," not in (gpus[0] or ""):
        settled = _with(ask, method=methods[-1], gpu=gpus[0])
        return Settled(ask=settled, notes={})  # the plan itself says what is short
    if not offers:
        raise NoPlanError(
            Message.of("error.no_offer", gpus=len(looked_at)),
            hint=_no_offer_hint(ask, methods, evidence),
        )
    soonest = ask.text(BUDGET) is not None and ask.text(DEADLINE) is None and ask.text(GPUS) is None
    offers.sort(key=lambda offer: (not offer.current, offer.soon_enough_s if soonest else 0.0, offer.usd))
    best = offers[0]
    shown = _shown_gpus(ask, [offer.gpu for offer in offers if offer.method == best.method], evidence)
    notes = {}
    if is_auto(ask.text(GPU)):
        able = len({offer.gpu for offer in offers})
        key = "note.gpu_auto_soonest" if soonest else "note.gpu_auto"
        notes[GPU.name] = Message.of(key, looked=len(looked_at), able=able, method=best.method)
    if is_auto(ask.text(METHOD)):
        tried = tuple(dict.fromkeys(offer.method for offer in offers))
        key = "note.method_auto_soonest" if soonest else "note.method_auto"
        notes[METHOD.name] = Message.of(key, methods=tried)
    settled = _with(ask, method=best.method, gpu=",".join(shown) if is_auto(ask.text(GPU)) else ask.text(GPU))
    return Settled(ask=settled, notes=notes)


def _check_layouts(layouts: list[UsageError | None]) -> None:
    """Raise the first refusal if the fixed layout was refused for every GPU and method."""
    refused = [error for error in layouts if error is not None]
    if refused and len(refused) == len(layouts):
        raise refused[0]


def _shown_gpus(ask: Ask, gpus: list[str], evidence: _Evidence) -> list[str]:
    """Return the GPUs to show, from the able ones in order of preference.

    The GPU of the user's quote is always among them, and so is a GPU of the records that the user named.
    """
    if not is_auto(ask.text(GPU)):
        return gpus[:1]
    shown, quoted = list(dict.fromkeys(gpus))[:SHOWN], _quoted(ask)
    if quoted is not None and quoted not in shown:
        shown.append(quoted)
    if evidence.shelf.named is not None and evidence.recorded.isdisjoint(shown):
        shown += [gpu for gpu in dict.fromkeys(gpus) if gpu in evidence.recorded][:1]
    return shown


def _check_prices_differ(ask: Ask) -> None:
    """Raise if the user gave a single price for every GPU, because the choice rests on differences between prices."""
    from pricing.contracts.own_file import SERVER, states_server_price

    own = ask.text(OWN)
    one_server = own is not None and states_server_price(user_path(own))
    if not one_server and ask.text(PRICE) is None:
        return
    what = f"{SERVER} in {own}" if one_server else PRICE.flag
    raise UsageError(
        f"{what} would be the price of every GPU, and {GPU.flag} {AUTO} compares their prices",
        hint=f"name the GPU that the price is for, or leave {what} out",
    )


def _quoted(ask: Ask) -> str | None:
    """Return the GPU of the quote that the question includes, or None without a quote."""
    from pricing.contracts.quote_file import quoted_gpu

    quote = ask.text(QUOTE)
    return None if quote is None else quoted_gpu(user_path(quote))


def _no_offer_hint(ask: Ask, methods: tuple[str | None, ...], evidence: _Evidence) -> Message:
    """Suggest what to change when no GPU meets the question: the smallest sufficient budget, or what else is left."""
    sufficient = min(
        (budget for method in methods for budget in _budgets(_with(ask, method=method, gpu=None), evidence)),
        default=None, key=lambda budget: budget[1],
    )  # fmt: skip
    if sufficient is not None:
        gpu, usd = sufficient
        return Message.of("hint.enough_for", gpu=gpu, flags=(Message.of("flag.budget_usd", budget_usd=math.ceil(usd)),))
    open_end = ask.text(GPUS) is None and ask.text(BUDGET) is None  # the default deadline counts
    given = [
        item for item in (DEADLINE, BUDGET, MAX_GPUS) if ask.text(item) is not None or (open_end and item is DEADLINE)
    ]
    tuned = [METHOD] if ask.text(METHOD) not in (None, "pretrain") else []
    flags = tuple(Message.of("flag.alone", input=item.name) for item in (*given, GPUS, *tuned))
    return Message.of("hint.no_offer", flags=flags)


def _budgets(ask: Ask, evidence: _Evidence) -> Iterator[tuple[str, float]]:
    """Yield the GPUs that only the budget excludes, each with the budget it would need, cheapest peak FLOP first."""
    from planner.planning.requested import asked_plan
    from planner.rates.terms import Draws

    if ask.text(BUDGET) is None:
        return
    cases: list[tuple[Question, Case]] = []
    for gpu in _all_gpus(ask) if is_auto(ask.text(GPU)) else (ask.text(GPU),):
        try:
            cases += _cases(_with(ask, method=None, gpu=gpu), evidence)
        except UsageError:  # an input that does not apply to this GPU
            continue
    cases.sort(key=lambda each: _usd_per_flop(each[1]))
    for question, case in cases[:MOST_ASKED]:
        try:
            asked_plan(question, case, Draws(count=CHOICE_DRAWS, seed=question.seed))
        except NoPlanError as error:
            if error.enough is not None and error.enough.safe:
                yield case.cluster.gpu.id, error.enough.usd
        except UsageError:  # a fixed layout that is impossible on this GPU
            continue


def _usd_per_flop(case: Case) -> float:
    """Return the price per FLOP at the peak rate."""
    usd_per_gpu_h = case.price.usd_per_gpu_h
    peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
    return math.inf if usd_per_gpu_h is None else usd_per_gpu_h.mid / peak


def with_chosen_inputs(answer: Answer, notes: Mapping[str, Message]) -> Answer:
    """Mark the inputs that were chosen as derived, with their notes, and add an assumption for each."""
    inputs = dict(answer.question)
    for name, note in notes.items():
        inputs[name] = replace(inputs[name], source="derived", note=note)
    assumed = tuple(Assumption(id=f"{name}_auto", message=note, input=name) for name, note in notes.items())
    return replace(answer, question=inputs, assumptions=(*assumed, *answer.assumptions))


def _all_gpus(ask: Ask) -> Iterator[str]:
    """Yield every GPU of the catalogue; for owned machines, only GPUs whose servers have a list price."""
    from planner.hardware.catalogue import load_gpus
    from pricing.contracts.own_file import server_rows

    able = load_gpus().keys() if ask.text(OWN) is None else server_rows().keys()
    return (gpu.id for gpu in load_gpus().values() if gpu.arch != "CPU" and gpu.id in able)


def _with(ask: Ask, *, method: str | None, gpu: str | None) -> Ask:
    """Return the question with a method and GPUs filled in; a name that the user typed keeps its source."""
    texts, sources = dict(ask.texts), dict(ask.sources)
    for name, value in ((METHOD.name, method), (GPU.name, gpu)):
        if value is not None and texts.get(name) != value:
            texts[name], sources[name] = value, "derived"
    return Ask(texts=texts, sources=sources)


def _offers(ask: Ask, looked_at: set[str], layouts: list[UsageError | None], evidence: _Evidence) -> Iterator[Offer]:
    """Yield offers for the GPUs of a question that have a price and can run it.

    For each GPU, append to `layouts` the error that refused the fixed layout, or None.
    """
    for question, case in _cases(ask, evidence, looked_at):
        try:
            offer = _offer(question, case)
        except UsageError as error:
            layouts.append(error)
            continue
        layouts.append(None)
        if offer is not None:
            yield offer


def _cases(ask: Ask, evidence: _Evidence, looked_at: set[str] | None = None) -> Iterator[tuple[Question, Case]]:
    """Yield a question and its case for each GPU that has a price and can run it; add GPUs with a price to `looked_at`.

    A quote prices only the GPU that it is for.
    """
    from mpplan.api.planned import with_own_rates
    from planner.question.resolve import resolve
    from pricing.answer.priced import price_question

    question = resolve(ask)
    gpus = [cluster.gpu for cluster in question.clusters]
    if _quoted(ask) not in {None, *(gpu.id for gpu in gpus)}:
        question = replace(question, money=replace(question.money, quote=None))
    priced = price_question(gpus, question.money)
    rates_and_prices = with_own_rates(priced, evidence.of(question), evidence.parameters)
    for cluster in question.clusters:
        gpu = cluster.gpu.id
        if priced.prices[gpu].usd_per_gpu_h is None:
            continue
        if looked_at is not None:
            looked_at.add(gpu)
        if question.why_unable(question.policy, cluster.gpu) is None:
            alone = replace(question, clusters=(cluster,))
            yield alone, rates_and_prices.case(alone, cluster)


def _offer(question: Question, case: Case) -> Offer | None:
    from planner.planning.counting.open_count import SOON_ENOUGH_S
    from planner.planning.requested import offered
    from planner.rates.terms import Draws

    choice = offered(question, case, Draws(count=CHOICE_DRAWS, seed=question.seed))
    if choice is None:
        return None
    at_mid = case.evaluate(choice.winner)
    usd, wall_s = (float(np.ravel(value)[0]) for value in (at_mid.cost_usd, at_mid.wall_s))
    return Offer(
        gpu=case.cluster.gpu.id, method=question.method, gpus=choice.gpus, usd=usd,
        soon_enough_s=max(wall_s, SOON_ENOUGH_S) if question.fine_tunes else wall_s,
        current=all(warning.key != "price.warning.historic" for warning in case.price.warnings),
    )  # fmt: skip
