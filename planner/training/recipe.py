"""What is trained and how: `Recipe`, the part of a question that no layout changes."""

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
"""Software stacks: what a typical team reaches with the tuned kernels, without all of the care of those who publish
their best; Megatron-style fused kernels with overlapped communication (2023 and later), tuned; the same kernels
without the overlap and allocator care of later years (2019 to 2022, DeepSpeed); PyTorch FSDP with torch.compile; eager
PyTorch."""

OFFLOADS = ("none", "optimizer", "activations")
"""What is kept in host memory and moved over PCIe."""

ACT_CKPT = ("none", "selective", "full", "every-2", "every-4")
"""Activation checkpointing: no layer, by operation, every layer, every second or fourth layer whole. The index is the
code in `Layouts.act_ckpt`."""

ATTENTIONS = ("flash", "naive")
"""Fused attention that never stores the score matrix, or the separate matrix products with a stored score matrix."""

LOSSES = ("full", "chunked", "fused")
"""Cross-entropy over all logits at once, or chunk by chunk (also within a fused kernel)."""

LORA_RANK = 16
"""Adapter rank where none is said: of the LoRA paper's larger runs (arXiv 2106.09685, table 9 uses 1 to 64)."""

TRAINED_LAYERS = 2
"""Last layers that `freeze` trains where none are said: LLaMA-Factory's `freeze_trainable_layers`."""


def trained_mtp_layers(model: ModelShape, method: Method, stack: str) -> int:
    """Modules of multi-token prediction that are trained where nobody says.

    Those that the model's publisher trained, in pre-training with Megatron-Core and its relatives; other stacks have
    no such modules for it, and fine-tuning leaves them out.

    Args:
        model: of the catalogue or a `config.json`.
        method: of the training.
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
    """Least and most sequences per step that a search may take in place of `global_batch`; None: exactly that."""
    critical_batch: float | None = None
    """Sequences per step above which a larger batch saves hardly any steps; None where no law is at hand."""
    keeps_batch: bool = False
    """Whether a search leaves `global_batch` only where no layout divides it, or another is a tenth faster."""
    stack: str = "tuned"
    attention: str = "flash"
    sequence_parallel: bool = True
    """Norms and residuals split over the tensor parallel ranks (Korthikanti et al. 2022)."""
    act_ckpts: tuple[str, ...] = ACT_CKPT
    """Ways to checkpoint that a search may take: those that the software can be set to."""
    offload: str = "none"
    grad_compression: GradCompression | None = None
    """What data parallel ranks send in place of gradients; None: the gradients."""
    chunked_loss: bool = False
    """Fused or chunked cross-entropy: no full FP32 copy of the logits."""
    fused_head: bool = False
    """The loss is computed together with the output layer, some tokens at a time: the logits never lie there whole."""
    update_in_backward: bool = False
    """The optimizer steps inside the backward pass, layer by layer: a gradient is freed once it is used."""
    dropout: bool = False
    """Dropout masks are drawn, stored and applied (BERT, GPT-2/3)."""
    reshard_after_forward: bool = True
    """ZeRO-3: gather the parameters again for the backward pass."""
    lora_rank: int = LORA_RANK
    lora_targets: str = ALL_LINEAR
    """One of `adapters.LORA_TARGETS`."""
    trained_layers: int = TRAINED_LAYERS
    """Layers that `freeze` trains, counted from the last."""
    double_quant: bool = True
    """The scales of 4-bit weights are quantised as well (QLoRA, section 3)."""
    lengths: Lengths | None = None
    """Lengths of the examples where each is padded to the longest of its micro-batch; None: every sequence is full."""
    lengths_assumed: bool = False
    """The tokens of the run rest on a mean length of examples that nobody gave."""
    software_year: float | None = None
    """Release of the software as a decimal year; None: what is current."""
    balances_stages: bool = False
    """Pipeline stages are cut by the arithmetic of their layers, the output layer's counted; else by their number."""
    tp_overlap: bool = False
    """Tensor parallel communication split and overlapped with the matrix products."""
    moe_dispatcher: str = "deepep"
    """How tokens are sent to their experts: one of `routing.DISPATCHERS`."""
    channels_last: bool = True
    """Convolutional networks: activations lie channels last, so that norm and ReLU fuse and tensor cores read them."""

    @property
    def loss(self) -> str:
        """One of `LOSSES`."""
        return LOSSES[2 if self.fused_head else 1 if self.chunked_loss else 0]

    @property
    def kernels(self) -> str:
        """Stack whose kernels, buffers and schedules these are."""
        return "tuned" if self.stack == "typical" else self.stack

    @property
    def fused(self) -> bool:
        """Whether the stack brings its own fused kernels and gradient buffers (Megatron and relatives)."""
        return self.kernels in ("tuned", "classic")

    @property
    def autocasts(self) -> bool:
        """Whether PyTorch's autocast runs the model: it leaves norms, residuals and softmax in FP32.

        Fused kernels of Megatron and its relatives read and write 16 bit whatever the weights lie in.
        """
        return self.policy.autocast and not self.fused

    @property
    def reruns_attention(self) -> bool:
        """Whether selective checkpointing runs the attention core again.

        Megatron-Core's does unless it is told which modules to run again (`--recompute-modules`); for layers with
        experts that is norms and activations. FSDP stacks keep the result of the core.
        """
        return self.attention == "naive" or (self.fused and not self.model.experts)

    @property
    def heads_aligned(self) -> bool:
        """Whether a head is a multiple of 16 bytes, as matrix units want operands.

        Source: NVIDIA, Matrix Multiplication Background User's Guide, "Requirements to use tensor cores".
        """
        return self.model.head_dim * self.policy.activation_bytes % 16 == 0

    @property
    def how(self) -> Method:
        """The row of the method."""
        return find_method(self.method)

    @property
    def trains_all(self) -> bool:
        """Whether every weight gets a gradient."""
        return self.how.trains == "all"

    @property
    def backward_share(self) -> float:
        """Share of the layers that are run backward: those up to the first with a trained weight."""
        if self.how.trains != "last-layers":
            return 1.0
        return min(1.0, self.trained_layers / max(self.model.layers, 1))

    @property
    def weight_gradient_share(self) -> float:
        """Share of the layers whose weights get gradients."""
        return 0.0 if self.how.adapts else self.backward_share

    @property
    def forward_passes(self) -> int:
        """Forward passes for one backward pass: a second one through the reference where answers are compared."""
        return 2 if self.how.pairs else 1

    @property
    def longest(self) -> Recipe:
        """The same with every sequence as long as the longest: what memory has to hold."""
        return self if self.lengths is None else replace(self, lengths=None)

    @property
    def mean_len(self) -> float:
        """Tokens of a sequence that are no padding, on average."""
        return float(self.seq_len) if self.lengths is None else self.lengths.mean_tokens

    @property
    def tokens_per_step(self) -> float:
        """Tokens of one optimizer step, without padding."""
        return float(self.global_batch) * self.mean_len

    @property
    def adapted(self) -> tuple[Adapted, ...]:
        """Every weight of the mean layer that an adapter stands beside; none without adapters."""
        if not self.how.adapts:
            return ()
        return adapted_weights(self.model, self.lora_targets, fused=self.fused)

    @property
    def adapter_params_per_layer(self) -> float:
        """Adapter parameters of the mean layer: rank times inputs and outputs of every adapted weight.

        DoRA adds a magnitude for each output.
        """
        return self.adapter_params_of(routed=False) + self.adapter_params_of(routed=True)

    def adapter_params_of(self, *, routed: bool) -> float:
        """The same of adapters beside routed experts, or beside all else."""
        adapted = [weight for weight in self.adapted if weight.routed is routed]
        adapters = sum(self.lora_rank * weight.copies * (weight.inputs + weight.outputs) for weight in adapted)
        magnitudes = sum(weight.copies * weight.outputs for weight in adapted) if self.how.decomposed else 0.0
        return float(adapters + magnitudes)
