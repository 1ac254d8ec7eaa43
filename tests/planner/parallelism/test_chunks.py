import numpy as np

from planner.parallelism.chunks import even_chunks


def test_layers_are_even_chunks_alone_with_both_ends_or_with_a_layer_that_predicts_a_second_token_too():
    # DeepSeek-V3's 61 layers: with embedding, head and the layer that predicts a second token 64 (`Et*2|(tt|)*29,t|mL`)
    chunks = np.array([3, 7, 16, 32, 61, 63, 64])

    assert even_chunks(61, chunks).tolist() == [True, True, True, True, True, True, False]  # 64 is more than 61 + 2
    assert not even_chunks(32, np.array([12])).any()
