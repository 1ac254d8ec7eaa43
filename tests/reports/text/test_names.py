"""GPUs of the catalogue, and its models, as people write them."""

from __future__ import annotations

import re

import pytest

from planner.hardware.catalogue import load_gpus
from planner.models.catalogue import load_models
from reports.text.names import NO_BREAK, pretty_gpu, pretty_slug

WRITTEN = """
P100 PCIe 16 GB; GTX 1080 Ti 11 GB; V100 SXM2 16 GB; V100 SXM2 32 GB; V100 PCIe 16 GB; V100 PCIe 32 GB; V100 SXM3 32 GB;
V100 SXM3 32 GB DGX-2H; T4; Quadro RTX 6000 24 GB; Quadro RTX 8000 48 GB; Quadro RTX 5000 16 GB; Titan RTX 24 GB;
RTX 2080 Ti 11 GB; A10; A10G; A40; A30; A100 PCIe 40 GB; A100 PCIe 80 GB; A100 SXM4 40 GB; A100 SXM4 80 GB;
A800 SXM4 80 GB; A800 PCIe 80 GB; RTX 3090; RTX A6000 48 GB; RTX A5500 24 GB; RTX A5000 24 GB; RTX A4500 20 GB;
RTX A4000 16 GB; RTX 3070 8 GB; RTX 4090; RTX 6000 Ada; L4; L40S; L40; RTX 4070 Ti Super 16 GB; H100 PCIe 80 GB;
H100 SXM5 80 GB; H100 NVL 94 GB; H800 SXM5 80 GB; H20 SXM 96 GB; H200 SXM 141 GB; H200 NVL 141 GB; GH200 96 GB;
GH200 144 GB; H100 SXM 96 GB HBM2e 500 W; H100 SXM5 96 GB; RTX 5090; RTX PRO 6000 Blackwell; B200 SXM 180 GB;
GB200 186 GB; B300 SXM 288 GB; GB300 288 GB; MI100 32 GB; MI250X 128 GB; MI210 64 GB; MI250 GCD 64 GB; MI250X GCD 64 GB;
MI300X 192 GB; MI325X 256 GB; MI355X 288 GB; MI350X 288 GB; RX 7900 XTX 24 GB
"""
"""A new row is added here by hand, once somebody has read its name."""


def test_every_gpu_of_the_catalogue_is_written_as_its_maker_does():
    written = [name.strip() for name in WRITTEN.replace("\n", " ").split(";")]

    assert sorted(pretty_gpu(name).replace(NO_BREAK, " ") for name in load_gpus()) == sorted(written)


def test_a_unit_is_not_parted_from_its_number():
    assert pretty_gpu("h100-sxm-96gb-hbm2e-500w") == f"H100 SXM 96{NO_BREAK}GB HBM2e 500{NO_BREAK}W"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("dbrx", "DBRX"), ("gpt-oss-120b", "GPT-OSS-120B"), ("qwen1.5-moe-a2.7b", "Qwen1.5-MoE-A2.7B"),
        ("mistral-7b-v0.3", "Mistral-7B-v0.3"), ("deepseek-llm-67b", "DeepSeek-LLM-67B"),
        ("roberta-large", "RoBERTa-Large"),
        ("mixtral-8x22b", "Mixtral-8x22B"), ("tinyllama-1.1b", "TinyLlama-1.1B"),
        ("deepseek-v2-lite", "DeepSeek-V2-Lite"), ("xlm-roberta-base", "XLM-RoBERTa-Base"),
        ("olmoe-1b-7b", "OLMoE-1B-7B"),
        ("minimax-m2", "MiniMax-M2"),
    ],
)  # fmt: skip
def test_a_model_is_written_as_its_team_does(name, written):
    assert name in load_models()
    assert pretty_slug(name) == written


SHOUTED = {
    "Bart", "Bert", "Dbrx", "Ernie", "Exaone", "Glm", "Gpt", "Llm", "Moe", "Mpt", "Mt", "Nlg", "Opt", "Oss", "Xl",
    "Xlm",
}  # fmt: skip


def test_no_abbreviation_of_the_catalogue_is_written_as_a_word():
    words = {word for name in load_models() for word in re.split(r"[-\d.]+", pretty_slug(name))}

    assert not words & SHOUTED
