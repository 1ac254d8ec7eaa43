"""Names in price lists: the right part or none."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.book.gpu_names import identify, name_rules


@pytest.mark.parametrize(
    ("provider", "name", "instance", "memory", "gpu"),
    [
        ("aws", "H100", "p5.48xlarge", 80, "h100-sxm5-80gb"),
        ("aws", "A100", "p4d.24xlarge", 40, "a100-sxm4-40gb"),
        ("aws", "A100-80GB", "p4de.24xlarge", 80, "a100-sxm4-80gb"),
        ("aws", "V100", "p3.8xlarge", None, "v100-sxm2-16gb"),
        ("aws", "V100-32GB", "p3dn.24xlarge", None, "v100-sxm2-32gb"),
        ("azure", "H100", "Standard_ND96isr_H100_v5", None, "h100-sxm5-80gb"),
        ("azure", "H100", "Standard_NC40ads_H100_v5", None, "h100-nvl-94gb"),
        ("azure", "A100-80GB", "Standard_NC24ads_A100_v4", None, "a100-pcie-80gb"),
        ("azure", "A100-80GB", "Standard_ND96amsr_A100_v4", None, "a100-sxm4-80gb"),
        ("gcp", "A100", "a2-highgpu-8g", 40, "a100-sxm4-40gb"),
        ("gcp", "A100-80GB", "a2-ultragpu-8g", 80, "a100-sxm4-80gb"),
        ("lambda", "H100", "gpu_1x_h100_pcie", None, "h100-pcie-80gb"),
        ("lambda", "H100", "gpu_8x_h100_sxm5", None, "h100-sxm5-80gb"),
        ("lambda", "B200", "gpu_8x_b200_sxm6", None, "b200-sxm-180gb"),
        ("runpod", "A100-80GB", "1x_A100-80GB_SECURE", None, "a100-pcie-80gb"),
        ("runpod", "H100-SXM", "8x_H100-SXM_SECURE", None, "h100-sxm5-80gb"),
        ("vast", "RTX4090", "8x-RTX_4090", None, "rtx-4090"),
        ("nebius", "L40S", "gpu-l40s-a_1gpu", None, "l40s"),
        ("aws", "L4", "g6.xlarge", None, "l4"),
        ("azure", "MI300X", "Standard_ND96isr_MI300X_v5", None, "mi300x-192gb"),
        ("lambda", "GH200", "gpu_1x_gh200", 96, "gh200-96gb"),
        ("gcp", "GB200", "a4x-highgpu-4g", None, "gb200-186gb"),
    ],
)
def test_a_line_of_a_price_list_finds_its_part(provider, name, instance, memory, gpu):
    assert identify(provider, name, instance, memory) == gpu


@pytest.mark.parametrize(
    ("provider", "name", "instance"),
    [
        ("vultr", "H100", "vcg-h100-8"),
        ("vultr", "A100", "vcg-a100-8"),
        ("aws", "M60", "g3.4xlarge"),
        ("gcp", "P100", "n1"),
    ],
)
def test_a_name_that_may_be_several_parts_or_none_is_not_guessed(provider, name, instance):
    assert identify(provider, name, instance) is None


def test_every_rule_leads_to_the_catalogue():
    assert {rule.gpu for rule in name_rules()} <= set(load_gpus())
