from __future__ import annotations

from reports.explain.products import attention_node, narrow_words, product_nodes

PRODUCT = {
    "where": "layer", "m": 2048.0, "n": 4096.0, "k": 4096.0, "count": 1.0, "compute": "fp8",
    "step_s": 3e-4, "tflops": 687.0, "share_ratio": 0.25,
    "evidence": "kernels:matmul:h100-sxm5-80gb:fp8",
}  # fmt: skip
GAIN = {
    "m": 2048.0, "n": 4096.0, "k": 4096.0, "gain_ratio": 1.12, "pays_from_hidden": 2048.0,
    "strong_from_hidden": 6144.0, "pays_from_tokens": 1024.0, "hidden": 4096.0,
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
    # 6 x 2048 x 4096 x 4096 FLOP
    assert node.note == (
        "687 TFLOP/s: 0.2061 TFLOP in 300 µs each, forward and both backward products; measured by shape"
    )


def test_a_product_whose_weights_are_frozen_says_how_many_passes_its_flop_are():
    (node,) = product_nodes({"products": [PRODUCT | {"step_s": 2e-4}], "step_s": {"matmul": 2.0}}, known)

    assert "0.1374 TFLOP in 200 µs each, 2 times those of the forward product" in node.note


def test_a_product_says_where_it_was_measured():
    (node,) = product_nodes({"products": [PRODUCT], "step_s": {"matmul": 2.0}}, known)

    assert node.evidence == ("kernels:matmul:h100-sxm5-80gb:fp8",)


def test_grouped_products_say_how_many_and_an_unmeasured_one_that_it_is():
    (node,) = product_nodes(
        {"products": [PRODUCT | {"count": 8.0, "evidence": None}], "step_s": {"matmul": 2.0}}, known
    )

    assert node.label == "Product of a layer, 8 times 2,048 × 4,096 × 4,096 in FP8"
    assert "not measured here" in node.note
    assert node.evidence == ()


def test_a_product_that_some_layers_have_says_how_many_and_what_one_of_them_takes():
    partial = PRODUCT | {"count": 0.25, "step_s": 7.5e-5}
    (node,) = product_nodes({"products": [partial], "step_s": {"matmul": 2.0}}, known)

    assert node.label == "Product of a layer (25% of the layers), 2,048 × 4,096 × 4,096 in FP8"
    assert node.note.startswith("687 TFLOP/s: 0.2061 TFLOP in 300 µs each, forward and both backward products")


ATTENTION = {
    "heads": 32.0, "head_dim": 128.0, "length": 8192.0, "chunks": 1.0, "compute": "bf16", "step_s": 6e-3,
    "tflops": 480.0, "evidence": "kernels:attention:h100-sxm5-80gb:bf16",
}  # fmt: skip


def attention(**changes: object):
    plan = {"attention_kernel": ATTENTION | changes, "step_s": {"attention": 1.5}}
    return attention_node(plan, "attention", ("parameter:attention_rate_ratio",), known)


def test_attention_shows_its_shape_rate_time_and_source():
    node = attention()

    assert node.label == "attention, 32 heads of size 128 per micro-batch, over 8,192 tokens in BF16"
    assert (node.value, node.unit) == (1.5, "s")
    assert node.note == (
        "480 TFLOP/s: 2.88 TFLOP in 6,000 µs each, forward and backward; the backward pass recomputes the scores; "
        "measured by shape"
    )
    assert node.evidence == ("kernels:attention:h100-sxm5-80gb:bf16", "parameter:attention_rate_ratio")


def test_attention_says_in_how_many_chunks_it_runs_and_whether_nobody_measured_it():
    node = attention(chunks=4.0, evidence=None)

    assert "over 8,192 tokens in 4 chunks" in node.label
    assert "not measured here" in node.note
    assert attention_node({"step_s": {"attention": 2.0}}, "attention", (), known).label == "attention"


def test_the_gain_of_a_narrow_type_is_said_with_the_sizes_from_which_it_pays():
    words = narrow_words({"precision": "fp8", "narrow_gain": GAIN})

    assert words == (
        "your largest product is 4,096 × 4,096 at 2,048 tokens: FP8 runs 1.12× as fast as BF16, casts included; "
        "a product of these proportions pays off from hidden size 2,048 upwards and "
        "runs 1.4× as fast from hidden size 6,144 upwards; "
        "for weights of this size, FP8 pays off from 1,024 tokens upwards"
    )


def test_a_gain_that_no_size_reaches_is_said_to_be_at_none():
    slower = GAIN | {
        "gain_ratio": 0.8,
        "pays_from_hidden": 8192.0,
        "strong_from_hidden": None,
        "pays_from_tokens": None,
    }

    words = narrow_words({"precision": "mxfp8", "narrow_gain": slower})

    assert "MXFP8 runs 0.80× as fast as BF16, casts included" in words
    assert "pays off from hidden size 8,192 upwards and runs 1.4× as fast at no larger hidden size" in words
    assert words.endswith("for weights of this size, MXFP8 pays off at no larger number of tokens that was measured")


def test_an_answer_whose_sizes_are_of_another_product_says_its_gain_alone():
    older = {name: value for name, value in GAIN.items() if name != "hidden"}

    words = narrow_words({"precision": "fp8", "narrow_gain": older})

    assert words.endswith("FP8 runs 1.12× as fast as BF16, casts included")


def test_without_a_narrow_type_nothing_is_said():
    assert narrow_words({"precision": "bf16", "narrow_gain": None}) == ""
