"""Shards as modules: as many parameters as their shape says, causal, and the same with recomputation."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from probes.models.moe import Experts, ends_of_groups  # noqa: E402
from probes.models.shapes import TINY  # noqa: E402
from probes.models.stack import build_stack  # noqa: E402
from probes.models.transformer import attention_backend, backend_of_heads, causal_attention, randomise, rotate  # noqa: E402

CPU = torch.device("cpu")
LENGTH = 32


def rows(shape=TINY) -> object:
    return torch.randn(2, LENGTH // shape.tp, shape.hidden, generator=torch.Generator().manual_seed(1))


def test_a_stack_has_the_parameters_of_its_shape() -> None:
    stack = build_stack(TINY, 2, LENGTH, recompute=False, device=CPU)

    matrices = sum(parameter.numel() for parameter in stack.parameters() if parameter.dim() > 1)
    assert matrices == 2 * sum(k * n for k, n in TINY.products)


def test_a_later_token_does_not_change_an_earlier_one() -> None:
    stack = build_stack(TINY, 2, LENGTH, recompute=False, device=CPU)
    x = rows()
    changed = x.clone()
    changed[:, -1] += 1.0

    with torch.no_grad():
        first, second = stack(x), stack(changed)

    assert torch.allclose(first[:, :-1], second[:, :-1], atol=1e-6)
    assert not torch.allclose(first[:, -1], second[:, -1], atol=1e-3)


def test_recomputation_changes_no_gradient() -> None:
    gradients = []
    for recompute in (False, True):
        stack = build_stack(TINY, 2, LENGTH, recompute=recompute, device=CPU)
        stack(rows()).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in stack.parameters()])

    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(*gradients, strict=True))


def test_a_rotation_keeps_lengths_and_makes_scores_depend_on_distance_only() -> None:
    stack = build_stack(TINY, 1, LENGTH, recompute=False, device=CPU)
    vector = torch.randn(1, 1, 1, TINY.head_dim, generator=torch.Generator().manual_seed(2))
    turned = rotate(vector.expand(1, 1, LENGTH, -1), stack.cos, stack.sin)[0, 0]

    assert torch.allclose(turned.norm(dim=-1), vector.norm().expand(LENGTH), rtol=1e-4)
    assert torch.allclose(turned[3] @ turned[8], turned[10] @ turned[15], rtol=1e-3, atol=1e-4)


def test_grouped_queries_attend_as_repeated_keys_would() -> None:
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(1, 4, 16, 8, generator=generator)
    k, v = torch.randn(2, 1, 2, 16, 8, generator=generator)

    repeated = causal_attention(q, k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1))

    assert torch.allclose(causal_attention(q, k, v), repeated, atol=1e-5)


def test_experts_return_every_token_to_its_place() -> None:
    experts = Experts(hidden=16, ffn=32, experts=4, local=2, top_k=2)
    randomise(experts, 0)
    x = torch.randn(1, 8, 16, generator=torch.Generator().manual_seed(4))

    with torch.no_grad():
        y = experts(x)
        shares = torch.softmax(experts.router(x[0]), dim=-1).topk(2, dim=-1).values
        by_hand = []
        for token in range(8):
            parts = []
            for choice in range(2):
                expert = (2 * token + choice) % 2  # dealt in turn
                gate, up = (x[0, token] @ experts.up[expert]).chunk(2)
                parts.append(shares[token, choice] * ((torch.nn.functional.silu(gate) * up) @ experts.down[expert]))
            by_hand.append(sum(parts))

    assert torch.allclose(y[0], torch.stack(by_hand), rtol=1e-3, atol=1e-6)


def test_a_shard_with_tensor_parallel_ranks_keeps_its_local_tokens() -> None:
    shape = replace(TINY, tp=2)
    stack = build_stack(shape, 1, LENGTH, recompute=False, device=CPU)

    assert stack(rows(shape)).shape == (2, LENGTH // 2, shape.hidden)


@pytest.mark.parametrize(("rows_", "groups"), [(64, 4), (10, 4), (3, 4)])
def test_the_rows_of_the_experts_are_counted_as_they_are_dealt(rows_: int, groups: int) -> None:
    dealt = [sum(1 for i in range(rows_) if i % groups <= group) for group in range(groups)]

    ends = ends_of_groups(rows_, groups, CPU)

    assert ends.tolist() == dealt
    assert ends.dtype == torch.int32


def test_the_kernel_of_attention_is_the_one_that_torch_chooses() -> None:
    q, k = torch.randn(1, 4, 64, 64), torch.randn(1, 2, 64, 64)

    assert attention_backend(q, k, k) == "flash_cpu"
    assert attention_backend(q.double(), k.double(), k.double()[..., :32]) == "math_cpu"  # values of another size


class OnGpu:
    """What attention asks of a tensor on a GPU."""

    is_cuda = True
    device = torch.device("cuda", 0)

    def __init__(self, heads: int, dtype: object) -> None:
        self.shape, self.dtype = (1, heads, 128, 64), dtype

    def repeat_interleave(self, times: int, dim: int) -> OnGpu:
        assert dim == 1
        return OnGpu(self.shape[1] * times, self.dtype)


@pytest.mark.parametrize(
    ("dtype", "autocast", "capability", "kv_heads", "kernel", "expected"),
    [
        (torch.float32, False, (9, 0), 2, 2, "efficient_expanded_kv"),
        (torch.float32, False, (9, 0), 8, 2, "efficient"),  # as many keys as queries: nothing to write out
        (torch.float32, True, (9, 0), 2, 3, "cudnn"),  # autocast runs it in BF16
        (torch.bfloat16, False, (8, 0), 2, 1, "flash"),
        (torch.float16, False, (8, 0), 2, 1, "flash"),
        (torch.float16, False, (7, 5), 2, 2, "efficient_expanded_kv"),  # Turing has no kernel for grouped queries
        (torch.float16, False, (7, 0), 8, 2, "efficient"),
    ],
)
def test_attention_with_grouped_queries_is_named_with_its_expanded_keys(
    monkeypatch: pytest.MonkeyPatch, dtype: object, autocast: bool, capability: tuple[int, int], kv_heads: int,
    kernel: int, expected: str,
) -> None:  # fmt: skip
    asked: list[tuple[int, bool]] = []

    def choose(q: OnGpu, k: OnGpu, v: OnGpu, *, is_causal: bool, enable_gqa: bool) -> int:
        assert is_causal
        asked.append((k.shape[1], enable_gqa))
        return kernel

    monkeypatch.setattr(torch, "_fused_sdp_choice", choose)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: autocast)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda kind: torch.bfloat16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)

    named = attention_backend(OnGpu(8, dtype), OnGpu(kv_heads, dtype), OnGpu(kv_heads, dtype))

    assert named == expected
    expanded = expected.endswith("_expanded_kv")
    assert asked == [(8 if expanded else kv_heads, not expanded and kv_heads < 8)]


def test_a_kernel_that_torch_does_not_tell_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "_fused_sdp_choice")

    assert backend_of_heads(8, 2, 64, 128, dtype="float32", device=CPU) is None
