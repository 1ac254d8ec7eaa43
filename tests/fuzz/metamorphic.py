"""Questions of which one answer follows from another: more tokens are never cheaper, a doubled price doubles the rent.

What holds for one search on made-up counts is tested in `tests/planner/planning/`; here whole questions are asked
through the program, each with a change whose effect is known.

    python -m tests.fuzz.metamorphic --seed 1 --seconds 60
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.fuzz.case import Case, Outcome
from tests.fuzz.program import run_program

CLOSE_RATIO = 1e-6
"""How far two figures may lie apart that must be the same; a document has ten digits."""
CENTS_USD = 0.0151
"""How far an amount may lie from twice another: both are whole cents."""
SIMPLER_RATIO = 1.04
"""How much slower a plan may be for a simpler layout: 2 % at the mean over draws, which may be more at mid."""
RATES = "/".join(("..", "home", "data", "mpplan", "exchange_rates.csv"))
"""The user's exchange rates, from the working folder of a case."""
NO_PLAN = 8
"""Exit code where nothing is feasible."""

Question = Sequence[str]
"""Flags of `mpplan estimate`."""


class RefusedError(Exception):
    """A question that one of the relation's runs did not answer; it says nothing."""


def ask(*flags: str, files: dict[str, bytes] | None = None) -> dict[str, Any]:
    """The document of an answer.

    Raises:
        RefusedError: there is no plan, or the question is none.
        AssertionError: the program failed.
    """
    outcome = run_program(Case(arguments=("estimate", *flags, "--json", "--quiet"), files=files or {}))
    if outcome.code in (2, NO_PLAN):
        raise RefusedError(outcome.err)
    assert outcome.code == 0, f"exit {outcome.code}: {' '.join(flags)}: {outcome.err[-200:]}"
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def asked_plan(document: dict[str, Any]) -> dict[str, Any]:
    """The plan of the precision asked for, on the first GPU.

    Raises:
        RefusedError: it fits nowhere.
    """
    precision = document["question"]["precision"]["value"]
    plan: dict[str, Any] = next((row for row in document["plans"] if row["precision"] == precision), {"fits": False})
    if not plan["fits"]:
        raise RefusedError("the asked precision has no plan")
    return plan


def _ends(plan: dict[str, Any], key: str) -> list[float]:
    return [plan[key][end] for end in ("low", "mid", "high")]


def _less(first: float, second: float) -> bool:
    return first < second * (1 - CLOSE_RATIO)


def _scaled(what: str, before: Sequence[float], after: Sequence[float], factor: float) -> list[str]:
    slack = CENTS_USD if "cost" in what else 0.0
    apart = [
        (b, a)
        for b, a in zip(before, after, strict=True)
        if not math.isclose(a, factor * b, rel_tol=CLOSE_RATIO, abs_tol=slack)
    ]
    return [f"{what} {b:g} becomes {a:g}, not {factor:g} times as much" for b, a in apart]


def more_tokens_never_cheaper(question: Question, draw: random.Random) -> list[str]:
    """On the same GPUs, more tokens take longer and more of everything."""
    gpus = ("--gpus", draw.choice(("8", "16", "32")), "--price", "2")
    few, many = sorted(draw.sample(("0.5B", "1B", "3B", "20B"), 2), key=lambda text: float(text[:-1]))
    first, second = (asked_plan(ask(*question, *gpus, "--tokens", tokens)) for tokens in (few, many))
    return [
        f"{key} of {many} tokens, {after:g}, is below that of {few}, {before:g}"
        for key in ("duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e")
        for before, after in zip(_ends(first, key), _ends(second, key), strict=True)
        if _less(after, before)
    ]


def doubled_price_doubles_the_rent(question: Question, draw: random.Random) -> list[str]:
    """On the same GPUs, rent is hours times price."""
    price = draw.choice((0.37, 1.5, 2.99, 40.0))
    first, second = (asked_plan(ask(*question, "--gpus", "8", "--price", f"{usd:g}")) for usd in (price, 2 * price))
    same = _scaled("the duration", _ends(first, "duration_days"), _ends(second, "duration_days"), 1.0)
    return same + _scaled("the cost", _ends(first, "cost_usd"), _ends(second, "cost_usd"), 2.0)


def longer_deadline_never_more_gpus(question: Question, draw: random.Random) -> list[str]:
    """The fewest GPUs that finish in time."""
    short, long = sorted(draw.sample((1, 2, 5, 12, 30, 90), 2))
    first, second = (asked_plan(ask(*question, "--tokens", "50B", "--deadline", f"{days}d")) for days in (short, long))
    if second["gpus"] > first["gpus"]:
        return [f"{first['gpus']} GPUs within {short} d, {second['gpus']} within {long} d"]
    return []


def higher_confidence_never_fewer_gpus(question: Question, draw: random.Random) -> list[str]:
    """Being surer to finish in time takes at least as many GPUs."""
    low, high = sorted(draw.sample((50, 70, 80, 90, 95), 2))
    flags = ("--tokens", "50B", "--deadline", draw.choice(("3d", "10d")))
    first, second = (asked_plan(ask(*question, *flags, "--confidence", f"{ratio}%")) for ratio in (low, high))
    if second["gpus"] < first["gpus"]:
        return [f"{first['gpus']} GPUs at {low} %, {second['gpus']} at {high} %"]
    return []


def larger_budget_never_later(question: Question, draw: random.Random) -> list[str]:
    """A budget buys the soonest end within it."""
    small, large = sorted(draw.sample((3_000, 10_000, 40_000, 200_000), 2))
    flags = ("--tokens", "20B", "--price", "2", "--max-gpus", "256")
    first, second = (asked_plan(ask(*question, *flags, "--budget", str(usd))) for usd in (small, large))
    before, after = first["duration_days"]["mid"], second["duration_days"]["mid"]
    return [f"{before:g} days for {small} USD, {after:g} for {large}"] if _less(before, after) else []


def best_of_a_list_is_the_best_alone(question: Question, draw: random.Random) -> list[str]:
    """GPUs in a list have the plans that they have alone."""
    flags = tuple(word for at, word in enumerate(question) if "--gpu" not in question[max(at - 1, 0) : at + 1])
    names = draw.sample(("h100-sxm5-80gb", "a100-sxm4-80gb", "h200-sxm-141gb", "l40s"), 2)
    together = ask(*flags, "--gpus", "8", "--price", "2", "--gpu", ",".join(names))
    wrong = []
    for name in names:
        alone = ask(*flags, "--gpus", "8", "--price", "2", "--gpu", name)
        plans = {row["precision"]: row for row in together["plans"] if row["gpu"] == name}
        if set(plans) != {row["precision"] for row in alone["plans"]}:
            wrong.append(f"{name}: {sorted(plans)} in a list, {[row['precision'] for row in alone['plans']]} alone")
        for row in alone["plans"]:
            listed = plans.get(row["precision"], row)
            if listed["fits"] != row["fits"]:
                wrong.append(f"{name} {row['precision']}: fits {listed['fits']} in a list, {row['fits']} alone")
            elif row["fits"]:
                before, after = (_ends(plan, "duration_days") for plan in (row, listed))
                wrong += _scaled(f"{name} {row['precision']}: the duration", before, after, 1.0)
    return wrong


def less_power_is_never_faster(question: Question, draw: random.Random) -> list[str]:
    """A lower power limit never makes a run shorter, nor its GPUs draw more."""
    low, high = sorted(draw.sample((250, 300, 400, 500, 600, 700), 2))
    flags = ("--gpu", "h100-sxm5-80gb", "--gpus", "8")
    first, second = (asked_plan(ask(*question, *flags, "--power-limit", str(watts))) for watts in (low, high))
    slow, fast = first["duration_days"]["mid"], second["duration_days"]["mid"]
    slower = 1.0 if first["layout"] == second["layout"] else SIMPLER_RATIO
    wrong = [f"{slow:g} days at {low} W, {fast:g} at {high} W"] if _less(slower * slow, fast) else []
    little, much = (plan["energy_mwh"]["mid"] / plan["duration_days"]["mid"] for plan in (first, second))
    return wrong + ([f"{little:g} MWh a day at {low} W, {much:g} at {high} W"] if _less(much, little) else [])


def pue_scales_energy_and_carbon(question: Question, draw: random.Random) -> list[str]:
    """Energy and carbon are those of the machines times the PUE; rent is not."""
    before, after = draw.sample((1.0, 1.1, 1.25, 1.5), 2)
    flags = ("--gpus", "8", "--price", "2", "--grid", "400")
    first, second = (asked_plan(ask(*question, *flags, "--pue", f"{pue:g}")) for pue in (before, after))
    return [
        sentence
        for key, factor in (("energy_mwh", after / before), ("carbon_tco2e", after / before), ("cost_usd", 1.0))
        for sentence in _scaled(key, _ends(first, key), _ends(second, key), factor)
    ]


def currency_is_its_rate(question: Question, draw: random.Random) -> list[str]:
    """An offer in another currency costs its amount in dollars at the rate of the day."""
    currency, rate, price = draw.choice(("EUR", "GBP", "CHF")), draw.choice((0.5, 1.25, 2.0)), draw.choice((1.0, 2.4))
    rates = f"currency,usd_per_unit,date,source\n{currency},{rate},2026-08-28,a test\n".encode()
    offer = 'vendor = "A"\ngpu = "h100-sxm5-80gb"\nprice_per_gpu_h = {}\ncurrency = "{}"\n'
    flags = ("--gpus", "8", "--gpu", "h100-sxm5-80gb", "--as-of", "2026-09-01", "--quote", "quote.toml")
    costs = []
    for amount, code in ((price, currency), (price * rate, "USD")):
        files = {"quote.toml": offer.format(amount, code).encode(), RATES: rates}
        costs.append(_ends(asked_plan(ask(*question, *flags, files=files)), "cost_usd"))
    return _scaled(f"the cost in USD and in {currency}", costs[1], costs[0], 1.0)


def same_seed_same_answer(question: Question, draw: random.Random) -> list[str]:
    """The same question has the same answer, to the last digit; only the time and the command differ."""
    seed = str(draw.randrange(1000))
    first, second = (ask(*question, "--gpus", "8", "--seed", seed) for _ in range(2))
    return [f"{key} differs" for key in first if key not in ("created_at", "command") and first[key] != second[key]]


def text_and_document_agree(question: Question, draw: random.Random) -> list[str]:
    """The screen says the number of GPUs and the time that the document has."""
    flags = ("--tokens", draw.choice(("1B", "30B")), "--gpus", draw.choice(("8", "32")))
    plan = asked_plan(ask(*question, *flags))
    shown = run_program(Case(arguments=("estimate", *question, *flags))).out.decode()
    headline = re.search(r"^([\d,]+) × .*?, about\s+([\d.,]+)\s+(\w+)", shown, flags=re.MULTILINE | re.DOTALL)
    if headline is None:
        return [f"no headline in {shown[:200]!r}"]
    days = (
        float(headline[2].replace(",", "")) * {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0}[headline[3].rstrip("s")]
    )
    wrong = [] if int(headline[1].replace(",", "")) == plan["gpus"] else [f"{headline[1]} GPUs, {plan['gpus']} in JSON"]
    mid = plan["duration_days"]["mid"]
    return wrong + ([] if math.isclose(days, mid, rel_tol=0.06) else [f"{days:g} days on the screen, {mid:g} in JSON"])


RELATIONS: dict[str, Callable[[Question, random.Random], list[str]]] = {
    relation.__name__: relation
    for relation in (
        more_tokens_never_cheaper, doubled_price_doubles_the_rent, longer_deadline_never_more_gpus,
        higher_confidence_never_fewer_gpus, larger_budget_never_later, best_of_a_list_is_the_best_alone,
        less_power_is_never_faster, pue_scales_energy_and_carbon, currency_is_its_rate, same_seed_same_answer,
        text_and_document_agree,
    )
}  # fmt: skip

MODELS = (
    ("--params", "125M"),
    ("--params", "1B"),
    ("--params", "7B"),
    ("--model", "llama-3.1-8b"),
    ("--model", "qwen2.5-7b"),
)
GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb", "h200-sxm-141gb")
METHODS = ("pretrain", "pretrain", "sft", "lora")


def cases(seed: int) -> Iterator[Case]:
    """Every relation in turn, on questions without end: the relation's name, a seed of its changes, the flags."""
    index = 0
    while True:
        draw = random.Random(f"{seed}:{index}")
        relation = list(RELATIONS)[index % len(RELATIONS)]
        flags = [*draw.choice(MODELS), "--precision", draw.choice(("bf16", "tf32")), "--method", draw.choice(METHODS)]
        if relation not in ("less_power_is_never_faster", "currency_is_its_rate"):
            flags += ["--gpu", draw.choice(GPUS)]
        yield Case(arguments=(relation, str(draw.randrange(10**6)), *flags))
        index += 1


def run(case: Case) -> Outcome:
    """Ask the questions of one relation: exit 1 with what does not hold, exit 8 where one of them has no answer."""
    name, seed, *flags = case.arguments
    try:
        wrong = RELATIONS[name](flags, random.Random(seed))
    except RefusedError as error:
        return Outcome(code=NO_PLAN, out=b"", err=f"error: {error}")
    except AssertionError as error:
        wrong = [str(error)]
    return Outcome(code=1 if wrong else 0, out=b"", err="\n".join(wrong))


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What does not hold, each after the name of the relation."""
    if outcome.code in (0, NO_PLAN):
        return []
    return [f"{case.arguments[0]}: {line}" for line in outcome.err.splitlines()] or [f"exit {outcome.code}"]


if __name__ == "__main__":
    from tests.fuzz.__main__ import main

    sys.exit(main(["--surface", "metamorphic", *sys.argv[1:]]))
