"""`mpplan prices` as a shell sees it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from planner.hardware.catalogue import load_gpus

ROOT = Path(__file__).parents[4]
AS_OF = ("--as-of", "2026-11-20")


def added(run, *more, price="2.10"):
    what = ("--gpu", "h100-sxm5-80gb", "--provider", "acme", "--date", "2026-11-01", "--source", "offer 12")
    return run("prices", "add", *what, "--price", price, *more)


def test_without_a_word_more_it_lists_rows_with_dates_and_sources(run):
    done = run("prices")

    assert done.code == 0
    assert done.err == ""
    line = next(line for line in done.out.splitlines() if line.startswith("p032 "))
    assert all(part in line for part in ("aws", "us-east-1", "6.88", "2025-11-01/2026-08-28", "skypilot-catalog"))


def test_a_short_name_of_several_parts_is_taken_for_the_usual_one_and_the_answer_says_so(run):
    shown, listed = run("prices", "show", "h100", *AS_OF), run("prices", "list", "--gpu", "H100", *AS_OF, "--json")

    assert (shown.code, listed.code) == (0, 0)
    assert shown.out.splitlines()[0].split() == ["gpu", "h100-sxm5-80gb"]
    assert {row["gpu"] for row in json.loads(listed.out)["rows"]} == {"h100-sxm5-80gb"}
    assert "`h100` is taken to mean h100-sxm5-80gb, the usual one" in shown.err


def test_a_list_can_be_narrowed_and_is_json_where_asked(run):
    done = run(
        "prices", "list", "--gpu", "H100 SXM5 80GB", "--provider", "aws", "--commitment", "spot", *AS_OF, "--json"
    )

    document = json.loads(done.out)
    assert document["schema"] == "mpplan.prices/1"
    assert {(row["provider"], row["commitment"]) for row in document["rows"]} == {("aws", "spot")}
    assert all(not row["stale"] for row in document["rows"])


def test_every_shape_of_document_has_an_id_of_its_own_which_the_page_lists(run, home, monkeypatch):
    monkeypatch.setattr("pricing.sources.web.time.sleep", lambda _: None)
    (home / "own.csv").write_text("gpu,price_per_gpu_h\nl4,0.6\n", encoding="utf-8")
    asked = {
        "prices": ("list",),
        "price": ("show", "l4"),
        "price-row": ("show", "p032"),
        "prices-add": ("add", "--gpu", "l4", "--provider", "acme", "--price", "0.5", "--source", "offer 12"),
        "prices-import": ("import", "own.csv", "--provider", "acme", "--date", "2026-08-01"),
        "prices-refresh": ("refresh", "--source", "azure", "--address", "http://127.0.0.1:9/"),
        "prices-check": ("check",),
        "prices-repair": ("repair",),
    }
    documents = {kind: json.loads(run("prices", *arguments, "--json").out) for kind, arguments in asked.items()}
    page = (ROOT / "docs/report-schema.md").read_text(encoding="utf-8")

    assert [document["schema"] for document in documents.values()] == [f"mpplan.{kind}/1" for kind in asked]
    assert len({frozenset(document) for document in documents.values()}) == len(asked)
    assert [kind for kind in asked if f"| `mpplan.{kind}/1` |" not in page] == []


def test_replaced_rows_are_listed_only_with_all(run):
    current = run("prices", "list", "--provider", "lambda", "--gpu", "h100-sxm5-80gb", *AS_OF).out
    everything = run("prices", "list", "--provider", "lambda", "--gpu", "h100-sxm5-80gb", *AS_OF, "--all").out

    assert "p152" not in current
    assert "p152" in everything


def test_a_name_that_no_row_has_offers_near_ones(run):
    done = run("prices", "list", "--provider", "awz")
    error, hint = done.err.splitlines()

    assert done.code == 2
    assert error == "error: no rows with provider `awz`"
    assert hint.startswith("hint: choose one of aws")


def test_show_says_what_a_plan_would_take_and_from_which_rows(run):
    done = run("prices", "show", "h100-sxm5-80gb", *AS_OF)

    assert "2.32 - 3.49 - 6.61 USD per GPU-hour" in done.out
    assert "median over 7 providers" in done.out
    assert done.out.count("price:p") == 7


def test_show_warns_of_stale_rows(run):
    told = run("prices", "show", "a40", "--as-of", "2027-06-01").err

    assert "stale prices: those of" in told
    assert "are more than 90 days old on 2027-06-01" in told


def test_show_of_a_row_is_the_row(run):
    assert "price_per_gpu_h    6.88" in run("prices", "show", "p032").out
    assert json.loads(run("prices", "show", "p032", "--json").out)["row"]["price_per_gpu_h"] == "6.88"


def test_an_added_row_is_used_from_then_on_and_is_not_added_twice(run, home):
    assert "added r" in added(run).err
    assert "has this row already" in added(run).err
    assert "acme" in run("prices", "list", "--provider", "acme").out
    assert run("prices", "show", "h100-sxm5-80gb", "--provider", "acme", *AS_OF).out.count("2.10 - 2.10 - 2.10") == 1
    assert (Path(os.environ["XDG_DATA_HOME"]) / "mpplan" / "prices.csv").is_file()


def test_another_price_for_the_same_day_does_not_replace_the_row(run):
    added(run)

    done = added(run, price="1.99")

    assert done.code == 2
    assert "another price for acme h100-sxm5-80gb on-demand on 2026-11-01; it is kept" in done.err


@pytest.mark.parametrize(
    ("more", "price", "message"),
    [
        ((), "0", "expected a decimal number above 0, found `0`"),
        ((), "-3", "expected a decimal number above 0, found `-3`"),
        ((), "cheap", "expected a decimal number above 0, found `cheap`"),
        ((), "349", "(is it per instance, or in cents?), found `349`"),
        (("--currency", "Taler"), "2", "expected an ISO 4217 code such as USD, found `Taler`"),
        (("--commitment", "weekly"), "2", "expected one of `on-demand`, `spot`, `1y`, `3y`, found `weekly`"),
    ],
)
def test_a_price_that_cannot_be_is_refused_in_one_line(run, more, price, message):
    done = added(run, *more, price=price)

    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 2


def test_a_spot_price_above_on_demand_is_refused(run):
    added(run)

    done = added(run, "--commitment", "spot", price="2.50")

    assert done.code == 2
    assert "the spot price 2.50 is above the on-demand price 2.10" in done.err


def test_a_price_far_from_the_others_is_added_with_a_warning(run):
    assert "per instance?" in added(run, price="27.5").err


def test_the_shipped_book_passes_its_check_with_its_old_rows_named(run):
    done = run("prices", "check", *AS_OF)

    assert done.code == 0
    assert "0 errors" in done.err
    assert done.out.startswith("warning  p001  3.06 USD, against a median")
    assert re.search(r"\nwarning  azure  stale: \d+ shipped rows, the newest of 2025-03-02 \(> 18 months\)\n", done.out)
    assert len(done.out.splitlines()) < 40
    findings = json.loads(run("prices", "check", *AS_OF, "--json").out)["findings"]
    assert {"row_id": "p147", "is_error": False, "what": "stale: 2024-04-17 is more than 18 months ago"} in findings
    assert run("prices", "check", *AS_OF, "--strict").code == 5


def test_a_damaged_book_is_an_input_error_with_its_line(run, home):
    (home / "book.csv").write_text("id,gpu\nx,l4\n", encoding="utf-8")

    done = run("prices", "check", "book.csv")

    assert done.code == 3
    assert "book.csv:1: provider: expected a column of this name" in done.err
    assert run("prices", "check", "nothing.csv").code == 2


def test_an_own_csv_is_imported_with_semicolons_and_mark(run, home):
    text = "gpu;provider;price_per_gpu_h;currency;date\nh100-sxm5-80gb;Wolke;2,05;USD;2026-10-01\n"
    (home / "mine.csv").write_text(text, encoding="utf-8-sig")

    done = run("prices", "import", "mine.csv")

    assert "mine.csv: 1 row added, 0 already there" in done.err
    row = json.loads(run("prices", "list", "--provider", "wolke", "--json", *AS_OF).out)["rows"][0]
    assert (row["price_per_gpu_h"], row["date_latest"]) == ("2.05", "2026-10-01")
    assert row["source"].startswith("mine.csv sha256:")


def test_a_skypilot_catalogue_needs_its_provider(run, home):
    header = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n"
    (home / "vms.csv").write_text(header + "p5.48xlarge,H100,8,50.0,,us-east-1\n", encoding="utf-8")

    assert "give --provider" in run("prices", "import", "vms.csv").err
    assert json.loads(run("prices", "import", "vms.csv", "--provider", "aws", "--json").out)["added"] == 1


def test_a_book_can_be_carried_to_another_machine(run, home):
    added(run)
    book = Path(os.environ["XDG_DATA_HOME"]) / "mpplan" / "prices.csv"
    book.rename(home / "carried.csv")

    assert "1 row added" in run("prices", "import", "carried.csv").err


def test_an_invalid_csv_refuses_the_whole_file_unless_told_otherwise(run, home):
    (home / "mine.csv").write_text("gpu,price_per_gpu_h\nl4,0.5\nl4,0\n", encoding="utf-8")

    done = run("prices", "import", "mine.csv", "--provider", "acme")
    assert done.code == 3
    assert "mine.csv:3: price_per_gpu_h: expected a price above 0, found `0`" in done.err
    assert run("prices", "list", "--provider", "acme").code == 2

    done = run("prices", "import", "mine.csv", "--provider", "acme", "--skip-invalid")
    assert "left out 1" in done.err
    assert "1 row added" in done.err


def test_a_refresh_without_an_answer_keeps_the_book_and_says_so(run, monkeypatch):
    monkeypatch.setattr("pricing.sources.web.time.sleep", lambda _: None)
    added(run)

    done = run("prices", "refresh", "--source", "azure", "--address", "http://127.0.0.1:9/prices")

    assert done.code == 2
    assert "no source answered: azure (http://127.0.0.1:9/prices" in done.err
    assert run("prices", "list", "--provider", "acme").code == 0


def test_a_refresh_offline_without_a_stored_answer_says_so(run):
    assert "no answer from azure is stored" in run("prices", "refresh", "--source", "azure", "--offline").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "aws"), "unknown source `aws`"),
        (("--address", "http://127.0.0.1:9"), "--address needs exactly one --source"),
    ],
)
def test_refresh_flags_are_checked_first(run, arguments, message):
    done = run("prices", "refresh", *arguments)

    assert (done.code, message in done.err) == (2, True)


@pytest.mark.parametrize("gpu", sorted(load_gpus()))
def test_every_gpu_of_the_catalogue_can_be_shown(run, gpu):
    assert run("prices", "show", gpu, *AS_OF).code == 0


def test_a_day_is_a_date(run):
    assert "`tomorrow` is not a date" in run("prices", "list", "--as-of", "tomorrow").err


def test_no_list_loads_pandas_or_torch(shell):
    done = shell("prices", "list", PYTHONPROFILEIMPORTTIME="1")

    assert done.code == 0
    assert not [line for line in done.err.splitlines() if line.split("|")[-1].strip() in ("pandas", "torch")]
