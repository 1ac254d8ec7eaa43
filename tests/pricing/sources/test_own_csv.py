"""One's own price list: every separator, a byte-order mark, a hundred thousand rows, and every mistake by its line."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError
from pricing.sources.own_csv import Fallbacks, file_source, read_frame, read_own_csv


@pytest.fixture
def read(tmp_path, today):
    def make(text, *, encoding="utf-8", skip_invalid=False, provider="acme"):
        path = tmp_path / "mine.csv"
        path.write_bytes(text.encode(encoding))
        fallbacks = Fallbacks(provider=provider, currency="USD", day=today, source="mine.csv")
        return read_own_csv(read_frame(path.read_bytes(), path.name), "mine.csv", fallbacks, skip_invalid=skip_invalid)

    return make


def test_two_columns_are_enough(read, today):
    imported = read("gpu,price_per_gpu_h\nh100-sxm5-80gb,2.10\n").rows[0]

    assert (imported.gpu, imported.price_per_gpu_h, imported.provider, imported.currency) == (
        "h100-sxm5-80gb",
        Decimal("2.10"),
        "acme",
        "USD",
    )
    assert (imported.date_latest, imported.commitment, imported.source) == (today, "on-demand", "mine.csv")


def test_semicolons_decimal_commas_and_a_byte_order_mark_are_read(read):
    text = "gpu;provider;price_per_gpu_h;currency;date\r\nA100-SXM4-80GB;Wolke;1,85;EUR;2026-10-01\r\n"

    imported = read(text, encoding="utf-8-sig").rows[0]

    assert (imported.gpu, imported.provider, imported.price_per_gpu_h) == ("a100-sxm4-80gb", "wolke", Decimal("1.85"))
    assert (imported.currency, imported.date_latest) == ("EUR", date(2026, 10, 1))


@pytest.mark.parametrize("column", ["price_per_gpu_h", "price_per_instance_h"])
def test_a_price_that_may_mean_thousands_is_not_guessed(read, column):
    text = f"gpu;{column};gpus_per_instance;currency\nh100-sxm5-80gb;1,100;8;JPY\n"

    with pytest.raises(InputFileError, match=rf"mine.csv:2: {column}: .* found `1,100`: write it with a point"):
        read(text)


def test_tabs_are_read(read):
    assert read("gpu\tprice_per_gpu_h\nl4\t0.5\n").rows[0].gpu == "l4"


def test_a_price_per_instance_is_divided_by_its_gpus(read):
    text = "gpu,price_per_instance_h,gpus_per_instance\nh100-sxm5-80gb,98.32,8\n"

    assert read(text).rows[0].price_per_gpu_h == Decimal("12.29")


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("h100,2.1,on-demand,USD,2026-01-01", "gpu: expected a GPU of the catalogue, found `h100`"),
        ("h100,2.1,on-demand,USD,2026-01-01", "found `h100`: say which one: `h100-"),
        ("H100-SXM5-80GBs,2,spot,USD,2026-01-01", "found `H100-SXM5-80GBs`: did you mean `h100-sxm5-80gb`"),
        ("l4,0,on-demand,USD,2026-01-01", "price_per_gpu_h: expected a price above 0, found `0`"),
        ("l4,-1,on-demand,USD,2026-01-01", "price_per_gpu_h: expected a price above 0, found `-1`"),
        ("l4,,on-demand,USD,2026-01-01", "price_per_gpu_h: expected a price above 0, found ``"),
        ("l4,349,on-demand,USD,2026-01-01", "349 USD per GPU-hour is not plausible; is it per instance, or in cents?"),
        ("l4,1,monthly,USD,2026-01-01", "commitment: expected one of on-demand, spot, 1y, 3y, found `monthly`"),
        ("l4,1,spot,Taler,2026-01-01", "currency: expected an ISO 4217 code, found `Taler`"),
        ("l4,1,spot,USD,01.02.2026", "date: expected a date such as 2026-08-28, not after today"),
        ("l4,1,spot,USD,2126-01-01", "in UTC), found `2126-01-01`"),
    ],
)
def test_a_wrong_cell_refuses_the_file_and_names_its_line(read, cells, problem):
    text = f"gpu,price_per_gpu_h,commitment,currency,date\nl4,1,spot,USD,2026-01-01\n{cells}\n"

    with pytest.raises(InputFileError) as caught:
        read(text)

    assert caught.value.message.startswith("mine.csv:3: ")
    assert problem in caught.value.message


def test_wrong_rows_can_be_left_out_and_are_counted(read):
    imported = read("gpu,price_per_gpu_h\nl4,0\nt4,0\nl4,0.5\n", skip_invalid=True)

    assert [row.gpu for row in imported.rows] == ["l4"]
    assert imported.skipped == {"price_per_gpu_h: expected a price above 0, found `0`": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gpu\nl4\n", "header: expected `gpu` and one of `price_per_gpu_h`, `price_per_instance_h`"),
        ("gpu,price_per_gpu_h,colour\nl4,1,red\n", "colour: unknown column"),
        ("gpu,price_per_instance_h\nl4,1\n", "gpus_per_instance: expected this column"),
        ("", "header: expected column names"),
    ],
)
def test_a_header_that_lacks_something_is_named(read, text, problem):
    with pytest.raises(InputFileError) as caught:
        read(text)

    assert problem in caught.value.message


def test_a_file_without_a_provider_needs_one(read):
    with pytest.raises(InputFileError) as caught:
        read("gpu,price_per_gpu_h\nl4,1\n", provider=None)

    assert caught.value.hint == "or give --provider"


def test_a_line_with_too_many_cells_is_said(read):
    with pytest.raises(InputFileError, match="not a CSV: Expected 2 fields in line 3, saw 3"):
        read("gpu,price_per_gpu_h\nl4,1\nl4,1,2\n")
    with pytest.raises(InputFileError, match="2: expected 2 cells, found more"):
        read("gpu,price_per_gpu_h\nl4,1,\nl4,1,\n")  # pandas would shift both columns


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"gpu,caf\xe9\n", 1),
        (b"gpu,price_per_gpu_h\ncaf\xe9,1\n", 2),
        (b"\xff\xfeg\x00p\x00u\x00\n\x00", 1),
        (b"gpu,notes\nl4,a\nl4,caf\xe9\n", 3),
    ],
)
def test_what_is_not_utf_8_is_said_with_its_line_and_in_no_words_of_python(content, line):
    with pytest.raises(InputFileError) as caught:
        read_frame(content, "latin.csv")

    assert caught.value.message == f"latin.csv:{line}: encoding: expected UTF-8"
    assert caught.value.hint == "save it as CSV UTF-8"


def test_every_line_at_fault_is_named(read):
    with pytest.raises(InputFileError) as caught:
        read("gpu,price_per_gpu_h\nl4,0\nl4,1\nl4,-1\n")

    assert caught.value.message.startswith("mine.csv:2: price_per_gpu_h")
    assert caught.value.hint == "correct lines 2, 4, or leave such rows out with --skip-invalid"


def test_amounts_beyond_measure_and_counts_that_are_no_digits_are_refused(read):
    for price in ("1e400", "1e-400", "inf", "nan", "-1", "1e14"):
        with pytest.raises(InputFileError, match="price_per_gpu_h: expected a price"):
            read(f"gpu,price_per_gpu_h,currency\nl4,{price},EUR\n")
    for count in ("²", "9" * 5000, "0", "1.5", "-1"):
        with pytest.raises(InputFileError, match="gpus_per_instance: expected a count of 1 or more"):
            read(f"gpu,price_per_instance_h,gpus_per_instance\nl4,1,{count}\n")


def test_cells_are_kept_on_one_line_and_within_bounds(read):
    text = 'gpu,price_per_gpu_h,notes\nl4,1,"x\ry\nz"\n'

    assert read(text).rows[0].notes == "x y z"
    with pytest.raises(InputFileError, match="notes: expected at most 10000 characters"):
        read("gpu,price_per_gpu_h,notes\nl4,1," + "x" * 140_000 + "\n")


def test_a_hundred_thousand_rows_are_read(read):
    lines = [f"l4,{1 + at % 900 / 1000:.3f},r{at}" for at in range(100_000)]

    imported = read("gpu,price_per_gpu_h,region\n" + "\n".join(lines) + "\n")

    assert len(imported.rows) == 100_000
    assert imported.rows[-1].region == "r99999"


def test_the_source_of_a_file_is_its_name_and_hash():
    assert file_source(b"abc", "mine.csv") == "mine.csv sha256:ba7816bf8f01"
