from dataclasses import fields
from pathlib import Path

import pytest

from planner.validation.runs import PublishedRun
from planner.validation.text_patterns import (
    BF16_PEAK,
    LIMITED,
    PATTERNS,
    RECOMPUTE_COUNTED,
    limit_unsaid,
    software_year,
)

COLUMNS_DESCRIBED = Path(__file__).parents[3] / "docs" / "accuracy.md"


def test_each_word_is_of_a_column_of_published_runs_and_says_what_it_means():
    columns = {field.name for field in fields(PublishedRun)}

    assert all(word.column in columns and word.meaning for word in PATTERNS)
    assert all(word.pattern == word.pattern.lower() for word in PATTERNS)  # they are searched for in lower case


def test_the_words_of_a_convention_stand_where_the_columns_of_a_file_are_described():
    lines = COLUMNS_DESCRIBED.read_text(encoding="utf-8").splitlines()
    described = next(line for line in lines if line.startswith("| `flops_convention`"))

    assert [word.meaning for word in PATTERNS if word.column == "flops_convention" and not word.says(described)] == [
        "attention is counted in full, as where a text has neither this nor `halved`"  # what is so anyway
    ]


def test_a_word_is_read_in_any_case_and_whole_where_it_could_be_part_of_another():
    assert BF16_PEAK.says("MFU vs 989 TF")
    assert RECOMPUTE_COUNTED.says("8N only")
    assert not RECOMPUTE_COUNTED.says("128N")


def test_a_limit_is_unsaid_where_the_part_s_name_alone_tells_of_it():
    assert LIMITED.says("B200-SXM-180GB-power-limited")
    assert limit_unsaid("b200-sxm-180gb-power-limited", None)
    assert not limit_unsaid("b200-sxm-180gb-power-limited", 700.0)
    assert not limit_unsaid("b200-sxm-180gb", None)


@pytest.mark.parametrize(("year_month", "year"), [("24.01", 2024 + 0.5 / 12), ("25.12", 2025 + 11.5 / 12)])
def test_a_release_named_by_year_and_month_is_the_middle_of_that_month(year_month, year):
    assert software_year(f"NeMo {year_month}") == pytest.approx(year)
    assert software_year("torchtitan (2024)") == 2024.5
    assert software_year("Megatron-LM v2.7") is None
    assert software_year("PyTorch 25.13") is None


@pytest.mark.parametrize(
    ("framework", "year"),
    [
        ("Megatron-Core r0.8.0", 2024 + 7.5 / 12),  # megatron-core 0.8.0: 13 August 2024
        ("Megatron-Core 0.6 + TE", 2024 + 3.5 / 12),  # 0.6.0: 19 April 2024
        ("MLPerf Training v4.1 (NVIDIA)", 2024 + 10.5 / 12),  # November 2024
        ("MLPerf Training v0.7 (Fujitsu)", 2020 + 6.5 / 12),  # 29 July 2020
        ("NeMo/Megatron-Core (DGX Cloud recipes v24.11.1)", 2024 + 10.5 / 12),  # its own year and month come first
        ("Megatron-Core MoE", None),
        ("Megatron-Core 0.88", None),
    ],
)
def test_a_version_whose_day_is_known_is_of_that_month(framework, year):
    assert software_year(framework) == (None if year is None else pytest.approx(year))
