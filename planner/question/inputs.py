"""The inputs of `mpplan estimate`, each declared once.

The flags, the keys of `mpplan.toml`, the environment variables, shell completion, the arguments of `mpplan.estimate`
and the echo in the answer are made from these declarations. To add an input, declare it here, in `cost_inputs` (money,
evidence) or in `tuning_inputs` (data, fine-tuning, images), list it in `INPUTS`, and read it where the question is
resolved (`planner.question.resolve` and the modules beside it). Nothing heavy is imported here: `mpplan estimate
--help` needs this module.
"""

from __future__ import annotations

from planner.question import names
from planner.question.batch import TUNING_BATCH
from planner.question.cost_inputs import (
    AS_OF,
    BESIDE,
    CALIBRATION,
    COMMITMENT,
    ELECTRICITY,
    EMBODIED,
    GRID,
    MARKET_GRID,
    NUMERICS,
    OWN,
    POWER_CAP,
    PRICE,
    PRICE_LIKE,
    PROVIDER,
    PUE,
    QUOTE,
    RECORDS,
    REGION,
    SEED,
    TARIFF,
)
from planner.question.input import Input, InputGroup
from planner.question.parsers import (
    one_of,
    parse_amount,
    parse_method,
    parse_power_limit,
    parse_text,
    parse_usd,
    probability,
    whole_number,
)
from planner.question.tuning_inputs import (
    EPOCHS,
    EXAMPLES,
    IMAGE_SIZE,
    IN_BACKWARD,
    LENGTHS,
    LORA_RANK,
    LORA_TARGETS,
    LOSS,
    PACKED,
    SAMPLES,
    SINGLE_QUANT,
    TRAINED_LAYERS,
)
from planner.rows import unknown_name
from planner.units import parse_count, parse_duration_s

TOKENS_PER_PARAM = 20.0
"""Hoffmann et al. 2022 (Chinchilla), arXiv 2203.15556."""
DEFAULT_SEQ_LEN = 4096
"""Used where no model is named: the pre-training length of the Llama 2 models, arXiv 2307.09288."""
DEFAULT_DEADLINE = "30d"
TUNING_SEQ_LEN = 2048
"""Longest sequence of a fine-tuning where the user gives none, or the model's if that is shorter: assumed."""
DEFAULT_MEMORY_RISK = "5%"
DEFAULT_CONFIDENCE = "80%"
DEFAULT_MAX_GPUS = 1024

PARAMS = Input(
    name="params",
    group=InputGroup.MODEL,
    metavar="N",
    help="Number of parameters, like 70B; the model's shape is derived from it and shown.",
    parse=parse_count,
)
MODEL = Input(
    name="model",
    group=InputGroup.MODEL,
    metavar="NAME",
    help="A model in the catalogue, or a config.json from Hugging Face or timm.",
    parse=parse_text,
    choices=names.models,
)

METHOD = Input(
    name="method",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="pretrain, sft (full fine-tuning), freeze, lora, qlora, dora, qdora, dpo, dpo-lora or dpo-qlora; "
    "auto picks the cheapest that fits.",
    default="pretrain",
    parse=parse_method,
    choices=names.methods,
)
TOKENS = Input(
    name="tokens",
    group=InputGroup.TRAINING,
    metavar="N",
    help="Tokens to train on, like 1.5T.",
    default=f"{TOKENS_PER_PARAM:g} per parameter; fine-tuning counts examples instead",
    parse=parse_amount,
)
SEQ_LEN = Input(
    name="seq_len",
    group=InputGroup.TRAINING,
    metavar="N",
    help="Sequence length in tokens.",
    default=f"{DEFAULT_SEQ_LEN} or that of the model; {TUNING_SEQ_LEN} for fine-tuning",
    parse=whole_number(example=DEFAULT_SEQ_LEN),
)
GLOBAL_BATCH = Input(
    name="global_batch",
    group=InputGroup.TRAINING,
    metavar="N",
    help="Sequences or images per step.",
    default=f"that of the model, or by model size; {TUNING_BATCH} for fine-tuning",
    parse=whole_number(example=512),
)
PRECISION = Input(
    name="precision",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="The precision to plan for: fp32, tf32, fp16, bf16 (the default), fp8 (mxfp8, nvfp4). The others are compared "
    "with it.",
    parse=one_of(names.precisions),
    choices=names.precisions,
)
POLICY = Input(
    name="policy",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="Mixed-precision recipe, like bf16-fsdp; an unknown name prints the list.",
    parse=parse_text,
    choices=names.policies,
)
OPTIMIZER = Input(
    name="optimizer",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="Optimizer, like adamw-8bit-paged.",
    default="adamw, or that of the stack",
    parse=parse_text,
    choices=names.optimizers,
)
ACT_CKPT = Input(
    name="act_ckpt",
    group=InputGroup.TRAINING,
    metavar="MODE",
    help="none, selective, full, every-2 or every-4 (every second or fourth layer).",
    default="chosen by the planner",
    parse=one_of(names.checkpointing_modes),
    choices=names.checkpointing_modes,
)
OFFLOAD = Input(
    name="offload",
    group=InputGroup.TRAINING,
    metavar="WHAT",
    help="none, optimizer or activations.",
    default="none",
    parse=one_of(names.offloads),
    choices=names.offloads,
)
GRAD_COMPRESSION = Input(
    name="grad_compression",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="Compress gradients: none, powersgd (of rank 4, or powersgd:RANK), 1bit or fp8.",
    default="none",
    parse=parse_text,
    choices=names.grad_compressions,
)
STACK = Input(
    name="stack",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="Training software: typical, tuned, classic, fsdp-compile, eager; for fine-tuning: hf, torchtune, unsloth.",
    default="typical, or hf for fine-tuning on one node",
    parse=one_of(
        names.stacks, {"fsdp": "fsdp-compile", "megatron": "tuned", "liger": "unsloth", "deepspeed": "classic"}
    ),
    choices=names.stacks,
)
ATTENTION = Input(
    name="attention",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="flash or naive.",
    default="flash if the GPU supports it",
    parse=one_of(names.attentions, {"fused": "flash"}),
    choices=names.attentions,
)
MOE_DISPATCHER = Input(
    name="moe_dispatcher",
    group=InputGroup.TRAINING,
    metavar="NAME",
    help="How tokens reach experts: deepep (once per server, then once per GPU) or alltoall (once per expert).",
    default="deepep if the stack and the GPU support it",
    parse=one_of(names.dispatchers, {"hybridep": "deepep", "flex": "deepep", "standard": "alltoall"}),
    choices=names.dispatchers,
)
MTP_LAYERS = Input(
    name="mtp_layers",
    group=InputGroup.TRAINING,
    metavar="N",
    help="Multi-token prediction modules to train as well (DeepSeek-V3 has 1); 0 for none.",
    default="as published for the model, with stacks like Megatron's",
    parse=whole_number(low=0, high=16, example=1),
)

GPU = Input(
    name="gpu",
    group=InputGroup.MACHINES,
    metavar="ID,...",
    help="GPUs to compare, h100-sxm5-80gb by default; auto picks the cheapest on which the run "
    "fits, or the fastest if only a budget is given.",
    parse=parse_text,
    choices=names.gpus,
)
GPUS = Input(
    name="gpus",
    group=InputGroup.MACHINES,
    metavar="N",
    help="Number of GPUs.",
    default="searched, to meet the deadline or budget",
    parse=whole_number(),
)
BUDGET = Input(
    name="budget",
    group=InputGroup.MACHINES,
    metavar="USD",
    help="Maximum spend, like 2M; with no number of GPUs or deadline, the plan that finishes soonest within it.",
    parse=parse_usd,
)
DEADLINE = Input(
    name="deadline",
    group=InputGroup.MACHINES,
    metavar="TIME",
    help="Time to finish within, like 30d.",
    default=f"{DEFAULT_DEADLINE} without {GPUS.flag} or {BUDGET.flag}",
    parse=parse_duration_s,
    echoes_text=True,
)
CONFIDENCE = Input(
    name="confidence",
    group=InputGroup.MACHINES,
    metavar="P",
    help="Probability with which a plan must meet the deadline, and likewise the budget.",
    default=DEFAULT_CONFIDENCE,
    parse=probability(90),
    echoes_text=True,
)
MAX_GPUS = Input(
    name="max_gpus",
    group=InputGroup.MACHINES,
    metavar="N",
    help="Maximum number of GPUs to plan with.",
    default=f"no limit, or {DEFAULT_MAX_GPUS:,} if only a budget is given",
    parse=whole_number(),
)
GPUS_PER_NODE = Input(
    name="gpus_per_node",
    group=InputGroup.MACHINES,
    metavar="N",
    help="GPUs per server.",
    default="the usual number for the GPU; up to 8 for GPUs sold as single cards",
    parse=whole_number(),
)
NETWORK = Input(
    name="network",
    group=InputGroup.MACHINES,
    metavar="RATE",
    help="Network between servers: 400Gb/s (per GPU), 8x400Gb/s, ib-ndr.",
    default="the usual one for the GPU",
    parse=parse_text,
    choices=names.networks,
)
NETWORK_FILE = Input(
    name="network_file",
    group=InputGroup.MACHINES,
    metavar="FILE",
    help="Output of nccl-tests on your nodes, or a record imported from it.",
    parse=parse_text,
)
POWER_LIMIT = Input(
    name="power_limit",
    group=InputGroup.MACHINES,
    metavar="W|auto",
    help="Power limit per GPU in watts; auto searches for the cheapest.",
    default="the limit that the board is sold with",
    parse=parse_power_limit,
)

TP = Input(name="tp", group=InputGroup.LAYOUT, metavar="N", help="Degree of tensor parallelism.", parse=whole_number())
PP = Input(
    name="pp", group=InputGroup.LAYOUT, metavar="N", help="Degree of pipeline parallelism.", parse=whole_number()
)
VP = Input(
    name="vp", group=InputGroup.LAYOUT, metavar="N", help="Virtual stages per pipeline stage.", parse=whole_number()
)
CP = Input(name="cp", group=InputGroup.LAYOUT, metavar="N", help="Degree of context parallelism.", parse=whole_number())
EP = Input(name="ep", group=InputGroup.LAYOUT, metavar="N", help="Degree of expert parallelism.", parse=whole_number())
ZERO = Input(
    name="zero",
    group=InputGroup.LAYOUT,
    metavar="STAGE",
    help="ZeRO stage 0 to 3 (3 is FSDP).",
    parse=whole_number(low=0, high=3),
)
MICRO_BATCH = Input(
    name="micro_batch",
    group=InputGroup.LAYOUT,
    metavar="N",
    help="Sequences per micro-batch and rank.",
    parse=whole_number(),
)
MEMORY_RISK = Input(
    name="memory_risk",
    group=InputGroup.LAYOUT,
    metavar="P",
    help="Highest probability of running out of memory that a layout may have.",
    default=DEFAULT_MEMORY_RISK,
    parse=probability(10),
    echoes_text=True,
)

# fmt: off
INPUTS: tuple[Input[object], ...] = (
    PARAMS, MODEL,
    METHOD, TOKENS, SEQ_LEN, GLOBAL_BATCH, PRECISION, POLICY, OPTIMIZER, ACT_CKPT, OFFLOAD, GRAD_COMPRESSION, STACK,
    ATTENTION, MOE_DISPATCHER, MTP_LAYERS,
    SAMPLES, EXAMPLES, EPOCHS, IMAGE_SIZE, LENGTHS, PACKED, LORA_RANK, LORA_TARGETS, TRAINED_LAYERS, SINGLE_QUANT,
    IN_BACKWARD, LOSS,
    GPU, GPUS, DEADLINE, BUDGET, CONFIDENCE, MAX_GPUS, GPUS_PER_NODE, NETWORK, NETWORK_FILE, POWER_LIMIT,
    TP, PP, VP, CP, EP, ZERO, MICRO_BATCH, MEMORY_RISK,
    PRICE, PRICE_LIKE, PROVIDER, REGION, COMMITMENT, AS_OF, QUOTE, OWN, BESIDE, PUE, ELECTRICITY, TARIFF, POWER_CAP,
    GRID, MARKET_GRID, EMBODIED,
    RECORDS, CALIBRATION, NUMERICS, SEED,
)
# fmt: on
"""All inputs, in the order of the help."""

INPUT_BY_NAME = {item.name: item for item in INPUTS}


def find_input(name: str) -> Input[object]:
    """Return the input with a name.

    Raises:
        UsageError: there is no such input; near names are offered.
    """
    if name not in INPUT_BY_NAME:
        raise unknown_name("input", name, INPUT_BY_NAME, "help(mpplan.estimate)")  # typed in Python
    return INPUT_BY_NAME[name]
