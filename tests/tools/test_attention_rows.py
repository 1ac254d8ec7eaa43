from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tools.attention_rows import read_attention

HEADER = "system,attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,best_us,median_us"
COPY_S_PER_BYTE = 1e-12
"""Of the cache in the rows written here."""


def seconds(kv_heads: int) -> float:
    """Two sequences of 8192 with 32 heads of 128 at 500 TFLOP/s, and the copy of 2 x 2 bytes a key and value."""
    return 2 * 32 * 2 * 8192**2 * 128 / 500e12 + 4 * 2 * 8192 * kv_heads * 128 * COPY_S_PER_BYTE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [HEADER]
    for cache in ("bfloat16", "fp8"):
        for kv_heads in (1, 8, 32):
            us = 1e6 * seconds(kv_heads)
            lines.append(f"h100_sxm,bfloat16,{cache},2,8192,32,{kv_heads},128,{us / 1.2},{us}")
    (tmp_path / "attention_forward.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path


def test_the_copy_into_a_cache_is_taken_out_of_the_time_of_a_kernel(folder):
    (attention,) = read_attention(folder)

    assert attention.gpu == "h100-sxm5-80gb"
    assert attention.copy_s_per_byte == pytest.approx(COPY_S_PER_BYTE)
    assert attention.flop / attention.kernel_s == pytest.approx(np.full(3, 500e12))


def test_only_rows_whose_cache_has_the_type_of_the_queries_count(folder):
    (attention,) = read_attention(folder)

    assert list(attention.kv_heads) == [1, 8, 32]


def test_a_surface_has_no_head_size_that_nobody_measured(folder):
    (attention,) = read_attention(folder)

    assert [(axis.name, axis.first, axis.count) for axis in attention.axes] == [
        ("head_dim", 7, 1), ("heads", 0, 13), ("length", 9, 6),
    ]  # fmt: skip
