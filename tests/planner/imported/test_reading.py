"""Order statistics of what other tools sampled."""

from __future__ import annotations

from planner.imported.reading import Training, statistics_of


def test_the_interval_of_few_samples_does_not_exist() -> None:
    five, six = statistics_of([1.0, 2.0, 3.0, 4.0, 5.0]), statistics_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    assert (five.median_s, five.ci_low_s, five.ci_high_s) == (3.0, None, None)
    assert (six.median_s, six.ci_low_s, six.ci_high_s) == (3.5, 1.0, 6.0)  # of six only the whole range has 97 %


def test_the_interval_of_many_samples_has_the_ranks_of_the_binomial() -> None:
    hundred = statistics_of([float(n) for n in range(1, 101)])

    assert (hundred.ci_low_s, hundred.ci_high_s) == (40.0, 61.0)  # ranks 40 and 61 (Conover 1999, table of n = 100)


def test_tokens_of_a_gpu_are_known_only_where_they_are_whole() -> None:
    assert Training(gpus=8, seq_len=4096, global_batch=128).tokens_per_gpu == 65536
    assert Training(gpus=3, seq_len=4096, global_batch=1).tokens_per_gpu is None
    assert Training(seq_len=4096, global_batch=1).tokens_per_gpu is None
