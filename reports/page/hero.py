"""The first screen: the answer as a sentence with its range, its evidence, three figures, and all precisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.answer.plan import LOWER_IS_BETTER
from planner.question.asked import FROM_THE_USER
from planner.training.method import PRETRAIN
from reports.document.facts import COST, DURATION, ENERGY, QUANTITY, SHOWN, Doc, Facts, rung_of
from reports.document.redact import left_out
from reports.document.text_facts import stand_ins
from reports.document.units import ONE_UNIT, unit_of
from reports.sections.comparison.precisions import metric_chart, overview_table
from reports.text.language import Figure, Span, Words, strong
from reports.text.messages import is_message, sentence, word
from reports.text.names import pretty_gpu
from reports.text.numbers import LEAST
from reports.text.saving import one_sided, saving_phrase, shown_saving
from reports.view import Cell, Hero, RangeChart, Tile, Versus
from reports.view.cells import saving_tone


def hero(facts: Facts, words: Words) -> Hero:
    """Build the first screen; if the requested precision does not fit, it states that instead of an answer."""
    answer = facts.answer
    metric = facts.lead_metric()
    return Hero(
        headline=(*headline(facts, words), *chances(facts, words)),
        budget=_budget(facts, words),
        setting=(*_setting(facts, answer, words), *_break_even(facts, words)),
        trust=_trust(facts, words),
        alerts=_alerts(facts, words),
        tiles=tuple(_tile(facts, answer, name, words) for name in (COST, DURATION, ENERGY) if answer[name])
        if answer
        else (),
        chart=_chart(facts, metric, words),
        table=overview_table(facts, words),
    )


def _chart(facts: Facts, metric: str, words: Words) -> RangeChart | None:
    return metric_chart(facts, metric, words) if facts.fitting() else None


def model_phrase(facts: Facts, words: Words) -> str:
    """Return `this 70B model` if the model was given by size, else the model's name."""
    if facts.given("params") and not facts.given("model"):
        return words("model.by_size", size=asked_size(facts, words))
    return words("model.by_name", name=facts.model_name)


def asked_size(facts: Facts, words: Words) -> str:
    """Return the model's size as given, else as counted."""
    given = facts.given("params")
    return words.value("params", float(given) if isinstance(given, int | float) else facts.doc["model"]["params_total"])


def _verb(facts: Facts, words: Words) -> str:
    method = facts.given("method")
    return words(f"verb.{method or PRETRAIN}")


def headline(facts: Facts, words: Words) -> tuple[Span, ...]:
    """Return the answer as a sentence with its range."""
    common = {
        "precision": words.name("precision", facts.asked),
        "verb": _verb(facts, words),
        "model": model_phrase(facts, words),
    }
    amount = facts.amount
    common["on_tokens"] = words("on_tokens", tokens=words.value(facts.amount_quantity, amount)) if amount else ""
    answer = facts.answer
    if answer is None:
        return words.spans("headline.none", **common, reason=why_none(facts, words))
    cost = _figure(facts, answer, COST, words)
    metric = facts.lead_metric()
    no_cost = "headline.time_alone" if "prices" in left_out(facts.doc) else "headline.time"
    key = no_cost if cost is None else "headline.at_least" if cost.at_least else "headline.cost"
    figure = cost or words.figure("days", answer[DURATION])
    assert figure is not None  # a plan that fits has a duration
    where = "headline.on_first" if not answer[COST] and facts.gpu == facts.gpus[0] else "headline.on_gpu"
    gpu = words(where, gpu=pretty_gpu(facts.gpu)) if len(facts.gpus) > 1 else ""
    sentence = words.spans(key, **common, figure=figure, on_gpu=gpu, compared=_compared(facts, metric, words))
    return (*sentence, *would_save(facts, metric, words))


def chances(facts: Facts, words: Words) -> tuple[Span, ...]:
    """Return a sentence with the probability of meeting each target."""
    deadline, budget = facts.probability("deadline"), facts.probability("budget")
    limit_days, limit_usd = facts.doc.get("deadline_days"), facts.given("budget")
    parts = []
    if deadline is not None and limit_days:
        days = words.duration(float(limit_days))
        parts.append(words("chance.deadline", days=days, chance=strong(words.chance(deadline))))
    if budget is not None and limit_usd:
        usd = words.value("money", float(limit_usd))
        parts.append(words("chance.budget", usd=usd, chance=strong(words.chance(budget))))
    return words.spans("headline.chances", parts=words("chance.join").join(parts)) if parts else ()


def why_none(facts: Facts, words: Words) -> str:
    """Return the reason why the requested precision has no plan."""
    plan = facts.plan(facts.asked)
    if plan is not None and plan["why_not"]:
        return sentence(plan, "why_not", words.lang).text
    for entry in facts.doc.get("unsupported") or ():
        if entry["precision"] == facts.asked:
            return sentence(entry, "reason", words.lang).text
    return words("reason.unknown")


def _compared(facts: Facts, metric: str, words: Words) -> str:
    """Return `, 31% less than BF16 (28–34) and 65% less than TF32 (62–68)`, with the shares marked as strong."""
    savings = {reference: facts.saving(metric, reference) for reference in facts.compared(metric)}
    known = [(name, shown_saving(saving, words)) for name, saving in savings.items() if saving]
    parts = [saving_phrase(saving, words.name("precision", name), words) for name, saving in known]
    hedged = any(saving.hedged or saving.at_most for _, saving in known[:-1])
    joint = words("compare.and_after" if hedged else "compare.and")
    return words("headline.compared", parts=joint.join(parts)) if parts else ""


def would_save(facts: Facts, metric: str, words: Words) -> tuple[Span, ...]:
    """Return what the narrowest precision would save over the requested one; nothing if they are the same."""
    to = facts.narrowest
    saving = facts.saving(metric, facts.asked, to=to)
    if to == facts.asked or saving is None:
        return ()
    other, shown = words.name("precision", to), shown_saving(saving, words)
    if saving["low"] > 0 and saving.get("amount"):
        amount = _amount(facts, saving["amount"], metric, words)
        assert amount is not None
        return words.spans("would.save", other=other, amount=amount, share=shown.figure)
    compared = saving_phrase(shown, words.name("precision", facts.asked), words)
    return words.spans("would.cost" if metric == COST else "would.take", other=other, compared=compared)


def _figure(facts: Facts, answer: Doc, metric: str, words: Words) -> Figure | None:
    """Return a figure of the answer in the unit of its tables."""
    rung = unit_of(facts, metric, words) if metric in ONE_UNIT and answer[metric] else None
    return words.figure(QUANTITY[metric], answer[metric], rung)


def _amount(facts: Facts, saved: Doc, metric: str, words: Words) -> Figure | None:
    """Return a saved amount in the unit of the answer, unless it is too small for that unit."""
    rung = unit_of(facts, metric, words)
    return words.figure(QUANTITY[metric], saved, rung if saved["mid"] >= LEAST * rung.per else None)


def _budget(facts: Facts, words: Words) -> tuple[Span, ...]:
    """Return the figure to budget with, and how many published runs stayed below theirs: no more is claimed."""
    answer = facts.answer
    if answer is None:
        return ()
    cost = _figure(facts, answer, COST, words)
    likes: tuple[Span, ...] = ()
    for gpu, like in stand_ins(facts.doc) if cost is not None else ():
        key = "budget.like" if gpu == answer["gpu"] else "budget.like_beside"
        likes += words.spans(key, gpu=pretty_gpu(gpu), like=pretty_gpu(like))
    over = _over(facts, words)
    if cost is not None and cost.at_least:
        values = {"high": strong(cost.high), **over}
        return words.spans("budget.over_at_least" if over else "budget.at_least", **values) + likes
    figure = cost or words.figure("days", answer[DURATION])
    assert figure is not None  # a plan that fits has a duration
    key = "budget.over" if over else "budget.days" if cost is None else "budget.cost"
    spans = words.spans(key, high=strong(figure.high), **over) + likes
    totals = facts.doc.get("run_totals")
    if not totals:
        return spans
    if not totals.get("asked_runs"):
        values = {"runs": f"{totals['runs']:,}", "within": f"{totals['below_high']:,}"}
        return spans + words.spans("budget.validated", **values)
    asked = {"asked": f"{totals['asked_runs']:,}", "asked_within": f"{totals['asked_below_high']:,}"}
    return spans + words.spans("budget.validated_asked", **asked)


def _over(facts: Facts, words: Words) -> dict[str, str]:
    """Return the budget and the probability of exceeding it in words; empty if the high figure is within it."""
    limit_usd, within = facts.given("budget"), facts.probability("budget")
    if within is None or not facts.over_budget:
        return {}
    overspent = words.chance(1.0 - round(within, 2))  # adds up to 100 % with the probability in the headline
    return {"usd": words.value("money", float(limit_usd)), "chance": strong(overspent)}


def _setting(facts: Facts, answer: Doc | None, words: Words) -> tuple[Span, ...]:
    if answer is None:
        return ()
    days, hours = words.figure("days", answer[DURATION]), _figure(facts, answer, "gpu_hours", words)
    assert days is not None
    assert hours is not None
    values = {name: figure.text + words.ranged(figure) for name, figure in (("days", days), ("hours", hours))}
    return words.spans("setting", gpus=f"{answer['gpus']:,}", gpu=pretty_gpu(answer["gpu"]), **values)


def _break_even(facts: Facts, words: Words) -> tuple[Span, ...]:
    """Compare the cost of owned and rented GPU-hours, and give the utilisation from which owning is cheaper."""
    rows = (facts.doc.get("money") or {}).get("owned") or ()
    owned = next((row for row in rows if row["gpu"] == facts.gpu and row["rental_usd_per_gpu_h"] is not None), None)
    if owned is None or facts.answer is None:
        return ()
    hour = words.figure("unit_price", owned["usd_per_gpu_h"])
    assert hour is not None
    values = {"own": hour.text, "rented": words.value("unit_price", owned["rental_usd_per_gpu_h"])}
    owning, renting = "setting.owned", "setting.rented"
    even, used = owned["break_even_utilisation_ratio"], owned["utilisation_ratio"]
    if hour.at_least:  # there is no price of electricity
        owning, renting = "setting.owned_at_least", "setting.rented_at_least"
    elif (best := owned.get("break_even_low_ratio")) is not None:
        worst = owned.get("break_even_high_ratio")
        values |= {"best": words.value("percent", best)}
        renting = "setting.rented_perhaps"
        if worst is None:
            owning = "setting.owned_perhaps"
        elif worst != best:
            owning = "setting.owned_within"
            values |= {"worst": words.value("percent", worst)}
    if even is None or used is None:
        return words.spans(renting, **values) if even is None else ()
    share = strong(words.value("percent", even))
    return words.spans(owning, **values, even=share, used=words.value("percent", used))


def _trust(facts: Facts, words: Words) -> tuple[Cell, ...]:
    """Return one line on the evidence behind the figures; each part links to the details on the page."""
    doc = facts.doc
    parts = [_speeds(facts, words)]
    prices = _prices(facts, words)
    if prices and any(plan[COST] for plan in facts.fitting()):
        parts.append(Cell(text=prices, href="#sources"))
    parts.append(Cell(text=words.count("trust.assumptions", len(doc["assumptions"])), href="#assumptions"))
    gaps = len(doc["gaps"])
    if gaps or not stand_ins(facts.doc):  # with another GPU's price, "no gaps" would be wrong
        parts.append(Cell(text=words.count("trust.gaps", gaps), href="#assumptions", tone="bad" if gaps else ""))
    if left_out(doc):
        parts.append(
            Cell(text=words("trust.redacted", parts=words.join([words(f"redact.{part}") for part in left_out(doc)])))
        )
    return tuple(parts)


def _prices(facts: Facts, words: Words) -> str:
    """Return the source of the prices, and the exchange rates used to convert them."""
    prices = _price_source(facts, words)
    notes = [
        entry.get("note_message")
        for name, entry in facts.doc["question"].items()
        if isinstance(entry, dict) and (name == "price" or name.startswith("price "))
    ]
    rates = dict.fromkeys(word(message, words.lang) for message in _conversions(notes))
    return words("trust.converted", prices=prices, rates=words.join(list(rates))) if prices and rates else prices


def _conversions(value: Any) -> Iterator[Doc]:
    """Yield the nested messages that report the conversion of an amount."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _conversions(inner)
    elif is_message(value):
        if value["key"] in ("price.converted", "price.converted_rate"):
            yield value
        else:
            yield from _conversions(list(value["values"].values()))


def _price_source(facts: Facts, words: Words) -> str:
    """Return the source of the prices, with the dates of the rows and of the lookup."""
    if facts.source_of(facts.price_input()) in FROM_THE_USER:
        return words("trust.price_given")
    rows = [row for row in facts.evidence_for(COST) if "cost_usd.gpu_hour" in row["used_in"]]
    dates = _years([str(row["date"]) for row in rows if row["date"]])
    day = facts.given("as_of")
    if not rows:
        return ""
    return words("trust.prices", date=day, rows=dates) if day else words("trust.prices_rows", rows=dates)


def _years(dates: list[str]) -> str:
    """Return the first and last year among dates or date intervals."""
    years = sorted({part[:4] for date in dates for part in date.split("/")})
    return years[0] if len(years) == 1 else f"{years[0]}–{years[-1]}" if years else ""


def _speeds(facts: Facts, words: Words) -> Cell:
    """Return the evidence behind the speeds: the user's own runs if a calibration learned speeds from them."""
    learned = facts.doc.get("calibration")
    if learned and "time" in learned["width_ratio"]:
        runs = words.count("own_runs", int(learned["runs"]))
        return Cell(text=words("trust.learned", runs=runs), href="#calibration")
    return Cell(text=_measured(facts, words), href="#sources")


def _measured(facts: Facts, words: Words) -> str:
    """Return the best kind of evidence for the rates of the requested plan, with its dates."""
    sources = facts.evidence_for(DURATION)
    rates = [source for source in sources if "linear_flop_per_s" in source.get("terms", ())]
    for kind in ("measured", "shipped", "published", "transferred", "datasheet"):
        own = [source for source in rates or sources if source["kind"] == kind]
        if own:
            dates = sorted({str(source["date"]) for source in own if source["date"]})
            exact = kind in ("measured", "shipped") and len(dates) == 1
            when = dates[0][:10] if exact else _years(dates)
            date = words("range").format(when) if when else ""
            return words(f"trust.{kind}", gpu=pretty_gpu(facts.gpu), date=date)
    return words("trust.assumed")


def _alerts(facts: Facts, words: Words) -> tuple[str, ...]:
    alerts = []
    if any(metric_at_least(plan) for plan in facts.fitting()):
        alerts.append(words("alert.at_least"))
    if unpriced := facts.unpriced():
        alerts.append(words("alert.unpriced", names=words.join([pretty_gpu(gpu) for gpu in unpriced])))
    if facts.answer is not None:
        lacking = [words.name("precision", plan["precision"]) for plan in facts.plans() if not plan["fits"]]
        lacking += [words.name("precision", entry["precision"]) for entry in facts.unsupported()]
        if lacking:
            alerts.append(words("alert.left_out", names=words.join(lacking)))
    failed = [words.name("precision", name) for name in SHOWN if name in facts.untrained()]
    if failed:
        alerts.append(words("alert.untrained", names=words.join(failed)))
    return tuple(alerts)


def metric_at_least(plan: Doc) -> bool:
    """Return whether any figure of a plan is a lower bound."""
    return any(plan[name] and plan[name].get("at_least") for name in LOWER_IS_BETTER)


def _tile(facts: Facts, answer: Doc, metric: str, words: Words) -> Tile:
    figure = _figure(facts, answer, metric, words)
    assert figure is not None
    key = "tile.budget" if answer[COST] else "tile.plan"
    if metric == COST and _over(facts, words):
        key = "tile.over"
    return Tile(
        label=words(f"tile.{metric}"),
        text=figure.text,
        span=figure.span,
        budget=words(key, high=figure.high) if figure.span else "",
        versus=tuple(
            _versus(facts, metric, reference, words) for reference in facts.references() if reference != "fp16"
        )[:3],
        evidence=evidence_line(facts, metric, words),
    )


def _versus(facts: Facts, metric: str, reference: str, words: Words) -> Versus:
    label = words("versus.label", other=words.name("precision", reference))
    saving = facts.saving(metric, reference)
    if saving is None:
        return Versus(label=label, text=words("none"))
    change = words.figure(_share(saving), {"low": -saving["high"], "mid": -saving["mid"], "high": -saving["low"]})
    assert change is not None
    tone = saving_tone(saving["low"], saving["high"])
    return Versus(label=label, text=signed(change, words), span=_flat_span(saving, words), tone=tone)


def _share(saving: Doc) -> str:
    """Return the ladder of a change: tenths below 1 %, which would be spurious in a range that includes zero."""
    return "change" if saving["low"] < 0 < saving["high"] or one_sided(saving) else "percent"


def signed(change: Figure, words: Words) -> str:
    """Return a change with its sign; what rounds to zero has none."""
    rises = change.value > 0 and change.text != words.value("change", 0.0)
    return words("plus").format(change.text) if rises else change.text


def _flat_span(saving: Doc, words: Words) -> str:
    """Return the range of a change, without signs if both ends have the same one, else with those of the change."""
    low, high = saving["low"], saving["high"]
    if low < 0 or one_sided(saving):
        low, high = -high, -low
    mid = abs(saving["mid"]) if low >= 0 else -saving["mid"]
    figure = words.figure(_share(saving), {"low": low, "mid": min(max(mid, low), high), "high": high})
    return figure.span if figure else ""


def evidence_line(facts: Facts, metric: str, words: Words) -> str:
    """Return the kinds of evidence for a figure in words, best first."""
    kinds = facts.kinds_for(metric)
    if metric in (COST, ENERGY):
        kinds = [source["kind"] for name in (metric, DURATION) for source in facts.evidence_for(name)]
    names = [words.name("evidence", kind) for kind in sorted(set(kinds), key=rung_of)]
    return " · ".join(names)
