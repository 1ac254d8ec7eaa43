"""Which tokens of a sequence a context parallel rank has. The attention itself runs in `test_parallel`."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.models.parallel.gathered_attention import positions_of  # noqa: E402

DEVICE = torch.device("cpu")


def test_a_rank_has_a_chunk_from_the_head_and_the_same_from_the_tail() -> None:
    assert positions_of(0, 2, 8, DEVICE).tolist() == [0, 1, 6, 7]
    assert positions_of(1, 2, 8, DEVICE).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_under_the_causal_mask_all_ranks_attend_to_as_many_tokens(ranks: int) -> None:
    attended = [int((positions_of(rank, ranks, 64, DEVICE) + 1).sum()) for rank in range(ranks)]

    assert attended == [64 * 65 // 2 // ranks] * ranks
