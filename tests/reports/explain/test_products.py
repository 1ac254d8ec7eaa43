from __future__ import annotations

from reports.explain.products import attention_node, narrow_words, product_nodes

PRODUCT = {
    "where": "layer", "m": 2048.0, "n": 4096.0, "k": 4096.0, "count": 1.0, "compute": "fp8",
    "step_s": 3e-4, "tflops": 687.0, "share_ratio": 0.25,
    "evidence": "kernels:matmul:h100-sxm5-80gb:fp8",
}  # fmt: skip
GAIN = {
    "m": 2048.0, "n": 4096.0, "k": 4096.0, "gain_ratio": 1.12, "pays_from_hidden": 2048.0,
    "strong_from_hidden": 6144.0, "pays_from_tokens": 1024.0,
}  # fmt: skip


def known(evidence_id: str) -> dict[str, str]:
    """A source, transferred where its id ends in the GPU that it is scaled to."""
    return {"id": evidence_id, "kind": "transferred" if evidence_id.count(":") > 3 else "published"}


def test_a_kernel_of_another_gpu_is_not_said_to_be_measured_on_this_one():
    scaled = PRODUCT | {"evidence": "kernels:matmul:l40s:fp8:rtx-4090"}
    (node,) = product_nodes({"products": [scaled], "step_s": {"matmul": 2.0}}, known)

    assert node.note.endswith("measured by shape on L40S and scaled to this GPU")
    assert attention(evidence="kernels:attention:l40s:bf16:rtx-4090").note.endswith("on L40S and scaled to this GPU")


def test_a_product_shows_its_shape_rate_time_and_source():
    (node,) = product_nodes({"products": [PRODUCT], "step_s": {"matmul": 2.0}}, known)

    assert node.label == "Product of a layer, 2,048 × 4,096 × 4,096 in FP8"
    assert (node.value, node.unit) == (0.5, "s")
    assert node.note == "687 TFLOP/s, 300 µs each; measured by shape"
    assert node.evidence == ("kernels:matmul:h100-sxm5-80gb:fp8",)


def test_grouped_products_say_how_many_and_an_unmeasured_one_that_it_is():
    (node,) = product_nodes(
        {"products": [PRODUCT | {"count": 8.0, "evidence": None}], "step_s": {"matmul": 2.0}}, known
    )

    assert node.label == "Product of a layer, 8 times 2,048 × 4,096 × 4,096 in FP8"
    assert "not measured here" in node.note
    assert node.evidence == ()


ATTENTION = {
    "heads": 32.0, "head_dim": 128.0, "length": 8192.0, "chunks": 1.0, "compute": "bf16", "step_s": 6e-3,
    "tflops": 480.0, "evidence": "kernels:attention:h100-sxm5-80gb:bf16",
}  # fmt: skip


def attention(**changes: object):
    plan = {"attention_kernel": ATTENTION | changes, "step_s": {"attention": 1.5}}
    return attention_node(plan, "attention", ("parameter:attention_rate_ratio",), known)


def test_attention_shows_its_shape_rate_time_and_source():
    node = attention()

    assert node.label == "attention, 32 heads of 128 over 8,192 tokens in BF16"
    assert (node.value, node.unit) == (1.5, "s")
    assert node.note == "480 TFLOP/s, 6,000 µs each; measured by shape"
    assert node.evidence == ("kernels:attention:h100-sxm5-80gb:bf16", "parameter:attention_rate_ratio")


def test_attention_says_in_how_many_chunks_it_runs_and_whether_nobody_measured_it():
    node = attention(chunks=4.0, evidence=None)

    assert "over 8,192 tokens in 4 chunks" in node.label
    assert "not measured here" in node.note
    assert attention_node({"step_s": {"attention": 2.0}}, "attention", (), known).label == "attention"


def test_the_gain_of_a_narrow_type_is_said_with_the_sizes_from_which_it_pays():
    words = narrow_words({"precision": "fp8", "narrow_gain": GAIN})

    assert words == (
        "your longest product is 4,096 × 4,096 at 2,048 tokens: FP8 gains 1.12x over BF16, casts included; "
        "from hidden 2,048 on it pays; from hidden 6,144 on it gains 1.4x; "
        "from 1,024 tokens on it pays with these weights"
    )


def test_a_gain_that_no_size_reaches_is_said_to_be_at_none():
    words = narrow_words({"precision": "mxfp8", "narrow_gain": GAIN | {"gain_ratio": 0.8, "strong_from_hidden": None}})

    assert "MXFP8 loses: 0.80x over BF16" in words
    assert "at no hidden size that was measured it gains 1.4x" in words


def test_without_a_narrow_type_nothing_is_said():
    assert narrow_words({"precision": "bf16", "narrow_gain": None}) == ""
