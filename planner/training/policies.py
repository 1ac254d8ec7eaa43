"""The precision policies: rows of `catalog/policies.csv`, and whether a GPU can run a policy.

The bytes of a parameter are counted as follows. Every copy of a weight is in exactly one field:

- `weight_bytes`: the copy that the model holds between steps and computes with, whole on every data parallel rank below
  ZeRO-3. If the optimizer updates it in place (`fp32`, `tf32`, autocast, `bf16-pure`), there is no master copy.
- `master_bytes`: the FP32 copy that only the optimizer uses (`bf16`, `fp16-megatron`), sharded with its state. The FSDP
  policies hold nothing else between uses: their `weight_bytes` is 0, and they compute with the gathered copy
  (`gather_bytes`, for the parameters that are gathered at the time).
- `low_weight_copy_bytes`: casts of the linear weights that exist only while a layer is in use: the autocast cache, or
  FP8 in both layouts.

So `weight + master + gradient + 2 moments` is 16 bytes for `fp32`, `tf32`, `fp16` and the FSDP policies, 18 for `bf16`
and `fp8`, and 8 for `bf16-pure`: FP32 masters, gradients and two moments take 4 bytes each (Micikevicius et al., arXiv
1710.03740; ZeRO, arXiv 1910.02054, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import Message, UsageError
from planner.evidence import Evidence, EvidenceKind
from planner.hardware.architectures import BLOCK_SCALES, find_architecture
from planner.hardware.gpu import Gpu
from planner.rows import CATALOG, Catalogue, Row
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS, PrecisionPolicy

SCALINGS = ("none", "delayed", "tensorwise", "rowwise", "blockwise", "mx", "nvfp4")
"""Ways to choose the scale of a low-precision tensor."""

_COMPUTE = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


def _policy(row: Row) -> PrecisionPolicy:
    def per_element(key: str) -> float:
        return row.number(key, low=0, high=10)

    return PrecisionPolicy(
        id=row.text("id"),
        precision=row.choice("precision", PRECISIONS + EXTRA_PRECISIONS),
        linear_compute=row.choice("linear_compute", _COMPUTE),
        other_compute=row.choice("other_compute", _COMPUTE),
        weight_bytes=per_element("weight_bytes"),
        master_bytes=per_element("master_bytes"),
        gradient_bytes=per_element("gradient_bytes"),
        activation_bytes=per_element("activation_bytes"),
        moment_bytes=per_element("moment_bytes"),
        reduce_bytes=per_element("reduce_bytes"),
        gather_bytes=per_element("gather_bytes"),
        loss_scaling=row.flag("loss_scaling"),
        scaling=row.choice("scaling", SCALINGS),
        low_weight_copy_bytes=per_element("low_weight_copy_bytes"),
        cast_bytes_per_element=per_element("cast_bytes_per_element"),
        evidence=Evidence(
            id=f"policy:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{row.text('id')}: {row.text('what')}",
            source=row.text("source"),
            date=row.text("date"),
            public=True,
        ),
    )


POLICIES = Catalogue(CATALOG / "policies.csv", _policy, what="precision policy")


def load_policies() -> dict[str, PrecisionPolicy]:
    """All policies by id, in the order of the precisions.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return POLICIES.by_id


def default_policy(precision: str) -> PrecisionPolicy:
    """The default policy of a precision, which has the same name.

    Raises:
        UsageError: no such precision.
    """
    if precision not in PRECISIONS + EXTRA_PRECISIONS:
        names = ", ".join(f"`{name}`" for name in PRECISIONS + EXTRA_PRECISIONS)
        raise UsageError(f"unknown precision `{precision}`", hint=f"choose one of {names}")
    return load_policies()[precision]


def find_policy(name: str) -> PrecisionPolicy:
    """Find a policy by name, ignoring case and punctuation; a precision's name gives its default policy.

    Raises:
        UsageError: no such policy; similar names are offered.
    """
    return POLICIES.find(name)


def best_supported(policies: Iterable[PrecisionPolicy], gpu: Gpu) -> PrecisionPolicy | None:
    """The policy with the fastest linear products that a GPU can run (the last one of equals); None if it runs none."""
    able = [policy for policy in policies if why_unsupported(policy, gpu) is None]
    return max(reversed(able), key=lambda policy: gpu.peak_flop_per_s[policy.linear_compute], default=None)


ON_ANY_CPU = ("fp32", "bf16", "fp16")
"""Types in which every CPU can compute, in hardware or not; if a CPU's record lacks one, it was not measured."""


def why_unsupported(policy: PrecisionPolicy, gpu: Gpu) -> Message | None:
    """The reason why this GPU cannot run the policy; None if it can."""
    for compute in (policy.linear_compute, policy.other_compute):
        if not gpu.supports(compute) and gpu.arch == "CPU" and compute in ON_ANY_CPU:
            return Message.of("why.not_measured", gpu=gpu.name, compute=compute.upper(), precision=policy.precision)
        if not gpu.supports(compute):
            return Message.of("why.no_matrix_path", gpu=gpu.name, arch=gpu.arch, compute=compute.upper())
    if policy.scaling in BLOCK_SCALES and policy.scaling not in find_architecture(gpu.arch).block_scales:
        return Message.of("why.no_block_scales", gpu=gpu.name, arch=gpu.arch, precision=policy.precision.upper())
    return None
