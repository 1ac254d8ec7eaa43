"""The shape of a model, and the parameter counts that follow from it."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.evidence import Evidence
from planner.lazy import dataclass
from planner.models.image_network import ImageNetwork
from planner.models.linear_attention import LinearAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The dimensions of a transformer on which its cost depends, or the network of a vision model."""

    name: str
    """Slug, for example `llama-3.1-70b`."""
    kind: str
    """`decoder`, `encoder`, `encoder-decoder`; or `image`, a vision model."""
    layers: int
    """Transformer layers (encoder plus decoder layers for an encoder-decoder). Where attention, linear attention and
    feed-forwards are layers of their own (Nemotron-H), two of those count as one here."""
    hidden: int
    heads: int
    """Query heads."""
    kv_heads: int
    """Key and value heads (equal to `heads` without GQA)."""
    head_dim: int
    """Size of one query/key head."""
    ffn_hidden: int
    """Inner size of the dense feed-forward (0 where every layer is a mixture of experts)."""
    gated_mlp: bool
    """True for SwiGLU/GeGLU (three matrices), False for two."""
    vocab: int
    """Rows of the embedding as published, without the padding that the planner adds."""
    context: int
    """Sequence length that the model was trained with by default."""
    tied_embeddings: bool = False
    learned_positions: int = 0
    """Rows of a learned position table; 0 for rotary, ALiBi and the like."""
    biases: bool = False
    """Biases in the linear layers (GPT-2, GPT-3, BERT, OPT, BLOOM)."""
    sliding_window: int | None = None
    """Window of local attention in tokens; None: every layer sees the whole sequence."""
    global_attention_every: int = 1
    """With a window: every n-th layer still sees everything (1 with a window: none does, all layers are local)."""
    q_lora_rank: int | None = None
    """Multi-head latent attention: rank of the query compression; None where queries are not compressed."""
    kv_lora_rank: int | None = None
    """Multi-head latent attention: rank of the key/value compression; None: ordinary attention."""
    rope_head_dim: int = 0
    """MLA: rotary part of the query/key head (included in `head_dim`)."""
    v_head_dim: int | None = None
    """Size of one value head; None: `head_dim`."""
    attention_layers: int | None = None
    """Layers that have attention; None: all."""
    gated_attention: bool = False
    """Whether the output of attention is gated, by as many numbers as a query has (Qwen3-Next)."""
    linear: LinearAttention | None = None
    """Of a hybrid: its layers with linear attention."""
    ffn_layers: int | None = None
    """Layers that have a feed-forward, dense or with experts; None: all."""
    experts: int = 0
    """Routed experts per MoE layer; 0 for a dense model."""
    top_k: int = 0
    """Routed experts per token."""
    expert_groups: int = 0
    """Groups of routed experts, of which a token's experts lie in `token_groups` at most; 0 without that limit."""
    token_groups: int = 0
    """Groups that the experts of one token may lie in (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""
    shared_experts: int = 0
    expert_ffn: int = 0
    """Inner size of one expert."""
    expert_hidden: int | None = None
    """Size to which a token is projected before it is routed, and from which it is projected back; None: routed
    experts take the hidden state as it is."""
    dense_layers: int = 0
    """MoE: leading layers with a dense feed-forward."""
    moe_every: int = 1
    """MoE: after the dense layers, every n-th layer is a mixture of experts."""
    cross_attention_layers: int = 0
    """Encoder-decoder: layers (of `layers`) that also attend to the encoder's output."""
    cached_segments: int = 0
    """Transformer-XL: earlier segments of one sequence length that are attended to and projected again."""
    relative_positions: bool = False
    """Transformer-XL: positions are projected by a matrix of their own and scored by a product of their own."""
    head_ratio: float = 1.0
    """Share of tokens times vocabulary that the output layer multiplies: masked tokens only, or an adaptive softmax."""
    mtp_layers: int = 0
    """Modules of multi-token prediction, each of which predicts one token further (DeepSeek-V3, arXiv 2412.19437,
    section 2.2): in the catalogue those that its publisher trained, in a plan those that it trains. Layers and
    parameters are counted without them, but for `unrolled`."""
    mtp_shares_weights: bool = False
    """Whether all of these modules have the weights of one (Nemotron 3)."""
    mtp_unrolled: int = 0
    """How many of these modules `layers` and `head_ratio` include: none, but for `unrolled`."""
    params_published: float | None = None
    """Parameter count that the publisher states, for the check against our own count."""
    global_batch_tokens: float | None = None
    """Published pre-training batch in tokens; None where not published."""
    evidence: Evidence | None = None
    network: ImageNetwork | None = None
    """Of kind `image`: its operations, which no other field here describes."""

    def unrolled(self) -> ModelShape:
        """What a step computes: each module of multi-token prediction is one more layer and output layer."""
        more = self.mtp_layers - self.mtp_unrolled
        return self if not more else replace(
            self, layers=self.layers + more, head_ratio=self.head_ratio * (1 + self.mtp_layers), mtp_unrolled=more,
            attention_layers=None if self.attention_layers is None else self.attention_layers + more,
            ffn_layers=None if self.ffn_layers is None else self.ffn_layers + more,
        )  # fmt: skip

    @property
    def has_network(self) -> bool:
        """Whether it is a vision model, which no field of a transformer describes."""
        return self.kind == "image"

    @property
    def moe_layers(self) -> int:
        """Number of layers with routed experts."""
        fed = self.layers if self.ffn_layers is None else self.ffn_layers
        return 0 if not self.experts else -(-(fed - self.dense_layers) // self.moe_every)

    @property
    def moe_share(self) -> float:
        """Layers with routed experts over all layers, 0..1."""
        return self.moe_layers / max(self.layers, 1)

    @property
    def cross_share(self) -> float:
        """Layers with cross-attention over all layers."""
        return self.cross_attention_layers / max(self.layers, 1)

    @property
    def attention_share(self) -> float:
        """Layers with attention over all layers."""
        return 1.0 if self.attention_layers is None else self.attention_layers / max(self.layers, 1)

    @property
    def linear_share(self) -> float:
        """Layers with linear attention over all layers."""
        return 0.0 if self.linear is None else self.linear.layers / max(self.layers, 1)

    @property
    def dense_ffn_share(self) -> float:
        """Layers with a dense feed-forward over those without experts."""
        if self.ffn_layers is None:
            return 1.0
        return (self.ffn_layers - self.moe_layers) / max(self.layers - self.moe_layers, 1)

    @property
    def value_dim(self) -> int:
        """Size of one value head."""
        return self.head_dim if self.v_head_dim is None else self.v_head_dim

    @property
    def heads_to_split(self) -> int:
        """What a tensor parallel size must divide: the query heads, and the key and value heads of linear attention.

        Megatron-Core gives no group of Mamba-2 to two ranks (`megatron/core/ssm/mamba_mixer.py`).
        """
        if self.linear is None:
            return self.heads
        return math.gcd(self.heads * (self.attention_layers != 0), self.linear.key_heads, self.linear.value_heads)

    @property
    def query_outputs(self) -> int:
        """Outputs of the product that gives the queries, with the gate where there is one."""
        return self.heads * (self.head_dim + self.gated_attention * self.value_dim)

    @property
    def expert_width(self) -> int:
        """Size of what a routed expert takes and gives."""
        return self.hidden if self.expert_hidden is None else self.expert_hidden

    @property
    def mixer_params(self) -> float:
        """Matrix parameters of attention and linear attention in the mean layer, and of what comes before them."""
        linear = 0.0 if self.linear is None else self.linear_share * self.linear.matrix_params(self.hidden)
        return self.attention_share * self.attention_params + linear + self.mtp_share * self.mtp_joint_params

    @property
    def mtp_share(self) -> float:
        """Layers that are modules of multi-token prediction over all layers."""
        return self.mtp_unrolled / max(self.layers, 1)

    @property
    def mtp_joint_params(self) -> float:
        """Matrix parameters with which such a module joins the hidden state and the next token's embedding."""
        return 2.0 * self.hidden**2

    @property
    def held_share(self) -> float:
        """Layers with weights of their own over all layers."""
        return 1.0 - self.mtp_shares_weights * max(self.mtp_unrolled - 1, 0) / max(self.layers, 1)

    @property
    def mixer_out_params(self) -> float:
        """Those of `mixer_params` that give the hidden state back."""
        linear = 0.0 if self.linear is None else self.linear_share * self.linear.inner
        return self.hidden * (self.attention_share * self.heads * self.value_dim + linear)

    @property
    def attention_params(self) -> float:
        """Matrix parameters of attention in the mean layer that has it: q, k, v, o, or the chain of latent attention.

        Cross-attention is included.
        """
        h, d, dv, n_q, n_kv = self.hidden, self.head_dim, self.value_dim, self.heads, self.kv_heads
        out = n_q * dv * h
        if self.kv_lora_rank is None:
            self_attention = float(h * (self.query_outputs + n_kv * (d + dv)) + out)
            positions = n_q * d * h if self.relative_positions else 0.0
            return self_attention * (1.0 + self.cross_share) + positions
        nope = d - self.rope_head_dim
        q = h * n_q * d if self.q_lora_rank is None else self.q_lora_rank * (h + n_q * d)
        kv = h * (self.kv_lora_rank + self.rope_head_dim) + self.kv_lora_rank * n_q * (nope + dv)
        return float(q + kv + out)

    @property
    def mlp_matrices(self) -> int:
        """Matrices of one feed-forward: 3 when gated, else 2."""
        return 3 if self.gated_mlp else 2

    @property
    def dense_mlp_params(self) -> float:
        """Matrix parameters of one dense feed-forward."""
        return float(self.mlp_matrices * self.hidden * self.ffn_hidden)

    @property
    def expert_params(self) -> float:
        """Matrix parameters of one routed expert."""
        return float(self.mlp_matrices * self.expert_width * self.expert_ffn)

    @property
    def shared_params(self) -> float:
        """Matrix parameters of the shared experts of one MoE layer, and of the projections around the routed ones."""
        shared = float(self.mlp_matrices * self.hidden * self.shared_experts * self.expert_ffn)
        return shared + (0.0 if self.expert_hidden is None else 2.0 * self.hidden * self.expert_hidden)

    @property
    def routed_params(self) -> float:
        """All routed experts of one MoE layer (shared experts and router excluded)."""
        return self.experts * self.expert_params

    @property
    def embedding_params(self) -> float:
        """Input embedding and learned positions."""
        return float((self.vocab + self.learned_positions) * self.hidden)

    @property
    def head_params(self) -> float:
        """Output layer as a matrix product, whether or not its weights are tied to the embedding."""
        return float(self.vocab * self.hidden)

    @property
    def layer_params_dense(self) -> float:
        """Matrix parameters of one layer without experts; of a hybrid, of the mean one."""
        return self.mixer_params + self.dense_ffn_share * self.dense_mlp_params

    @property
    def layer_params_moe(self) -> float:
        """Matrix parameters of one MoE layer, all experts included."""
        return self.mixer_params + self.routed_params + self.shared_params + self.hidden * self.experts

    @property
    def layer_params_moe_active(self) -> float:
        """Matrix parameters of an MoE layer that are used for one token."""
        return self.layer_params_moe - self.routed_params + self.top_k * self.expert_params

    @property
    def vector_params(self) -> float:
        """Norms and biases, all layers: small, but counted."""
        per_layer = 2.0 * self.hidden
        if self.biases:
            per_layer += 2.0 * self.hidden
            per_layer += self.heads * self.head_dim + 2.0 * self.kv_heads * self.head_dim + self.hidden
            per_layer += self.ffn_hidden + self.hidden
        linear = 0.0 if self.linear is None else self.linear.layers * self.linear.vector_params
        return self.layers * per_layer + linear + self.hidden

    @property
    def params_total(self) -> float:
        """All parameters, tied output weights counted once."""
        moe = self.moe_layers
        layers = moe * self.layer_params_moe + (self.layers - moe) * self.layer_params_dense
        head = 0.0 if self.tied_embeddings else self.head_params
        return self.held_share * (layers + self.vector_params) + self.embedding_params + head

    @property
    def params_active(self) -> float:
        """Parameters that are used for one token (equal to `params_total` for a dense model)."""
        return self.params_total - self.moe_layers * (self.layer_params_moe - self.layer_params_moe_active)

    @property
    def matrix_params_active(self) -> float:
        """Matrix parameters used for one token, output layer included, input embedding excluded: the N of 6N."""
        moe = self.moe_layers
        layers = moe * self.layer_params_moe_active + (self.layers - moe) * self.layer_params_dense
        return layers + self.head_params * self.head_ratio
