"""The commands on whole price books: what is written reads back, bad lines are named, and nothing hangs."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpplan.commands.catalogues.price_files import MOST_FINDINGS

AS_OF = ("--as-of", "2026-11-20")


def added(run, *more, price="2.10"):
    what = ("--gpu", "h100-sxm5-80gb", "--provider", "acme", "--date", "2026-11-01", "--source", "offer 12")
    return run("prices", "add", *what, "--price", price, *more)


def book():
    return Path(os.environ["XDG_DATA_HOME"]) / "mpplan" / "prices.csv"


def test_an_added_note_with_a_line_end_is_read_back(run):
    assert added(run, "--notes", "x\ry").code == 0
    assert json.loads(run("prices", "list", "--provider", "acme", "--json", *AS_OF).out)["rows"][0]["notes"] == "x y"
    assert added(run, "--notes", "x" * 140_000, "--region", "us").code == 2


def test_a_price_of_a_day_that_has_not_come_is_refused(run, tmp_path):
    late = run(
        "prices", "add", "--gpu", "l4", "--provider", "acme", "--date", "2126-11-01", "--source", "x", "--price", "1"
    )
    assert late.code == 2
    assert "--date: 2126-11-01 is after today" in late.err
    assert "hint: date a price by the day on which it was seen" in late.err

    own = tmp_path / "own.csv"
    own.write_text("gpu,price_per_gpu_h,date\nl4,0.5,2126-11-01\nl4,0.6,2026-10-01\n", encoding="utf-8")
    assert run("prices", "import", str(own), "--provider", "acme").code == 3
    assert run("prices", "import", str(own), "--provider", "acme", "--date", "2126-01-01").code == 2
    assert "1 row added" in run("prices", "import", str(own), "--provider", "acme", "--skip-invalid").err
    assert not any("2126" in line for line in book().read_text(encoding="utf-8").splitlines())


def test_a_price_book_with_a_row_of_a_day_that_has_not_come_is_refused_unless_such_rows_are_left_out(run, tmp_path):
    added(run)
    other = tmp_path / "book.csv"
    text = book().read_text(encoding="utf-8").replace("acme", "other")
    other.write_text(text.replace("2026-11-01", "2126-11-01"), encoding="utf-8")

    done = run("prices", "import", str(other))
    assert done.code == 3
    assert "date_earliest: 2126-11-01 is after today" in done.err
    left = run("prices", "import", str(other), "--skip-invalid")
    assert left.code == 0
    assert "left out 1: rows dated after today" in left.err


def test_an_import_in_a_currency_without_a_rate_says_that_no_plan_uses_it(run, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("gpu,price_per_gpu_h,currency\nh100-sxm5-80gb,9,USD\nh200-sxm-141gb,2,GBP\n", encoding="utf-8")

    told = run("prices", "import", str(own), "--provider", "acme").err
    assert "2 rows added" in told
    assert "prices in GBP are not used: `exchange_rates.csv` of your data folder has no rate on or before" in told


def test_one_row_is_spoken_of_as_one(run, tmp_path):
    added(run)
    own = tmp_path / "own.csv"
    own.write_text("gpu,price_per_gpu_h,date\nh100-sxm5-80gb,9,2026-11-01\n", encoding="utf-8")

    done = run("prices", "import", str(own), "--provider", "acme")
    assert "1 row has another price in the book for the same days; what the book has is kept" in done.err


def test_a_bad_row_of_the_book_is_warned_of_once_and_the_others_count(run):
    added(run)
    with book().open("a", encoding="utf-8") as file:
        file.write("junk\nr9,h100-sxm5-80gb,x,,,1,on-demand,2,usd,provider,2026-11-01,2026-11-01,,offer,\n")

    done = run("prices", "show", "h100-sxm5-80gb", "--provider", "acme", *AS_OF)

    assert done.code == 0
    assert (
        done.err.count(
            "lines without a usable price (3, 4), which are ignored: `mpplan prices repair` moves them to another file"
        )
        == 1
    )
    listed = run("prices", "list", "--provider", "acme", *AS_OF)
    assert (listed.code, listed.err.count("prices.csv has lines without a usable price")) == (0, 1)


def test_check_names_every_bad_line_and_how_to_mend_the_book(run):
    added(run)
    with book().open("a", encoding="utf-8") as file:
        file.write("junk\n" * 30)

    done = run("prices", "check", *AS_OF)

    assert done.code == 3
    assert done.out.count("expected 15 cells, found 1") == 20
    assert "and 10 more" in done.out
    assert "hint: correct lines 3, 4, 5" in done.err
    assert "… (30), or `mpplan prices repair` repairs the book" in done.err
    document = json.loads(run("prices", "check", *AS_OF, "--json").out)
    assert (document["bad_lines_total"], len(document["bad_lines"])) == (30, 20)


def test_repair_is_a_dry_run_until_it_is_told_to_write(run):
    added(run)
    before = book().read_bytes()
    book().write_bytes(before + b"junk\n")

    dry = run("prices", "repair")
    assert (dry.code, book().read_bytes()) == (0, before + b"junk\n")
    assert "rows that would be kept: 1; lines that would be moved to" in dry.err

    assert "rows kept: 1; lines moved to" in run("prices", "repair", "--yes").err
    assert book().read_bytes() == before
    assert book().with_name("prices.set-aside.csv").read_bytes().endswith(b"\njunk\n")
    assert json.loads(run("prices", "repair", "--json").out)["bad_lines_total"] == 0
    assert "nothing to repair" in run("prices", "repair").err


@pytest.mark.parametrize(
    ("name", "why"), [(".", "expected a file, found a"), ("pipe", "pipe:1:"), ("/dev/zero", "expected a file, found a")]
)
def test_what_is_no_file_is_refused_at_once_and_a_pipe_that_nobody_writes_is_empty(run, home, name, why):
    os.mkfifo(home / "pipe")

    for command in ("import", "check"):
        done = run("prices", command, name)
        assert (done.code, why in done.err) == (3, True), done.err


def test_an_import_with_an_amount_that_none_can_be_is_refused_with_file_and_row(run, home):
    (home / "mine.csv").write_text("gpu,price_per_gpu_h,currency\nl4,1e400,EUR\n", encoding="utf-8")

    done = run("prices", "import", "mine.csv", "--provider", "acme")

    assert done.code == 3
    assert "mine.csv:2: price_per_gpu_h: expected a price above 0, found `1e400`" in done.err
    assert not book().exists()


def test_a_password_in_an_address_is_not_repeated(run, monkeypatch):
    monkeypatch.setattr("pricing.sources.web.time.sleep", lambda _: None)

    done = run("prices", "refresh", "--source", "azure", "--address", "http://ada:s3cr3t@127.0.0.1:9/prices")

    assert done.code == 2
    assert "http://127.0.0.1:9/prices" in done.err
    assert "s3cr3t" not in done.err


@pytest.mark.skipif(not hasattr(__import__("time"), "tzset"), reason="no time zones to set")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_the_day_of_a_price_is_that_of_utc_in_every_time_zone(run, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        what = ("--gpu", "l4", "--provider", "acme", "--price", "0.5", "--source", "offer")
        before = datetime.now(UTC).date()
        run("prices", "add", *what)
        row = json.loads(run("prices", "list", "--provider", "acme", "--json").out)["rows"][0]
        assert before.isoformat() <= row["date_latest"] <= datetime.now(UTC).date().isoformat()
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_check_prints_the_first_findings_and_counts_the_others(run, home):
    (home / "book.csv").write_text(
        "id,gpu,provider,region,instance,gpus_per_instance,commitment,price_per_gpu_h,currency,seller,date_earliest,"
        "date_latest,date_basis,source,notes\n"
        + "".join(f"x{at},no-gpu,a,,,1,spot,1,USD,provider,2026-11-01,2026-11-01,,offer,\n" for at in range(150)),
        encoding="utf-8",
    )

    done = run("prices", "check", "book.csv", *AS_OF)

    assert done.code == 3
    assert done.out.count("is not in the GPU catalogue") == MOST_FINDINGS
    assert "and 50 more" in done.out
