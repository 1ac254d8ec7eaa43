"""Software that is named by a version is of the month in which that came out."""

from __future__ import annotations

import pytest

from planner.training.releases import load_releases, mid_month, year_of_release


def test_the_middle_of_a_month_is_half_a_twelfth_after_its_begin():
    assert mid_month(2024, 1) == pytest.approx(2024 + 0.5 / 12)
    assert mid_month(2025, 12) == pytest.approx(2025 + 11.5 / 12)


@pytest.mark.parametrize(
    ("text", "year", "month"),
    [
        ("Megatron-Core r0.8.0", 2024, 8),
        ("Megatron-Core 0.6 + TE", 2024, 4),
        ("megatron core core_v0.15.0", 2025, 12),
        ("MLPerf Training v5.1 (NVIDIA)", 2025, 11),
    ],
)
def test_a_release_is_found_in_the_ways_that_sources_write_it(text, year, month):
    assert year_of_release(text) == mid_month(year, month)


@pytest.mark.parametrize("text", ["", "Megatron-Core", "Megatron-Core 0.81", "MLPerf Inference v4.1", "NeMo 0.8"])
def test_no_other_text_names_one(text):
    assert year_of_release(text) is None


def test_later_versions_of_one_software_came_out_later():
    for pattern in {release.pattern for release in load_releases()}:
        releases = [release for release in load_releases() if release.pattern == pattern]
        by_version = sorted(releases, key=lambda release: [int(part) for part in release.version.split(".")])

        assert [release.year for release in by_version] == sorted(release.year for release in releases)
        assert all(release.source for release in releases)
