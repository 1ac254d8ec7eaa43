import pytest

from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.models.images.catalogue import load_image_models
from planner.training.policies import find_policy
from planner.training.support import best_able, no_gpu_can, why_unable


@pytest.mark.parametrize(("model", "policy", "gpu", "key"), [
    ("resnet50", "fp8", "h100-sxm5-80gb", "why.no_narrow_convolutions"),
    ("resnet50", "fp8", "a100-sxm4-80gb", "why.no_matrix_path"),  # what the GPU lacks comes first
    ("resnet50", "bf16-autocast", "h100-sxm5-80gb", None),
    ("vit_base_patch16_224", "fp8", "h100-sxm5-80gb", None),  # its arithmetic is in linear layers
    ("vit_base_patch16_224", "fp8", "v100-sxm2-16gb", "why.no_matrix_path"),
])  # fmt: skip
def test_a_convolutional_network_has_no_fp8_and_a_transformer_has_it_where_the_gpu_does(model, policy, gpu, key):
    reason = why_unable(load_image_models()[model], find_policy(policy), find_gpu(gpu), "pretrain")

    assert (None if reason is None else reason.key) == key


def test_language_models_are_held_to_the_gpu_alone():
    assert why_unable(find_model("llama-3.1-8b"), find_policy("fp8"), find_gpu("h100-sxm5-80gb"), "pretrain") is None


@pytest.mark.parametrize("method", ["qlora", "qdora", "dpo-qlora"])
@pytest.mark.parametrize("policy", ["fp8", "fp8-fsdp", "mxfp8", "nvfp4"])
def test_four_bit_weights_multiply_in_no_narrow_type(method, policy):
    # QLoRA, arXiv 2305.14314, equation 5: NF4 is the type of storage, BF16 that of the products
    llama, gpu = find_model("llama-3.1-8b"), find_gpu("b200-sxm-180gb")
    reason = why_unable(llama, find_policy(policy), gpu, method)

    assert reason is not None
    assert reason.key == "why.no_narrow_low_bits"
    assert no_gpu_can(llama, find_policy(policy), method)
    assert why_unable(llama, find_policy(policy), gpu, "lora") is None  # frozen weights of 16 bits, cast like any other
    assert why_unable(llama, find_policy("bf16-autocast"), gpu, method) is None


def test_the_best_precision_of_4_bit_weights_is_bf16():
    policies, gpu = [find_policy(name) for name in ("tf32", "bf16", "fp8")], find_gpu("h100-sxm5-80gb")
    best = best_able(find_model("llama-3.1-8b"), policies, gpu, "qlora")

    assert best is not None
    assert best.id == "bf16"


def test_the_best_precision_is_one_that_the_model_can_be_trained_in():
    policies, gpu = [find_policy(name) for name in ("tf32", "bf16", "fp8")], find_gpu("h100-sxm5-80gb")
    resnet, llama = (
        best_able(load_image_models()["resnet50"], policies, gpu, "pretrain"),
        best_able(find_model("llama-3.1-8b"), policies, gpu, "pretrain"),
    )

    assert resnet is not None
    assert llama is not None
    assert (resnet.id, llama.id) == ("bf16", "fp8")
