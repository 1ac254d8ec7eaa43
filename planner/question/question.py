"""A fully resolved question: every input has a value and its source."""

from __future__ import annotations

from datetime import date

from planner.errors import Message
from planner.hardware.architectures import find_architecture
from planner.hardware.cluster import Cluster
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.routing import settled_dispatcher
from planner.parallelism.search import FixedLayout
from planner.question.asked import InputValue
from planner.question.inputs import DEFAULT_MAX_GPUS
from planner.training.adapters import ALL_LINEAR
from planner.training.frameworks import Framework
from planner.training.grad_compression import GradCompression
from planner.training.lengths import Lengths
from planner.training.method import find_method
from planner.training.optimizer import Optimizer
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import ACT_CKPT, LORA_RANK, TRAINED_LAYERS, Recipe
from planner.training.support import why_unable


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyInputs:
    """The inputs about prices, power and carbon; `pricing` finds those that were left open."""

    price_usd_per_gpu_h: float | None
    provider: str | None
    region: str | None
    commitment: str
    pue: float | None
    electricity_usd_per_kwh: float | None
    grid: str | None
    """A zone's code or name, a number in g CO₂e per kWh, or `live:ZONE`, as text."""
    as_of: date
    price_like: str | None = None
    """Catalogue id of the GPU whose price is used for those that have none."""
    market_grid_g_per_kwh: float | None = None
    """Market-based factor of the user's contracts, in g CO₂e per kWh; 0 is a wholly renewable contract."""
    quote: str | None = None
    """Path of a vendor's offer."""
    own: str | None = None
    """Path of the description of the user's own machines."""
    beside: str | None = None
    """Path of the further cost lines: storage, egress, hosts, experiments."""
    tariff: str | None = None
    """Path of the prices of electricity by hour of the week."""
    embodied: bool = False
    """Whether to report carbon including GPU manufacturing, as a second number."""
    power_cap_w: float | None = None
    """Peak power that the facility can deliver to the job."""

    @property
    def pays_electricity(self) -> bool:
        """Whether electricity is paid separately from the GPU price."""
        return self.electricity_usd_per_kwh is not None or self.tariff is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How weights are trained, as far as a method leaves it open; fields as in `Recipe`."""

    lora_rank: int = LORA_RANK
    lora_targets: str = ALL_LINEAR
    trained_layers: int = TRAINED_LAYERS
    double_quant: bool = True
    in_backward: bool = False
    loss: str | None = None
    """One of `recipe.LOSSES`; None: the loss of the stack."""
    moe_dispatcher: str | None = None
    """One of `routing.DISPATCHERS`; None: the usual one for stack and GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question of `mpplan estimate`, with every input resolved."""

    model: ModelShape
    method: str
    tokens: float
    """Tokens of the whole run, without padding."""
    by_examples: bool = False
    """Whether the length of the run was given in examples and passes over them, not in tokens."""
    seq_len: int
    global_batch: int
    """Sequences per step."""
    batch_band: tuple[int, int] | None
    """Fewest and most sequences per step that the planner may take instead; None: the user gave the batch."""
    critical_batch: float | None
    """Sequences per step above which a larger batch saves hardly any steps; None where no law is at hand."""
    keeps_batch: bool
    """Whether `global_batch` was published for this model, or is usual for fine-tuning; the planner leaves it only
    where that saves much."""
    policy: PrecisionPolicy
    """The requested policy, whose plan decides the number of GPUs."""
    policies: tuple[PrecisionPolicy, ...]
    """All policies that are compared, in the order of `precision.PRECISIONS`."""
    optimizer: Optimizer
    stack: str
    """One of `recipe.STACKS`."""
    framework: Framework | None
    """The framework that was requested by name, or that fine-tuning on one node uses by default."""
    tuning: Tuning
    lengths: Lengths | None
    """Lengths of examples that are padded to the longest of their micro-batch; None: every sequence is full."""
    lengths_assumed: bool
    attention: str | None
    """Attention kernel; None: fused where the GPU has such kernels, naive before Ampere."""
    offload: str
    grad_compression: GradCompression | None
    """Compression of gradients; None: gradients are reduced as they are."""
    clusters: tuple[Cluster, ...]
    gpus: int | None
    deadline_s: float | None
    deadline_assumed: bool = False
    """Whether the deadline is the default, which holds where the user gave no number of GPUs, deadline or budget."""
    budget_usd: float | None
    confidence_ratio: float
    """Lowest probability of meeting the deadline and the budget, each."""
    max_gpus: int | None
    """Most GPUs of any plan; None: as many as the deadline needs, while a budget alone is spent on at most
    `most_gpus`."""
    under_cap: bool = False
    """Whether `max_gpus` is the number that the cap on power leaves, rather than the user's."""
    fixed: FixedLayout
    memory_risk: float
    """Highest probability of running out of memory that a layout may have."""
    money: MoneyInputs
    seed: int
    searches_power_limit: bool = False
    """Whether to search for the power limit of each GPU; until then, `clusters` have their limit as sold."""
    over_nodes: frozenset[str] = frozenset()
    """Catalogue ids of the GPUs of which one node is not enough; an open number of them starts above one node."""
    on_a_node: Question | None = None
    """The same question with the stack of one node and its own loss, set where one node of a GPU does not hold that
    run: smaller ways to train may still use both."""
    inputs: dict[str, InputValue]
    """Every input by name with its source, in the order of display."""

    def recipe(self, policy: PrecisionPolicy, cluster: Cluster) -> Recipe:
        """Return the training of this question in one policy on one kind of GPU."""
        model, tuning, framework = self.model.unrolled(), self.tuning, self.framework
        loss = tuning.loss or ("full" if framework is None else framework.loss)
        return Recipe(
            model=model,
            policy=policy,
            optimizer=self.optimizer,
            method=self.method,
            seq_len=self.seq_len,
            global_batch=self.global_batch,
            batch_band=self.batch_band,
            critical_batch=self.critical_batch,
            keeps_batch=self.keeps_batch,
            stack=self.stack,
            attention=self.attention or default_attention(self.stack, cluster.gpu, fine_tunes=self.fine_tunes),
            offload=self.offload,
            grad_compression=self.grad_compression,
            dropout=model.has_dropout,
            tp_overlap=overlaps_tensor_parallel(self.stack, cluster.gpu),
            act_ckpts=ACT_CKPT if framework is None else framework.act_ckpts,
            sequence_parallel=framework is None or framework.sequence_parallel,
            chunked_loss=loss != "full",
            fused_head=loss == "fused",
            update_in_backward=tuning.in_backward,
            moe_dispatcher=settled_dispatcher(tuning.moe_dispatcher, self.stack, cluster.gpu, policy),
            lora_rank=tuning.lora_rank,
            lora_targets=tuning.lora_targets,
            trained_layers=tuning.trained_layers,
            double_quant=tuning.double_quant,
            lengths=self.lengths,
            lengths_assumed=self.lengths_assumed,
        )

    def why_unable(self, policy: PrecisionPolicy, gpu: Gpu) -> Message | None:
        """Return why this training cannot run with a policy on a GPU; None if it can."""
        return why_unable(self.model, policy, gpu, self.method)

    def policies_on(self, gpu: Gpu) -> tuple[PrecisionPolicy, ...]:
        """Return the compared policies with which this training can run on a GPU."""
        return tuple(policy for policy in self.policies if self.why_unable(policy, gpu) is None)

    @property
    def most_gpus(self) -> int | None:
        """Most GPUs that the requested precision may take: the user's limit, or the default for a budget alone."""
        return DEFAULT_MAX_GPUS if self.max_gpus is None and self.budget_alone else self.max_gpus

    @property
    def budget_alone(self) -> bool:
        """Whether a budget is the only target, to be spent on the soonest end."""
        return self.budget_usd is not None and self.gpus is None and self.deadline_s is None

    @property
    def mean_len(self) -> float:
        """Mean tokens of a sequence, without padding."""
        return float(self.seq_len) if self.lengths is None else self.lengths.mean_tokens

    @property
    def fine_tunes(self) -> bool:
        """Whether the run starts from a trained model."""
        return find_method(self.method).fine_tunes


def overlaps_tensor_parallel(stack: str, gpu: Gpu) -> bool:
    """Return whether the stack splits matrix products to hide tensor-parallel communication.

    The stacks `tuned` and `typical` do so from Hopper on, with Transformer Engine.
    """
    return stack in ("tuned", "typical") and find_architecture(gpu.arch).overlaps_tp


def default_attention(stack: str, gpu: Gpu, *, fine_tunes: bool) -> str:
    """Return `flash` where there is a fused kernel: FlashAttention's or, before Ampere, PyTorch's if the stack uses it.

    `torch.nn.functional.scaled_dot_product_attention` also has a memory-efficient kernel for those GPUs, which stores
    no scores (PyTorch documentation: `torch.nn.attention.SDPBackend`).
    """
    takes_pytorch_s = fine_tunes or stack in ("eager", "fsdp-compile")
    has_kernel = takes_pytorch_s or find_architecture(gpu.arch).fused_attention
    return "flash" if has_kernel else "naive"
