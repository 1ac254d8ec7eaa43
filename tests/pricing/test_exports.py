"""Every export is found by name and refuses an inconsistent document."""

from __future__ import annotations

import csv
import io

import pytest

from planner.errors import InputFileError, UsageError
from pricing.exports import EXPORTS, export_for, find_export


def needs(export):
    if export.is_binary:
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)
def test_every_export_makes_bytes_and_refuses_a_faulty_document(export, document):
    needs(export)

    assert len(export.render(document)) > 200
    document["plans"][0]["energy_mwh"]["mid"] *= 1000
    document["plans"][0]["energy_mwh"]["high"] *= 1000
    with pytest.raises(InputFileError, match="is a unit wrong"):
        export.render(document)


def test_an_export_is_found_by_its_name_or_by_the_ending_of_a_file():
    assert find_export("focus").module == "focus_csv"
    assert find_export("cost_csv").name == "cost-csv"
    assert [export_for(path).name for path in ("bill.parquet", "bill.csv", None)] == ["parquet", "cost-csv", "cost-csv"]
    assert [export_for(path).name for path in ("-", "bill", "v1.2/bill", "BILL.CSV")] == ["cost-csv"] * 4
    with pytest.raises(UsageError) as caught:
        find_export("focuss")
    assert "focus" in caught.value.hint


@pytest.mark.parametrize("path", ["bill.xlsx", "bill.json", "v1/bill.PDF"])
def test_an_ending_that_no_format_has_is_refused(path):
    with pytest.raises(UsageError, match="a bill cannot be written as") as caught:
        export_for(path)
    assert ".csv or .parquet" in caught.value.hint
    assert "cost-csv, focus, parquet" in caught.value.hint


@pytest.mark.parametrize("name", ["cost-csv", "focus"])
def test_a_csv_ends_its_lines_and_writes_booleans_as_the_csv_of_a_report(document, name):
    """RFC 4180, section 2: lines end in CR LF."""
    text = find_export(name).render(document).decode("utf-8")

    assert text.count("\r\n") == text.count("\n") > 1
    cells = {cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row}
    assert cells & {"true", "false"}
    assert not cells & {"True", "False"}
