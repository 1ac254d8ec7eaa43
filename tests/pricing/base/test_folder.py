"""The shipped rows and the user's files: what is wrong in one is named with its file, line and column."""

from __future__ import annotations

import csv
import sys
from types import ModuleType

import pytest

from planner.errors import InputFileError
from pricing.base.folder import DATA, user_rows
from pricing.book.gpu_names import name_rules
from pricing.book.reading import shipped_book
from pricing.contracts.own_file import server_rows
from pricing.gpu_price.reserved import discounts
from pricing.place.carbon import embodied_of
from pricing.place.electricity import electricity_rows
from pricing.place.places import grid_rows, place_of
from pricing.place.site import pue_rows
from pricing.sources.azure import machines


def test_shipped_data_lie_in_the_package():
    assert (DATA / "gpu_prices.csv").is_file()


def test_a_missing_file_has_no_rows(tmp_path):
    assert list(user_rows(tmp_path / "nothing.csv", ("id",))) == []


def test_rows_come_with_the_whole_path_for_errors(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("id\na\nb\n", encoding="utf-8")

    assert [(row.file, row.line, row.text("id")) for row in user_rows(path, ("id",))] == [
        (str(path), 2, "a"),
        (str(path), 3, "b"),
    ]


def test_what_is_not_utf_8_or_no_file_is_invalid(tmp_path):
    broken = tmp_path / "latin.csv"
    broken.write_bytes(b"caf\xe9")
    with pytest.raises(InputFileError, match=r"latin\.csv:1: expected text in UTF-8"):
        user_rows(broken, ("id",))
    with pytest.raises(InputFileError, match="expected a file, found a directory"):
        user_rows(tmp_path, ("id",))


SHIPPED = [
    ("gpu_names.csv", "pattern", "(", name_rules),
    ("electricity.csv", "price_per_kwh", "cheap", electricity_rows),
    ("grid.csv", "year", "20x4", grid_rows),
    ("pue.csv", "low", "0.9", pue_rows),
    ("discounts.csv", "discount_ratio", "41", discounts),
    ("azure_skus.csv", "gpus", "0", machines),
    ("servers.csv", "with_server", "maybe", server_rows),
    ("embodied.csv", "kg_co2e", "", lambda: embodied_of("t4")),
    ("regions.csv", "place", "", lambda: place_of("aws", "us-east-1")),
    ("gpu_prices.csv", "date_latest", "soon", shipped_book),
]


def _pricing_modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith("pricing.")]


def _clear_caches() -> None:
    for module in _pricing_modules():
        for value in vars(module).values():
            getattr(value, "cache_clear", int)()


@pytest.mark.parametrize(("name", "key", "cell", "read"), SHIPPED, ids=[name for name, *_ in SHIPPED])
def test_a_damaged_shipped_file_is_refused_with_file_line_and_key(tmp_path, monkeypatch, name, key, cell, read):
    for module in _pricing_modules():
        if hasattr(module, "DATA"):
            monkeypatch.setattr(module, "DATA", tmp_path)
    _clear_caches()
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        header, first, *rest = list(csv.reader(file))
    first[header.index(key)] = cell
    with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, first, *rest])

    try:
        with pytest.raises(InputFileError, match=rf"^{name}:2: {key}: expected "):
            read()
    finally:
        _clear_caches()  # what was read of the damaged file would outlive this test
