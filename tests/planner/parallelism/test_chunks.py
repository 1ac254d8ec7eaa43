import numpy as np

from planner.parallelism.chunks import even_chunks, needed_depth


def test_layers_are_even_chunks_alone_or_with_both_ends():
    # DeepSeek-V3's 61 layers and its module are 64 with both ends (`Et*2|(tt|)*29,t|mL`)
    chunks = np.array([2, 4, 16, 31, 32, 61, 62, 63, 64])

    assert even_chunks(62, chunks).tolist() == [True, True, True, True, True, False, True, False, True]
    assert not even_chunks(32, np.array([12])).any()


def test_a_stage_is_needed_where_fewer_would_leave_more_layers_on_the_fullest():
    assert needed_depth(62, np.array([1, 16, 21, 22, 24, 31, 62])).tolist() == [1, 16, 21, 21, 21, 31, 62]
