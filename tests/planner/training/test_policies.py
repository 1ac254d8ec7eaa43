from dataclasses import replace

import pytest

from planner.errors import UsageError
from planner.hardware.catalogue import find_gpu
from planner.training.policies import best_supported, default_policy, find_policy, load_policies, why_unsupported
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS

ADAM_MOMENTS = 2


def state_bytes(name: str) -> float:
    """Weights, gradients and the two moments of Adam, per parameter."""
    policy = load_policies()[name]
    return policy.weight_bytes + policy.master_bytes + policy.gradient_bytes + ADAM_MOMENTS * policy.moment_bytes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fp32", 16),  # 4 bytes each of weights, gradients and two moments
        ("tf32", 16),
        ("fp16", 16),  # autocast: FP32 weights, no second resident copy
        ("fp16-megatron", 18),
        ("fp16-zero", 16),  # 2 + 2 + 12: ZeRO paper, section 3.1
        ("bf16", 18),  # 2 weights + 4 master + 4 gradients + 2 x 4 moments (ZeRO, arXiv 1910.02054, section 3.1)
        ("bf16-autocast", 16),
        ("bf16-fsdp", 16),
        ("bf16-pure", 8),
        ("fp8", 18),
        ("fp8-delayed", 18),
        ("fp8-rowwise", 18),
        ("fp8-blockwise", 18),
        ("fp8-fsdp", 16),
        ("fp8-fsdp-rowwise", 16),
        ("mxfp8", 18),
        ("nvfp4", 18),
    ],
)
def test_bytes_per_parameter_are_those_of_the_design(name, expected):
    assert state_bytes(name) == expected


@pytest.mark.parametrize(
    ("name", "sharded", "whole"),
    [("fp32", 8, 8), ("bf16", 12, 6), ("fp16-zero", 12, 4)],  # Megatron-LM docs: 8 + 8/d, 6 + 12/d; ZeRO: 4 + 12/d
)
def test_what_a_distributed_optimizer_shards(name, sharded, whole):
    policy = load_policies()[name]

    assert policy.master_bytes + ADAM_MOMENTS * policy.moment_bytes == sharded
    assert policy.weight_bytes + policy.gradient_bytes == whole


def test_every_precision_has_the_policy_of_its_name():
    for precision in PRECISIONS + EXTRA_PRECISIONS:
        policy = default_policy(precision)
        assert (policy.id, policy.precision) == (precision, precision)


def test_fp8_is_bf16_but_for_its_linear_layers():
    fp8, bf16 = default_policy("fp8"), default_policy("bf16")

    assert (fp8.linear_compute, fp8.other_compute, fp8.scaling) == ("fp8", "bf16", "tensorwise")
    assert (bf16.linear_compute, bf16.other_compute, bf16.scaling) == ("bf16", "bf16", "none")
    for field in ("weight_bytes", "master_bytes", "gradient_bytes", "moment_bytes", "reduce_bytes", "gather_bytes"):
        assert getattr(fp8, field) == getattr(bf16, field), field


def test_only_low_precision_casts_and_only_fp16_scales_its_loss():
    for policy in load_policies().values():
        low = policy.linear_compute in ("fp8", "fp4")
        assert (policy.cast_bytes_per_element > 0) == low
        assert (policy.scaling != "none") == low
        assert policy.loss_scaling == (policy.precision == "fp16")
        assert policy.evidence.source
        assert policy.evidence.date


def test_a_weight_is_held_whole_or_gathered_and_a_master_copy_is_fp32():
    for policy in load_policies().values():
        assert policy.weight_bytes + policy.master_bytes > 0
        assert policy.master_bytes in (0, 4)
        if "fsdp" in policy.id:
            assert (policy.weight_bytes, policy.master_bytes) == (0, 4)
            assert policy.gather_bytes <= 2


def test_the_cast_traffic_of_torchao_is_kept():
    # roofline_utils.py: amax read 2 + cast read 2 + two writes 1; rowwise reads and writes once more
    assert load_policies()["fp8"].cast_bytes_per_element == 6
    assert load_policies()["fp8-rowwise"].cast_bytes_per_element == 8


@pytest.mark.parametrize(
    ("policy", "gpu", "reason"),
    [
        ("bf16", "v100-sxm2-16gb", ("why.no_matrix_path", "NVIDIA V100 SXM2 16GB", "Volta", "BF16")),
        ("tf32", "v100-sxm2-16gb", ("why.no_matrix_path", "NVIDIA V100 SXM2 16GB", "Volta", "TF32")),
        ("fp8", "a100-sxm4-80gb", ("why.no_matrix_path", "NVIDIA A100 SXM4 80GB", "Ampere", "FP8")),
        ("fp16", "gtx-1080ti-11gb", ("why.no_matrix_path", "NVIDIA GeForce GTX 1080 Ti", "Pascal", "FP16")),
        ("nvfp4", "h100-sxm5-80gb", ("why.no_matrix_path", "NVIDIA H100 SXM5 80GB", "Hopper", "FP4")),
        ("mxfp8", "h100-sxm5-80gb", ("why.no_block_scales", "NVIDIA H100 SXM5 80GB", "Hopper", "MXFP8")),
    ],
)
def test_a_precision_that_a_gpu_lacks_is_refused_with_the_reason(policy, gpu, reason):
    why = why_unsupported(find_policy(policy), find_gpu(gpu))

    assert why is not None
    assert (why.key, *(value for _, value in why.values)) == reason


def test_what_the_record_of_a_cpu_lacks_was_not_measured_and_is_not_missing_there():
    cpu = replace(find_gpu("gtx-1080ti-11gb"), name="Some CPU", arch="CPU")

    unmeasured, unable = (why_unsupported(find_policy(name), cpu) for name in ("fp16", "tf32"))

    assert unmeasured is not None
    assert unmeasured.key == "why.not_measured"
    assert unable is not None
    assert unable.key == "why.no_matrix_path"


@pytest.mark.parametrize(
    ("policy", "gpu"),
    [("fp16", "v100-sxm2-16gb"), ("fp32", "gtx-1080ti-11gb"), ("fp8", "rtx-4090"), ("mxfp8", "b200-sxm-180gb")],
)
def test_a_precision_that_a_gpu_has_is_allowed(policy, gpu):
    assert why_unsupported(find_policy(policy), find_gpu(gpu)) is None


# The fastest matrix path of each, BF16 before FP16 where they are equal (datasheets: gpus.csv)
@pytest.mark.parametrize(
    ("gpu", "best"), [("h100-sxm5-80gb", "fp8"), ("a100-sxm4-80gb", "bf16"), ("v100-sxm2-16gb", "fp16")]
)
def test_the_best_precision_of_a_gpu_is_its_fastest(gpu, best):
    policies = [find_policy(name) for name in ("fp32", "tf32", "fp16", "bf16", "fp8")]

    assert best_supported(policies, find_gpu(gpu)).id == best


def test_a_gpu_that_runs_none_of_the_policies_has_no_best():
    assert best_supported([find_policy("fp8")], find_gpu("v100-sxm2-16gb")) is None


def test_unknown_names_are_refused_with_near_ones():
    assert find_policy("FP8_Rowwise").id == "fp8-rowwise"
    with pytest.raises(UsageError, match="unknown precision `fp12`"):
        default_policy("fp12")
    with pytest.raises(UsageError) as caught:
        find_policy("fp8-rowise")
    assert "`fp8-rowwise`" in (caught.value.hint or "")
