"""What the price commands say of many lines."""

from __future__ import annotations

from datetime import date, timedelta
from types import SimpleNamespace

from mpplan.commands.catalogues.price_output import finding_lines, first_of
from pricing.book.check import PriceFinding
from pricing.book.reading import shipped_book


def test_the_first_lines_are_kept_and_the_others_counted():
    assert first_of(["a", "b"]) == ["a", "b"]
    assert first_of(["a", "b", "c"], most=2) == ["a", "b", "and 1 more"]
    assert first_of(iter("ab"), 2_000_000, most=2) == ["a", "b", "and 1999998 more"]


def test_own_and_unusual_rows_come_before_shipped_ones_that_are_merely_old():
    shipped = [row for row in shipped_book().rows if row.provider == "aws"][:3]
    own = [SimpleNamespace(id="mine", provider="acme"), SimpleNamespace(id="mine-old", provider="acme")]
    book = SimpleNamespace(rows=[*shipped, *own])
    findings = [PriceFinding(row_id=row.id, is_error=False, what="stale: old", is_stale=True) for row in shipped]
    findings += [PriceFinding(row_id="mine-old", is_error=False, what="stale: old", is_stale=True)]
    findings += [PriceFinding(row_id=name, is_error=False, what="6 USD") for name in (shipped[0].id, "mine")]

    newest = max(row.date_latest for row in shipped)
    told, grouped = finding_lines(findings, book, newest + timedelta(days=100))

    assert told == ["mine  6 USD", f"{shipped[0].id}  6 USD", "mine-old  stale: old"]
    assert grouped == [f"aws  stale: 3 shipped rows, the newest of {newest} (> 90 days)"]
    assert finding_lines(findings, book, date(2030, 1, 1))[1] == [
        f"aws  stale: 3 shipped rows, the newest of {newest} (> 18 months)"
    ]
