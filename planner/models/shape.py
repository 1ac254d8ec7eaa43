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
    """`decoder`, `encoder` or `encoder-decoder`; or `image` for a vision model."""
    layers: int
    """Transformer layers (encoder plus decoder layers for an encoder-decoder). If attention, linear attention and
    feed-forward blocks are separate layers (Nemotron-H), two of them count as one layer here."""
    hidden: int
    heads: int
    """Query heads."""
    kv_heads: int
    """Key and value heads (equal to `heads` without GQA)."""
    head_dim: int
    """Size of one query/key head."""
    ffn_hidden: int
    """Inner size of the dense feed-forward block (0 if every layer is a mixture of experts)."""
    gated_mlp: bool
    """True for SwiGLU/GeGLU (three matrices), False for two."""
    vocab: int
    """Rows of the embedding as published, without the padding that the planner adds."""
    context: int
    """Default sequence length in training."""
    tied_embeddings: bool = False
    learned_positions: int = 0
    """Rows of a learned position table; 0 for rotary, ALiBi and the like."""
    biases: bool = False
    """Whether the linear layers have biases (GPT-2, GPT-3, BERT, OPT, BLOOM)."""
    sliding_window: int | None = None
    """Window of local attention in tokens; None if every layer attends to the whole sequence."""
    global_attention_every: int = 1
    """With a window, every n-th layer attends to the whole sequence; 1 means that all layers are local."""
    global_attention_layers: int | None = None
    """With a window, number of layers that attend to the whole sequence; None if `global_attention_every` says it."""
    q_lora_rank: int | None = None
    """Multi-head latent attention: rank of the query compression; None if queries are not compressed."""
    kv_lora_rank: int | None = None
    """Multi-head latent attention: rank of the key/value compression; None for ordinary attention."""
    rope_head_dim: int = 0
    """MLA: rotary part of the query/key head (included in `head_dim`)."""
    v_head_dim: int | None = None
    """Size of one value head; None for `head_dim`."""
    attention_layers: int | None = None
    """Number of layers with attention; None for all."""
    gated_attention: bool = False
    """Whether the attention output is gated element by element, with gates from the query projection (Qwen3-Next)."""
    linear: LinearAttention | None = None
    """The linear-attention layers of a hybrid model."""
    ffn_layers: int | None = None
    """Number of layers with a feed-forward block, dense or with experts; None for all."""
    experts: int = 0
    """Routed experts per MoE layer; 0 for a dense model."""
    top_k: int = 0
    """Routed experts per token."""
    expert_groups: int = 0
    """Number of groups of routed experts if a token's experts come from at most `token_groups` of them; else 0."""
    token_groups: int = 0
    """Most groups from which the experts of one token come (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""
    shared_experts: int = 0
    expert_ffn: int = 0
    """Inner size of one expert."""
    expert_hidden: int | None = None
    """Size to which a token is projected before the routed experts, and from which it is projected back; None if routed
    experts take the hidden state itself."""
    dense_layers: int = 0
    """MoE: leading layers with a dense feed-forward block."""
    moe_every: int = 1
    """MoE: after the dense layers, every n-th layer is a mixture of experts."""
    cross_attention_layers: int = 0
    """Encoder-decoder: layers (of `layers`) that also attend to the encoder's output."""
    cached_segments: int = 0
    """Transformer-XL: number of earlier segments, each a sequence long, that are attended to and projected again."""
    relative_positions: bool = False
    """Transformer-XL: whether positions are projected by a separate matrix and scored by a separate product."""
    head_ratio: float = 1.0
    """Share of tokens times vocabulary that the output layer computes: masked tokens only, or an adaptive softmax."""
    mtp_layers: int = 0
    """Number of multi-token prediction modules, each of which predicts one further token (DeepSeek-V3, arXiv
    2412.19437, section 2.2): in the catalogue those that the publisher trained, in a plan those that the plan trains.
    Layers and parameters are counted without them, except after `unrolled`."""
    mtp_shares_weights: bool = False
    """Whether all of these modules share the weights of one (Nemotron 3)."""
    other_params: int | None = None
    """Parameters besides the matrices of the layers, the embedding and the output layer: norms, biases, convolutions
    and the like; None if `vector_params` follows from the other fields, within a few parts in a thousand."""
    dropout: bool | None = None
    """Whether the model is trained with dropout; None for the usual: with it if it is an encoder, otherwise without."""
    mtp_unrolled: int = 0
    """Number of these modules that `layers` and `head_ratio` include: 0, except after `unrolled`."""
    params_published: float | None = None
    """Parameter count that the publisher states, to check our own count."""
    global_batch_tokens: float | None = None
    """Published pre-training batch in tokens; None if not published."""
    evidence: Evidence | None = None
    network: ImageNetwork | None = None
    """The operations of a vision model (kind `image`), which the other fields do not describe."""

    def unrolled(self) -> ModelShape:
        """The shape that a step computes: each multi-token prediction module adds a layer and an output layer."""
        more = self.mtp_layers - self.mtp_unrolled
        return self if not more else replace(
            self, layers=self.layers + more, head_ratio=self.head_ratio * (1 + self.mtp_layers), mtp_unrolled=more,
            attention_layers=None if self.attention_layers is None else self.attention_layers + more,
            ffn_layers=None if self.ffn_layers is None else self.ffn_layers + more,
            other_params=None if self.other_params is None else self.other_params + 2 * more * self.hidden,
        )  # fmt: skip

    @property
    def has_network(self) -> bool:
        """Whether it is a vision model, described by `network` rather than by the fields of a transformer."""
        return self.kind == "image"

    @property
    def has_dropout(self) -> bool:
        """Whether the model is trained with dropout."""
        return self.kind == "encoder" if self.dropout is None else self.dropout

    @property
    def global_share(self) -> float:
        """Layers that attend to the whole sequence over layers with attention, if the others have a window, 0..1."""
        if self.global_attention_layers is None:
            return 0.0 if self.global_attention_every <= 1 else 1.0 / self.global_attention_every
        attending = self.layers if self.attention_layers is None else self.attention_layers
        return min(1.0, self.global_attention_layers / max(attending, 1))

    @property
    def moe_layers(self) -> int:
        """Number of layers with routed experts."""
        ffn_layers = self.layers if self.ffn_layers is None else self.ffn_layers
        return 0 if not self.experts else -(-(ffn_layers - self.dense_layers) // self.moe_every)

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
        """Layers with a dense feed-forward block over layers without experts."""
        if self.ffn_layers is None:
            return 1.0
        return (self.ffn_layers - self.moe_layers) / max(self.layers - self.moe_layers, 1)

    @property
    def value_dim(self) -> int:
        """Size of one value head."""
        return self.head_dim if self.v_head_dim is None else self.v_head_dim

    @property
    def heads_to_split(self) -> int:
        """The number that a tensor parallel size must divide.

        It is the greatest common divisor of the query heads and of the heads of linear attention.
        """
        if self.linear is None:
            return self.heads
        return math.gcd(self.heads * (self.attention_layers != 0), self.linear.heads_to_split)

    @property
    def query_outputs(self) -> int:
        """Outputs of the query product, including the gate if attention is gated."""
        return self.heads * (self.head_dim + self.gated_attention * self.value_dim)

    @property
    def expert_width(self) -> int:
        """Input and output size of a routed expert."""
        return self.hidden if self.expert_hidden is None else self.expert_hidden

    @property
    def mixer_params(self) -> float:
        """Matrix parameters of attention, linear attention and MTP input projections, averaged over layers."""
        linear = 0.0 if self.linear is None else self.linear_share * self.linear.matrix_params(self.hidden)
        return self.attention_share * self.attention_params + linear + self.mtp_share * self.mtp_joint_params

    @property
    def mtp_share(self) -> float:
        """Multi-token prediction modules over all layers, after `unrolled`."""
        return self.mtp_unrolled / max(self.layers, 1)

    @property
    def mtp_joint_params(self) -> float:
        """Matrix parameters with which an MTP module joins the hidden state and the next token's embedding."""
        return 2.0 * self.hidden**2

    @property
    def held_share(self) -> float:
        """Share of the layers that have separate weights; MTP modules that share weights count once."""
        return 1.0 - self.mtp_shares_weights * max(self.mtp_unrolled - 1, 0) / max(self.layers, 1)

    @property
    def mixer_out_params(self) -> float:
        """The part of `mixer_params` in the output projections, which return the hidden state."""
        linear = 0.0 if self.linear is None else self.linear_share * self.linear.inner
        return self.hidden * (self.attention_share * self.heads * self.value_dim + linear)

    @property
    def attention_params(self) -> float:
        """Matrix parameters of attention, averaged over layers with attention.

        They are q, k, v and o, or the chain of latent attention; cross-attention is included.
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
        """Number of matrices in a feed-forward block: 3 if gated, else 2."""
        return 3 if self.gated_mlp else 2

    @property
    def dense_mlp_params(self) -> float:
        """Matrix parameters of one dense feed-forward block."""
        return float(self.mlp_matrices * self.hidden * self.ffn_hidden)

    @property
    def expert_params(self) -> float:
        """Matrix parameters of one routed expert."""
        return float(self.mlp_matrices * self.expert_width * self.expert_ffn)

    @property
    def shared_params(self) -> float:
        """Matrix parameters of one MoE layer's shared experts and of the projections around its routed experts."""
        shared = float(self.mlp_matrices * self.hidden * self.shared_experts * self.expert_ffn)
        return shared + (0.0 if self.expert_hidden is None else 2.0 * self.hidden * self.expert_hidden)

    @property
    def routed_params(self) -> float:
        """Matrix parameters of all routed experts of one MoE layer, without shared experts and router."""
        return self.experts * self.expert_params

    @property
    def embedding_params(self) -> float:
        """Parameters of the input embedding and of learned positions."""
        return float((self.vocab + self.learned_positions) * self.hidden)

    @property
    def head_params(self) -> float:
        """Parameters of the output layer's matrix product, whether or not they are tied to the embedding."""
        return float(self.vocab * self.hidden)

    @property
    def layer_params_dense(self) -> float:
        """Matrix parameters of one layer without experts; in a hybrid model, of the mean one."""
        return self.mixer_params + self.dense_ffn_share * self.dense_mlp_params

    @property
    def layer_params_moe(self) -> float:
        """Matrix parameters of one MoE layer, including all experts."""
        return self.mixer_params + self.routed_params + self.shared_params + self.hidden * self.experts

    @property
    def layer_params_moe_active(self) -> float:
        """Matrix parameters of an MoE layer that are used for one token."""
        return self.layer_params_moe - self.routed_params + self.top_k * self.expert_params

    @property
    def vector_params(self) -> float:
        """Parameters of norms and biases in all layers; small, but counted."""
        if self.other_params is not None:
            return float(self.other_params)
        per_layer = 2.0 * self.hidden
        if self.biases:
            per_layer += 2.0 * self.hidden
            per_layer += self.heads * self.head_dim + 2.0 * self.kv_heads * self.head_dim + self.hidden
            per_layer += self.ffn_hidden + self.hidden
        linear = 0.0 if self.linear is None else self.linear.layers * self.linear.vector_params
        return self.layers * per_layer + linear + self.hidden

    @property
    def params_total(self) -> float:
        """All parameters; tied output weights are counted once."""
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
        """Matrix parameters used for one token, with the output layer but without the input embedding: the N of 6N."""
        moe = self.moe_layers
        layers = moe * self.layer_params_moe_active + (self.layers - moe) * self.layer_params_dense
        return layers + self.head_params * self.head_ratio
