import pytest

from planner.hardware.failures import interruptions_per_gpu_hour, load_failures


def test_the_rate_is_that_of_the_largest_published_job():
    row = interruptions_per_gpu_hour()

    assert row.rate_per_gpu_hour == pytest.approx(419 / (16_384 * 54 * 24), rel=1e-3)  # arXiv 2407.21783, table 5
    assert "2407.21783" in row.evidence.source


def test_every_row_gives_a_rate_or_a_share_with_its_source():
    for row in load_failures().values():
        assert (row.rate_per_gpu_hour is None) != (row.ratio is None)
        assert row.evidence.source
        assert row.evidence.date
