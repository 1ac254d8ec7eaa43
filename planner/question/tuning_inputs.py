"""The inputs about the data of a run, images and fine-tuning, each declared once (see `planner.question.inputs`)."""

from __future__ import annotations

from planner.question import names
from planner.question.input import Input, InputGroup
from planner.question.parsers import number, one_of, parse_amount, parse_switch, parse_text, whole_number
from planner.units import parse_count

DEFAULT_EXAMPLES = 50_000
"""Examples of a fine-tuning where the user gives none: about as many as Alpaca's 52,002 (data card:
tatsu-lab/alpaca)."""

IMAGE_SIZE = Input(
    name="image_size",
    group=InputGroup.TUNING,
    metavar="N",
    help="Side of an image in pixels, for vision models.",
    default="that of the model",
    parse=whole_number(low=16, high=4096, example=224),
)
SAMPLES = Input(
    name="samples",
    group=InputGroup.TUNING,
    metavar="N",
    help="Total images or sequences to train on, like 115M.",
    parse=parse_amount,
)
EXAMPLES = Input(
    name="examples",
    group=InputGroup.TUNING,
    metavar="N",
    help="Examples (or images) in the data set, in place of a number of tokens.",
    default=f"{DEFAULT_EXAMPLES:,} for fine-tuning, those of ImageNet for images",
    parse=parse_count,
)
EPOCHS = Input(
    name="epochs",
    group=InputGroup.TUNING,
    metavar="N",
    help="Passes over the examples.",
    default="1; 90 or 300 for ImageNet",
    parse=number(0.0, above=True, example="3"),
)
LENGTHS = Input(
    name="lengths",
    group=InputGroup.TUNING,
    metavar="N|FILE",
    help="Mean tokens per example (per answer, for DPO), or a file with one length per line.",
    default="400, with a wide uncertainty range",
    parse=parse_text,
)
PACKED = Input(
    name="packed",
    group=InputGroup.TUNING,
    metavar=None,
    help="Pack examples into full sequences, instead of padding each to the longest in its micro-batch.",
    parse=parse_switch,
)
LORA_RANK = Input(
    name="lora_rank",
    group=InputGroup.TUNING,
    metavar="N",
    help="Rank of the adapters.",
    default="16",
    parse=whole_number(high=65536),
)
LORA_TARGETS = Input(
    name="lora_targets",
    group=InputGroup.TUNING,
    metavar="NAME",
    help="Weights that get adapters: all-linear, attention, mlp or qv.",
    default="all-linear",
    parse=one_of(names.adapter_targets, {"all": "all-linear", "q,v": "qv"}),
    choices=names.adapter_targets,
)
TRAINED_LAYERS = Input(
    name="trained_layers",
    group=InputGroup.TUNING,
    metavar="N",
    help="Number of last layers trained by the method freeze.",
    default="2",
    parse=whole_number(high=10000),
)
SINGLE_QUANT = Input(
    name="single_quant",
    group=InputGroup.TUNING,
    metavar=None,
    help="Turn off double quantisation of 4-bit weights.",
    parse=parse_switch,
)
IN_BACKWARD = Input(
    name="in_backward",
    group=InputGroup.TUNING,
    metavar=None,
    help="Update each layer inside the backward pass, so that no gradients are kept.",
    parse=parse_switch,
)
LOSS = Input(
    name="loss",
    group=InputGroup.TUNING,
    metavar="NAME",
    help="full, chunked (no FP32 copy of all logits) or fused (with the output layer; never holds all logits).",
    default="that of the stack",
    parse=one_of(names.losses, {"unfused": "full", "liger": "fused"}),
    choices=names.losses,
)
