"""What a question about a vision model has of its own: its images, its layout, and other defaults than language models.

Samples take the place of tokens: `Question.tokens` counts images and `Question.seq_len` is 1.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.models.image_network import ImageNetwork
from planner.models.images.catalogue import network_of, shape_of_images
from planner.models.shape import ModelShape
from planner.parallelism.search import FixedLayout
from planner.question.asked import Reader
from planner.question.batch import StepBatch, batch_band
from planner.question.input import Input
from planner.question.inputs import (
    ACT_CKPT,
    CP,
    EP,
    GLOBAL_BATCH,
    METHOD,
    MICRO_BATCH,
    MODEL,
    OFFLOAD,
    OPTIMIZER,
    PP,
    SEQ_LEN,
    STACK,
    TOKENS,
    TP,
    VP,
    ZERO,
)
from planner.question.resolve_tuning import UsualDataSet, samples_of
from planner.question.tuning_inputs import IMAGE_SIZE, IN_BACKWARD, LENGTHS, LOSS, PACKED, SAMPLES
from planner.training.frameworks import named_stacks
from planner.training.lengths import Lengths
from planner.training.policies import default_policy, find_policy
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import STACKS

IMAGENET_IMAGES = 1_281_167
"""Training images of ImageNet-1k (Russakovsky et al., arXiv 1409.0575)."""
CONVOLUTIONAL_EPOCHS, TRANSFORMER_EPOCHS = 90.0, 300.0
"""Usual passes over ImageNet: Goyal et al., arXiv 1706.02677, section 5.1; Touvron et al. (DeiT), arXiv 2012.12877,
table 9."""
DEFAULT_BATCH = 1024
"""Images per step where the user gives none: DeiT's (arXiv 2012.12877, table 9); He et al. trained with 256, Goyal et
al. with up to 8192."""

ONE_COPY = (TP, PP, VP, CP, EP)
"""Inputs that split a model, which is not planned for a vision model."""
INSTEAD = {TOKENS.name: f"give `{SAMPLES.flag} 115M`", SEQ_LEN.name: f"give `{IMAGE_SIZE.flag} 224`, or leave it out"}
"""Hints that name the vision-model input to use instead of an input of language models."""
AUTOCAST = {"bf16": "bf16-autocast"}
"""Default policies by precision: PyTorch's autocast, which keeps FP32 weights and no second copy of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """The data that a run trains on."""

    model: ModelShape
    """The model, at the size of the images."""
    seq_len: int
    tokens: float
    """Samples for a vision model, otherwise tokens without padding."""
    batch: StepBatch
    lengths: Lengths | None = None
    """Lengths of examples that are padded; None: every sequence is full."""
    lengths_assumed: bool = False


def read_images(read: Reader, model: ModelShape) -> TrainingData:
    """Read the images of a question.

    Raises:
        UsageError: an input of language models was given, or an input that contradicts another.
    """
    for item in (TOKENS, SEQ_LEN, LENGTHS, PACKED, IN_BACKWARD, LOSS):
        _refuse(
            read,
            item,
            f"applies only to language models, and {model.name} is a vision model",
            INSTEAD.get(item.name, "leave it out"),
        )
    network, size = network_of(model), read.value(IMAGE_SIZE)
    if size is None:
        read.note(IMAGE_SIZE, network.image_size, "catalogue")
    else:
        _check_patches(network, size)
        model = shape_of_images(network.at_size(size), model.evidence)
        if size != network.image_size:
            read.note(IMAGE_SIZE, size, note=Message.of("note.image_scaled", counted=network.image_size))
    epochs = CONVOLUTIONAL_EPOCHS if network.is_convolutional else TRANSFORMER_EPOCHS
    usual = UsualDataSet(examples=float(IMAGENET_IMAGES), epochs=epochs, note=Message.of("note.imagenet"))
    samples = samples_of(read, usual)
    return TrainingData(model=model, seq_len=1, tokens=samples, batch=_batch(read))


def _check_patches(network: ImageNetwork, size: int) -> None:
    """Check that images of another size than the model's own consist of whole patches."""
    patch = network.patch
    if patch is None or size == network.image_size or size % patch == 0:
        return
    nearest = max(patch, round(size / patch) * patch)
    raise UsageError(
        f"{IMAGE_SIZE.flag}: {size} pixels are not a whole number of the {patch}-pixel patches of {network.name}",
        hint=f"the nearest size that is: `{IMAGE_SIZE.flag} {nearest}`; the model's own is {network.image_size}",
    )


def _batch(read: Reader) -> StepBatch:
    given = read.value(GLOBAL_BATCH)
    if given is not None:
        return StepBatch(sequences=given)
    band = batch_band(DEFAULT_BATCH, None)
    note = Message.of("note.images_per_step", least=band[0], most=band[1])
    read.note(GLOBAL_BATCH, DEFAULT_BATCH, "default", note)
    return StepBatch(sequences=DEFAULT_BATCH, band=band)


def _refuse(read: Reader, item: Input[object], why: str, hint: str) -> None:
    if read.text(item) is not None:
        raise UsageError(f"{item.flag} {why}", hint=hint)


def read_one_copy(read: Reader, model: ModelShape) -> FixedLayout:
    """Return the layout of a vision model: a whole copy on every GPU, with as large a micro-batch as fits.

    Raises:
        UsageError: a way to split the model, or to save memory, was given that is not planned for it.
    """
    alone = f"leave it out: {model.name} is planned with a whole copy on every GPU"
    for item in ONE_COPY:
        if read.value(item) not in (None, 1):
            raise UsageError(f"{item.flag} splits a model, which is not planned for vision models", hint=alone)
    planned: tuple[tuple[Input[object], tuple[object, ...]], ...] = (
        (ZERO, (None, 0)), (ACT_CKPT, (None, "none")), (OFFLOAD, (None, "none")), (METHOD, (None, "pretrain", "sft")),
    )  # fmt: skip
    for setting, allowed in planned:
        if read.value(setting) not in allowed:
            raise UsageError(f"{setting.flag}: `{read.text(setting)}` is not planned for vision models", hint=alone)
    return FixedLayout(
        tp=1, pp=1, vp=1, cp=1, ep=1, zero=0, micro_batch=read.value(MICRO_BATCH), act_ckpt="none"
    )  # fmt: skip


def image_defaults(read: Reader, model: ModelShape) -> tuple[str, str]:
    """Return the optimizer and stack: usually eager PyTorch, with SGD with momentum for convolutional networks.

    Raises:
        UsageError: the stack is a framework of language models.
    """
    optimizer, stack = read.value(OPTIMIZER), read.value(STACK)
    if stack in named_stacks():
        raise UsageError(
            f"{STACK.flag}: `{stack}` is only planned for language models, and {model.name} is a vision model",
            hint=f"leave it out for eager PyTorch, as in timm and Hugging Face, or give one of {', '.join(STACKS)}",
        )
    if stack is None:
        stack = "eager"
        read.note(STACK, stack, note=Message.of("note.image_stack"))
    return optimizer or network_of(model).usual_optimizer, stack


def policy_of(model: ModelShape) -> Callable[[str], PrecisionPolicy]:
    """Return the function that maps a precision to its default policy; for a vision model, autocast."""
    return _autocast if model.kind == "image" else default_policy


def _autocast(precision: str) -> PrecisionPolicy:
    return find_policy(AUTOCAST[precision]) if precision in AUTOCAST else default_policy(precision)


def refuse_images(read: Reader, model: ModelShape) -> None:
    """Refuse the inputs of vision models where the model is not one.

    Raises:
        UsageError: such an input was given.
    """
    hint = f"leave it out, or name a vision model: `{MODEL.flag} resnet-50`"
    _refuse(read, IMAGE_SIZE, f"applies only to vision models, and {model.name} is not one", hint)
