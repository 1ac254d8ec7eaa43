"""`mpplan claims`: the claims of the literature, each with a verdict and its evidence."""

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
    list[str] | None, typer.Argument(metavar="ID", help="Claims to show with all their evidence, such as c14.")
]
Verdict = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Only claims with this verdict: holds, holds_under_conditions, does_not_hold or cannot_be_judged.",
    ),
]
Topic = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only claims on this topic: memory, speed, energy, cost and so on.")
]
Records = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Measurement record to use as evidence. Default: your newest."),
]

Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="First measure what this machine can: training steps, matrix products, checkpointing, optimizer updates.",
    ),
]
Device = Annotated[str | None, typer.Option("--device", metavar="DEVICE", help="With --measure: gpu or cpu.")]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time limit with --measure, for example 2m. Default: 4m.")
]

Numerics = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Output of `mpplan numerics --json`. Default: your newest, otherwise the one in the package.",
    ),
]


def claims(
    ids: Ids = None,
    verdict: Verdict = None,
    topic: Topic = None,
    records: Records = None,
    numerics: Numerics = None,
    measure: Measure = False,
    device: Device = None,
    budget: Budget = None,
    json: options.JsonFlag = False,
    output: options.OutputOption = None,
    quiet: options.QuietFlag = False,
) -> None:
    """Check published claims about lower precision against arithmetic, plans, published runs and your record.

    Each claim holds, holds under conditions, does not hold, or cannot be judged here; the evidence is named either way.
    """
    from mpplan.api.claims.ledger import chosen_claims, to_claims_document
    from mpplan.api.claims.ledger import claims as judge
    from planner.claims.verdict import VERDICTS

    if verdict is not None and verdict not in VERDICTS:
        raise UsageError(f"--verdict: unknown verdict `{verdict}`", hint=f"use one of {', '.join(VERDICTS)}")
    topics = [topic] if topic else []
    chosen = [claim.id for claim in chosen_claims(ids or (), topics)]
    place = open_output(output or "-")
    if measure:
        records = _measured(chosen, records, device or "gpu", budget, quiet=quiet)
    elif device or budget:
        raise UsageError("--device and --budget only apply with --measure", hint="add --measure, or leave them out")
    judged = judge(
        ids or (), topics=topics, records=records, numerics=numerics,
        watch=lambda total: counted(total, "claims judged", quiet=quiet),
    )  # fmt: skip
    shown = [entry for entry in judged if verdict in (None, entry.verdict)]
    if json:
        place.write(dumps(to_claims_document(shown), ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    elif ids:
        place.write("\n".join(_one(entry) for entry in shown) or _none(judged))
    else:
        place.write(_listed(shown))


def _measured(chosen: list[str], records: str | None, device: str, budget: str | None, *, quiet: bool) -> str:
    """Measure the points that the chosen claims read; return the record to judge by."""
    from mpplan.api.claims.record import BUDGET_S, measure_claims, workloads_for
    from mpplan.ui.probe_display import display
    from planner.units import parse_duration_s

    if records is not None:
        raise UsageError("--records and --measure each name a record", hint="give one of them")
    if device not in ("gpu", "cuda", "cpu"):
        raise UsageError(f"--device: unknown device `{device}`", hint="use `gpu` or `cpu`")
    budget_s = parse_duration_s(budget, "--budget") if budget else BUDGET_S
    workloads = workloads_for(chosen)
    try:
        with display(quiet=quiet) as screen:
            path, left_out = measure_claims(device, budget_s, screen, workloads)
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
    """List every claim with its verdict and the reason."""
    from reports.text.claims import counts, verdict_words
    from reports.text.messages import word

    blocks = []
    for entry in judged:
        head = f"{entry.claim.id}  {verdict_words(entry.verdict).upper()}: {entry.claim.text['en']}"
        blocks.append(wrapped(head, 5) + "\n" + wrapped(f"     {word(entry.words)}", 5) + "\n")
    total = ", ".join(f"{words}: {count}" for words, count in counts(judged) if count)
    end = f"Claims: {len(judged)}; {total or 'none shown'}. `mpplan claims c14` shows one with all its evidence."
    return "\n".join([*blocks, wrapped(end) + "\n"])


def _none(judged: list[Judged]) -> str:
    """Say that no named claim has the requested verdict, and which verdicts they have."""
    from reports.text.claims import verdict_words

    verdicts = "; ".join(f"{entry.claim.id}: {verdict_words(entry.verdict)}" for entry in judged)
    return wrapped(f"No claim matches. {verdicts}.") + "\n"


def _one(entry: Judged) -> str:
    """Describe one claim with all evidence for its verdict."""
    from reports.text.claims import source_of, verdict_words
    from reports.text.messages import word

    claim = entry.claim
    facts = [
        ("claim", f"{claim.text['en']} ({claim.id}, {claim.topic})"),
        ("verdict", verdict_words(entry.verdict)),
        ("because", word(entry.words)),
        ("decided by", ", ".join(entry.decided_by)),
        ("would decide", claim.decides),
        ("source", f"{claim.source}, {claim.date}"),
    ]
    rows = [_row(entry, case) for case in entry.evidence]
    heads = ("agrees", "low", "mid", "high", "cases", "basis", "evidence")
    notes = [wrapped(f"- {word(note)}", 2) for note in entry.notes]
    named = {f"{case.what} ({case.basis})": source_of(case) for case in entry.evidence}
    sources = [wrapped(f"- {what}: {source}", 2) for what, source in named.items()]
    parts = [details(facts), table(heads, rows), "\n".join(notes), "\n".join(["Sources:", *sources])]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _row(entry: Judged, case: Case) -> tuple[str, ...]:
    """Return the cells of a row, most decisive first, because a terminal cuts the end of a line."""
    from reports.text.claims import ends, stands_words

    figures = tuple(end or "-" for end in ends(entry.claim, case))
    number = "-" if case.mid is None else str(case.count)
    return (stands_words(entry.claim, case), *figures, number, case.basis, case.what)
