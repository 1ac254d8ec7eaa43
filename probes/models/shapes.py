"""Shapes of real models, one decoder layer at a time, as a tensor-parallel rank holds them."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """One decoder layer's shard on one GPU. Source of the sizes: the models' published configurations."""

    model: str
    tp: int = 1
    ep: int = 1
    hidden: int
    heads: int
    """Query heads of the whole layer."""
    kv_heads: int
    head_dim: int
    ffn: int
    """Inner size of the whole feed-forward network, or of one expert."""
    vocab: int
    experts: int = 0
    """Routed experts of the whole layer; 0: dense."""
    top_k: int = 0

    @property
    def name(self) -> str:
        """Name for probe ids: `llama-3.1-70b/tp8`."""
        split = f"tp{self.tp}" if not self.experts else f"ep{self.ep}"
        return f"{self.model}/{split}"

    @property
    def local_heads(self) -> int:
        """Query heads on this rank."""
        return self.heads // self.tp

    @property
    def local_kv_heads(self) -> int:
        """Key and value heads on this rank."""
        return max(self.kv_heads // self.tp, 1)

    @property
    def local_ffn(self) -> int:
        """Inner size of the feed-forward network on this rank."""
        return self.ffn // self.tp

    @property
    def local_experts(self) -> int:
        """Routed experts on this rank."""
        return self.experts // self.ep

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """`(K, N)` of the layer's matrix products in the forward pass: qkv, output, gate and up, down."""
        d = self.head_dim
        return (
            (self.hidden, (self.local_heads + 2 * self.local_kv_heads) * d),
            (self.local_heads * d, self.hidden),
            (self.hidden, 2 * self.local_ffn),
            (self.local_ffn, self.hidden),
        )

    @property
    def params(self) -> int:
        """Parameters on this rank, router and norms included."""
        qkv, out, up, down = (k * n for k, n in self.products)
        ffn = (up + down) * (self.local_experts or 1)
        router = self.hidden * self.experts
        return qkv + out + ffn + router + 2 * self.hidden


LLAMA_1B = LayerShape(model="llama-3.2-1b", hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128256)
LLAMA_3B = LayerShape(model="llama-3.2-3b", hidden=3072, heads=24, kv_heads=8, head_dim=128, ffn=8192, vocab=128256)
LLAMA_8B = LayerShape(model="llama-3.1-8b", hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
LLAMA_70B = LayerShape(model="llama-3.1-70b", hidden=8192, heads=64, kv_heads=8, head_dim=128, ffn=28672, vocab=128256)
LLAMA_70B_TP8 = LayerShape(
    model="llama-3.1-70b", tp=8, hidden=8192, heads=64, kv_heads=8, head_dim=128, ffn=28672, vocab=128256
)
LLAMA_405B_TP8 = LayerShape(
    model="llama-3.1-405b", tp=8, hidden=16384, heads=128, kv_heads=8, head_dim=128, ffn=53248, vocab=128256
)
QWEN3_30B_EP8 = LayerShape(
    model="qwen3-30b-a3b",
    ep=8,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_dim=128,
    ffn=768,
    vocab=151936,
    experts=128,
    top_k=8,
)
"""A mixture-of-experts model with grouped-query attention: DeepSeek's attention has no fused kernel in plain torch."""

QWEN3_0_6B = LayerShape(model="qwen3-0.6b", hidden=1024, heads=16, kv_heads=8, head_dim=128, ffn=3072, vocab=151936)
TINYLLAMA_1_1B = LayerShape(
    model="tinyllama-1.1b", hidden=2048, heads=32, kv_heads=4, head_dim=64, ffn=5632, vocab=32000
)
"""Models below 2B parameters: narrow layers, for which kernel launches and the output layer matter more."""

TINY = LayerShape(model="tiny-256", hidden=256, heads=4, kv_heads=2, head_dim=64, ffn=704, vocab=2048)
SMALL = LayerShape(model="tiny-512", hidden=512, heads=8, kv_heads=4, head_dim=64, ffn=1408, vocab=2048)
TINY_TP2 = LayerShape(model="tiny-512", tp=2, hidden=512, heads=8, kv_heads=4, head_dim=64, ffn=1408, vocab=2048)
TINY_MOE = LayerShape(
    model="tiny-moe", ep=2, hidden=256, heads=4, kv_heads=2, head_dim=64, ffn=128, vocab=2048, experts=8, top_k=2
)
"""Shapes of the CPU suite: not published models, just small enough."""
