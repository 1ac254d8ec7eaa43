"""`mpplan claims`: the claims of the literature, each with a verdict and what it rests on."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import details, table, wrapped
from mpplan.ui.output import open_output
from mpplan.ui.progress import counted
from planner.errors import CannotMeasureError, MpplanError, UsageError

if TYPE_CHECKING:
    from planner.claims.case import Case
    from planner.claims.verdict import Judged

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to show with all their evidence, such as c14.")
]
Verdict = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only holds, holds_under_conditions, does_not_hold or cannot_be_judged."),
]
Topic = Annotated[str | None, typer.Option(metavar="NAME", help="Only memory, speed, energy, cost and so on.")]
Records = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Measurement record to judge by, too. Default the newest of your own."),
]

Measure = Annotated[
    bool,
    typer.Option("--measure", help="First measure what this machine can: steps, products, checkpointing, updates."),
]
Device = Annotated[str | None, typer.Option("--device", metavar="DEVICE", help="Of --measure: gpu or cpu.")]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time limit of --measure, for example 2m. Default 4m.")
]

WORDS = {
    "holds": "holds",
    "holds_under_conditions": "holds under conditions",
    "does_not_hold": "does not hold",
    "cannot_be_judged": "cannot be judged here",
}
"""Each verdict in words."""


def claims(
    ids: Ids = None,
    verdict: Verdict = None,
    topic: Topic = None,
    records: Records = None,
    measure: Measure = False,
    device: Device = None,
    budget: Budget = None,
    json: options.JsonFlag = False,
    output: options.OutputOption = None,
    quiet: options.QuietFlag = False,
) -> None:
    """Judge what the literature claims of lower precision: by arithmetic, plans, published runs, your record.

    Each claim holds, holds under conditions, does not hold, or cannot be judged here; the evidence is named either way.
    """
    from mpplan.api.claim_ledger import claims as judge
    from mpplan.api.claim_ledger import to_claims_document
    from planner.claims.verdict import VERDICTS

    if verdict is not None and verdict not in VERDICTS:
        raise UsageError(f"--verdict: unknown verdict `{verdict}`", hint=f"verdicts are {', '.join(VERDICTS)}")
    place = open_output(output or "-")
    if measure:
        records = _measured(records, device or "gpu", budget, quiet=quiet)
    elif device or budget:
        raise UsageError("--device and --budget are of --measure", hint="add --measure, or leave them out")
    judged = judge(
        ids or (), topics=[topic] if topic else (), records=records,
        watch=lambda total: counted(total, "claims judged", quiet=quiet),
    )  # fmt: skip
    shown = [entry for entry in judged if verdict in (None, entry.verdict)]
    if json:
        place.write(dumps(to_claims_document(shown), ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    elif ids:
        place.write("\n".join(_one(entry) for entry in shown))
    else:
        place.write(_listed(shown))


def _measured(records: str | None, device: str, budget: str | None, *, quiet: bool) -> str:
    """Measure, and name the record to judge by."""
    from mpplan.api.claim_record import BUDGET_S, measure_claims
    from mpplan.ui.probe_display import display
    from planner.units import parse_duration_s

    if records is not None:
        raise UsageError("--records and --measure each name a record", hint="give one of them")
    if device not in ("gpu", "cuda", "cpu"):
        raise UsageError(f"--device: unknown device `{device}`", hint="`gpu` or `cpu`")
    budget_s = parse_duration_s(budget, "--budget") if budget else BUDGET_S
    try:
        with display(quiet=quiet) as screen:
            path, left_out = measure_claims(device, budget_s, screen)
    except MpplanError as error:
        if device != "cpu" and error.exit_code == CannotMeasureError.exit_code:
            error.hint = "`mpplan claims --measure --device cpu` measures the CPU"
        raise
    if left_out:
        warn(f"no time was left for {', '.join(left_out[:4])}{' …' if len(left_out) > 4 else ''}", quiet=quiet)
        note("`--budget` gives more time", quiet=quiet)
    note(f"wrote {path}", quiet=quiet)
    return path


def _listed(judged: list[Judged]) -> str:
    """Every claim with its verdict and the reason."""
    from reports.text.messages import word

    blocks = []
    for entry in judged:
        head = f"{entry.claim.id}  {WORDS[entry.verdict].upper()}: {entry.claim.text['en']}"
        blocks.append(wrapped(head, 5) + "\n" + wrapped(f"     {word(entry.words)}", 5) + "\n")
    counts = [(sum(entry.verdict == name for entry in judged), words) for name, words in WORDS.items()]
    total = ", ".join(f"{words}: {count}" for count, words in counts if count)
    end = f"Claims: {len(judged)}; {total or 'none shown'}. `mpplan claims c14` shows one with all its evidence."
    return "\n".join([*blocks, wrapped(end) + "\n"])


def _one(entry: Judged) -> str:
    """One claim with everything behind its verdict."""
    from reports.text.messages import word

    claim = entry.claim
    facts = [
        ("claim", f"{claim.text['en']} ({claim.id}, {claim.topic})"),
        ("verdict", WORDS[entry.verdict]),
        ("because", word(entry.words)),
        ("decided by", ", ".join(entry.decided_by)),
        ("would decide", claim.decides),
        ("source", f"{claim.source}, {claim.date}"),
    ]
    rows = [_row(entry, case) for case in entry.evidence]
    heads = ("evidence", "basis", "low", "mid", "high", "cases", "agrees")
    notes = [wrapped(f"- {word(note)}", 2) for note in entry.notes]
    sources = [wrapped(f"- {what}: {source}", 2) for what, source in _sources(entry).items()]
    parts = [details(facts), table(heads, rows), "\n".join(notes), "\n".join(["Sources:", *sources])]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _sources(entry: Judged) -> dict[str, str]:
    """The source of each piece of evidence."""
    return {f"{case.what} ({case.basis})": case.source for case in entry.evidence}


def _row(entry: Judged, case: Case) -> tuple[str, ...]:
    from planner.claims.verdict import agrees, quantity
    from reports.text.messages import word

    if case.mid is None:
        return (case.what, case.basis, "-", "-", "-", "-", "not found")
    unit = case.unit or entry.claim.unit
    ends = [word(quantity(value, unit)) for value in (case.low, case.mid, case.high) if value is not None]
    says = "beside" if case.beside else "yes" if agrees(entry.claim, case) else "no"
    return (case.what, case.basis, *ends, str(case.count), says)
