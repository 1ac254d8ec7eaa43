"""`Recipe`: the model and how it is trained, the part of a question that does not depend on the layout."""

from __future__ import annotations

from dataclasses import replace

from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.training.adapters import ALL_LINEAR, Adapted, adapted_weights
from planner.training.grad_compression import GradCompression
from planner.training.lengths import Lengths
from planner.training.method import Method, find_method
from planner.training.optimizer import Optimizer
from planner.training.precision import PrecisionPolicy

STACKS = ("typical", "tuned", "classic", "fsdp-compile", "eager")
"""Software stacks. `typical`: the tuned kernels as a typical team runs them, without all of the tuning behind published
records. `tuned`: tuned Megatron-style fused kernels with overlapped communication (2023 and later). `classic`: these
kernels without the overlap and allocator tuning of later years (2019 to 2022, DeepSpeed). `fsdp-compile`: PyTorch FSDP
with torch.compile. `eager`: eager PyTorch."""

OFFLOADS = ("none", "optimizer", "activations")
"""State that is kept in host memory and moved over PCIe."""

ACT_CKPT = ("none", "selective", "full", "every-2", "every-4")
"""Activation checkpointing: of no layer, of selected operations, of every layer, or of every second or fourth layer.
The index is the code in `Layouts.act_ckpt`."""

ATTENTIONS = ("flash", "naive")
"""Fused attention that never stores the score matrix, or separate matrix products with a stored score matrix."""

LOSSES = ("full", "chunked", "fused")
"""Cross-entropy over all logits at once, in chunks (also within a fused kernel), or fused with the output layer."""

LORA_RANK = 16
"""Default adapter rank, as in the LoRA paper's larger runs (arXiv 2106.09685, table 9 uses 1 to 64)."""

TRAINED_LAYERS = 2
"""Default number of last layers that `freeze` trains: LLaMA-Factory's `freeze_trainable_layers`."""


def trained_mtp_layers(model: ModelShape, method: Method, stack: str) -> int:
    """Default number of multi-token prediction modules that are trained.

    Pre-training with Megatron-Core and its relatives trains the modules that the model's publisher trained. Other
    stacks do not provide these modules, and fine-tuning leaves them out.

    Args:
        model: a model of the catalogue or of a `config.json`.
        method: the training method.
        stack: one of `STACKS`.
    """
    return model.mtp_layers if not method.fine_tunes and stack in ("typical", "tuned") else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model, its data and the numerical method."""

    model: ModelShape
    policy: PrecisionPolicy
    optimizer: Optimizer
    method: str
    seq_len: int
    global_batch: int
    """Sequences per optimizer step."""
    batch_band: tuple[int, int] | None = None
    """Fewest and most sequences per step that a search may use instead of `global_batch`; None for that batch only."""
    critical_batch: float | None = None
    """Sequences per step above which a larger batch saves few further steps; None if no scaling law applies."""
    keeps_batch: bool = False
    """Whether a search departs from `global_batch` only if no layout divides it or another batch is a tenth faster."""
    stack: str = "tuned"
    attention: str = "flash"
    sequence_parallel: bool = True
    """Whether norms and residuals are split over the tensor parallel ranks (Korthikanti et al. 2022)."""
    act_ckpts: tuple[str, ...] = ACT_CKPT
    """Checkpointing modes that a search may use: those that the software supports."""
    offload: str = "none"
    grad_compression: GradCompression | None = None
    """Compression of the gradients that data parallel ranks send; None for none."""
    chunked_loss: bool = False
    """Whether cross-entropy is fused or chunked, without a full FP32 copy of the logits."""
    fused_head: bool = False
    """Whether the loss is computed with the output layer, a chunk of tokens at a time, without the whole logits."""
    update_in_backward: bool = False
    """Whether the optimizer steps inside the backward pass, layer by layer, so that gradients are freed once used."""
    dropout: bool = False
    """Whether dropout masks are drawn, stored and applied (BERT, GPT-2/3)."""
    reshard_after_forward: bool = True
    """Whether ZeRO-3 frees parameters after the forward pass and gathers them again for the backward pass."""
    lora_rank: int = LORA_RANK
    lora_targets: str = ALL_LINEAR
    """One of `adapters.LORA_TARGETS`."""
    trained_layers: int = TRAINED_LAYERS
    """Number of last layers that `freeze` trains."""
    double_quant: bool = True
    """Whether the scales of 4-bit weights are quantised as well (QLoRA, section 3)."""
    lengths: Lengths | None = None
    """Lengths of the examples if each is padded to the longest of its micro-batch; None if every sequence is full."""
    lengths_assumed: bool = False
    """Whether the tokens of the run depend on an assumed mean length of examples."""
    software_year: float | None = None
    """Release of the software as a decimal year; None for current software."""
    balances_stages: bool = False
    """Whether pipeline stages are cut by the FLOP of their layers and the output layer, not by number of layers."""
    tp_overlap: bool = False
    """Whether tensor parallel communication is split and overlapped with the matrix products."""
    moe_dispatcher: str = "deepep"
    """How tokens are sent to their experts: one of `routing.DISPATCHERS`."""
    channels_last: bool = True
    """Whether convolutional networks are channels-last, so that norm and ReLU fuse and tensor cores can read them."""

    @property
    def loss(self) -> str:
        """The kind of loss, one of `LOSSES`."""
        return LOSSES[2 if self.fused_head else 1 if self.chunked_loss else 0]

    @property
    def kernels(self) -> str:
        """The stack whose kernels, buffers and schedules are used; `typical` uses those of `tuned`."""
        return "tuned" if self.stack == "typical" else self.stack

    @property
    def fused(self) -> bool:
        """Whether the stack has its own fused kernels and gradient buffers (Megatron and its relatives)."""
        return self.kernels in ("tuned", "classic")

    @property
    def autocasts(self) -> bool:
        """Whether PyTorch's autocast runs the model, which leaves norms, residuals and softmax in FP32.

        Fused kernels of Megatron and its relatives read and write 16-bit values regardless of the type of the weights.
        """
        return self.policy.autocast and not self.fused

    @property
    def reruns_attention(self) -> bool:
        """Whether selective checkpointing recomputes the attention core.

        Megatron-Core does, unless other modules are selected (`--recompute-modules`), as for layers with experts, where
        norms and activations are recomputed. FSDP stacks keep the result of the attention core.
        """
        return self.attention == "naive" or (self.fused and not self.model.experts)

    @property
    def heads_aligned(self) -> bool:
        """Whether the size of a head is a multiple of 16 bytes, as matrix units require of operands.

        Source: NVIDIA, Matrix Multiplication Background User's Guide, "Requirements to use tensor cores".
        """
        return self.model.head_dim * self.policy.activation_bytes % 16 == 0

    @property
    def how(self) -> Method:
        """The training method."""
        return find_method(self.method)

    @property
    def trains_all(self) -> bool:
        """Whether every weight gets a gradient."""
        return self.how.trains == "all"

    @property
    def backward_share(self) -> float:
        """Share of the layers that are run backward: from the last layer to the first one with a trained weight."""
        if self.how.trains != "last-layers":
            return 1.0
        return min(1.0, self.trained_layers / max(self.model.layers, 1))

    @property
    def weight_gradient_share(self) -> float:
        """Share of the layers whose weights get gradients."""
        return 0.0 if self.how.adapts else self.backward_share

    @property
    def forward_passes(self) -> int:
        """Forward passes per backward pass: two with a reference model that scores pairs of answers, otherwise one."""
        return 2 if self.how.pairs else 1

    @property
    def longest(self) -> Recipe:
        """This recipe with every sequence as long as the longest, the case for which memory must suffice."""
        return self if self.lengths is None else replace(self, lengths=None)

    @property
    def mean_len(self) -> float:
        """Mean number of tokens per sequence, without padding."""
        return float(self.seq_len) if self.lengths is None else self.lengths.mean_tokens

    @property
    def tokens_per_step(self) -> float:
        """Tokens of one optimizer step, without padding."""
        return float(self.global_batch) * self.mean_len

    @property
    def adapted(self) -> tuple[Adapted, ...]:
        """Every weight of the mean layer that has an adapter; empty without adapters."""
        if not self.how.adapts:
            return ()
        return adapted_weights(self.model, self.lora_targets, fused=self.fused)

    @property
    def adapter_params_per_layer(self) -> float:
        """Adapter parameters per layer, averaged over layers: rank times inputs plus outputs of every adapted weight.

        DoRA adds one magnitude per output.
        """
        return self.adapter_params_of(routed=False) + self.adapter_params_of(routed=True)

    def adapter_params_of(self, *, routed: bool) -> float:
        """Adapter parameters per mean layer of the adapters of routed experts, or of all other adapters."""
        adapted = [weight for weight in self.adapted if weight.routed is routed]
        adapters = sum(self.lora_rank * weight.copies * (weight.inputs + weight.outputs) for weight in adapted)
        magnitudes = sum(weight.copies * weight.outputs for weight in adapted) if self.how.decomposed else 0.0
        return float(adapters + magnitudes)
