"""Read the data of a run in examples, how a fine-tuning is done, and how gradients are compressed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import InputFileError, Message, UsageError
from planner.files import read_text
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.question.asked import Reader
from planner.question.input import Input
from planner.question.inputs import (
    GLOBAL_BATCH,
    GRAD_COMPRESSION,
    METHOD,
    MICRO_BATCH,
    MOE_DISPATCHER,
    MTP_LAYERS,
    PP,
    SEQ_LEN,
    STACK,
    TOKENS,
    TOKENS_PER_PARAM,
    TP,
    ZERO,
)
from planner.question.question import Tuning
from planner.question.tuning_inputs import (
    DEFAULT_EXAMPLES,
    EPOCHS,
    EXAMPLES,
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
from planner.records.home import user_path
from planner.training.adapters import ALL_LINEAR, adapted_weights
from planner.training.frameworks import Framework
from planner.training.grad_compression import OF_RANK, GradCompression, find_grad_compression
from planner.training.lengths import Lengths
from planner.training.method import Method, load_methods
from planner.training.optimizer import Optimizer
from planner.training.recipe import trained_mtp_layers
from planner.units import parse_count

USUAL_TOKENS = 400.0
"""Mean tokens of an example where the user gives none: assumed, between instruction sets of 100 and conversations of
1,500."""
MOST_OF_SEQUENCE = 0.6
"""Largest assumed mean length of an example, as a share of the longest sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceData:
    """The tokens that a language model trains on, and the lengths of the examples that they come in."""

    tokens: float
    """Tokens of all passes, without padding."""
    lengths: Lengths | None
    """Lengths of examples that are padded; None: every sequence is full."""
    lengths_assumed: bool


def read_data(read: Reader, model: ModelShape, method: Method, seq_len: int) -> SequenceData:
    """Return the tokens of the run: given, from examples and passes over them, or the default of the method.

    Raises:
        UsageError: tokens and examples were both given, or a value cannot be read.
        InputFileError: the file of lengths is invalid.
    """
    tokens = read.value(TOKENS)
    counted = next((item for item in (SAMPLES, EXAMPLES, EPOCHS) if read.text(item) is not None), None)
    packed = bool(read.value(PACKED))
    if tokens is not None and counted is not None:
        raise UsageError(
            f"both {TOKENS.flag} and {counted.flag} were given",
            hint=f"leave {EPOCHS.flag} out: {TOKENS.flag} counts the tokens of all passes"
            if counted is EPOCHS
            else "leave one out: each says how much the run trains on",
        )
    if tokens is None and counted is None and not method.fine_tunes:
        tokens = TOKENS_PER_PARAM * model.params_total
        read.note(TOKENS, tokens, note=Message.of("note.tokens_per_param", tokens=TOKENS_PER_PARAM))
    if tokens is not None:
        lengths = None if read.text(LENGTHS) is None else _lengths(read, seq_len)[0]
        return SequenceData(tokens=tokens, lengths=None if packed else lengths, lengths_assumed=False)
    if counted is EPOCHS and not method.fine_tunes:
        raise UsageError(f"{EPOCHS.flag} was given without {EXAMPLES.flag}", hint=f"add `{EXAMPLES.flag} 100k`")
    usual = UsualDataSet(examples=DEFAULT_EXAMPLES, epochs=1.0, note=Message.of("note.usual_examples"))
    sequences = samples_of(read, usual) * method.sequences_per_example
    if not method.fine_tunes and read.text(LENGTHS) is None:
        read.note(TOKENS, sequences * seq_len, "derived", Message.of("note.tokens_of_samples", seq_len=seq_len))
        return SequenceData(tokens=sequences * seq_len, lengths=None, lengths_assumed=False)
    lengths, assumed = _lengths(read, seq_len)
    note = Message.of("note.tokens_of_examples", examples=sequences, mean=lengths.mean_tokens)
    read.note(TOKENS, sequences * lengths.mean_tokens, "derived", note)
    return SequenceData(
        tokens=sequences * lengths.mean_tokens, lengths=None if packed else lengths, lengths_assumed=assumed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualDataSet:
    """The data set that is assumed where the user names none."""

    examples: float
    """Examples in the data set."""
    epochs: float
    """Passes over the data set."""
    note: Message


def samples_of(read: Reader, usual: UsualDataSet) -> float:
    """Return the samples of the run: given, or those of the data set times the passes over it.

    Raises:
        UsageError: both ways were used, or there are more samples than anybody trains on.
    """
    given, examples, epochs = read.value(SAMPLES), read.value(EXAMPLES), read.value(EPOCHS)
    if given is not None:
        if examples is not None or epochs is not None:
            other = EXAMPLES if examples is not None else EPOCHS
            raise UsageError(
                f"both {SAMPLES.flag} and {other.flag} were given",
                hint=f"{SAMPLES.flag} counts what the run sees, {EXAMPLES.flag} the data set: leave out one",
            )
        return given
    if epochs is None:
        epochs = 1.0 if examples is not None else usual.epochs
        read.note(EPOCHS, epochs, note=None if examples is not None else Message.of("note.epochs", epochs=epochs))
    if examples is None:
        examples = usual.examples
        read.note(EXAMPLES, examples, note=usual.note)
    samples = examples * epochs
    if not 1.0 <= samples <= MOST_SAMPLES:
        raise UsageError(
            f"{EXAMPLES.flag} times {EPOCHS.flag} is {samples:g} samples", hint="give 1 to 1e15 samples in all"
        )
    read.note(SAMPLES, samples, "derived", Message.of("note.samples", examples=examples, epochs=epochs))
    return samples


MOST_SAMPLES = 1e15
"""Most samples of a run: more is a slip."""


def _lengths(read: Reader, seq_len: int) -> tuple[Lengths, bool]:
    """Return the lengths of the examples, and whether they are assumed."""
    text = read.text(LENGTHS)
    if text is None:
        mean = max(1.0, min(USUAL_TOKENS, MOST_OF_SEQUENCE * seq_len))
        read.note(LENGTHS, mean, note=Message.of("note.usual_lengths"))
        return Lengths.around(mean, seq_len), True
    path = user_path(text)
    if os.path.isfile(path):
        lengths = _lengths_of_file(path, seq_len)
        read.note(LENGTHS, text, note=Message.of("note.counted_lengths", mean=lengths.mean_tokens))
        return lengths, False
    try:
        mean = parse_count(text, LENGTHS.flag)
    except UsageError as error:
        raise UsageError(
            f"{LENGTHS.flag}: `{text}` is neither a number of tokens nor a file", hint=f"for example {LENGTHS.flag} 400"
        ) from error
    read.note(LENGTHS, mean)
    return Lengths.around(mean, seq_len), False


def _lengths_of_file(path: Path, seq_len: int) -> Lengths:
    """Read one length per line; blank lines and those that begin with `#` are skipped.

    Raises:
        InputFileError: a line is not a number of tokens, or there is no line.
    """
    name, counted = str(path), list[float]()
    for number, line in enumerate(read_text(path, name).splitlines(), start=1):
        cell = line.strip().rstrip(",")
        if not cell or cell.startswith("#"):
            continue
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not 1.0 <= value < float("inf"):
            raise InputFileError(
                f"{name}:{number}: length: expected a number of tokens of at least 1", hint="one length per line"
            )
        counted.append(value)
    if not counted:
        raise InputFileError(f"{name}:1: length: expected at least one number of tokens", hint="one length per line")
    return Lengths.of(np.array(counted), seq_len)


def read_tuning(read: Reader, method: Method, model: ModelShape, stack: str) -> tuple[ModelShape, Tuning]:
    """Return the model with the modules trained beside it, and the tuning settings that its method leaves open.

    Raises:
        UsageError: an input was given that the method does not use, or a value cannot be read.
    """
    _check_used(read, method)
    if read.text(MOE_DISPATCHER) is not None and not model.experts:
        raise UsageError(
            Message.of("error.dispatcher_without_experts", model=model.name), hint=Message.of("hint.dispatcher")
        )
    layers = read.value_or_default(TRAINED_LAYERS) if method.trains == "last-layers" else 0
    if layers > model.layers:
        raise UsageError(
            f"{TRAINED_LAYERS.flag}: {layers} is more than the {model.layers} layers of {model.name}",
            hint=f"{METHOD.flag} sft trains all of them",
        )
    rank = read.value_or_default(LORA_RANK) if method.adapts else 0
    if rank > model.hidden:
        raise UsageError(
            f"{LORA_RANK.flag}: {rank:,} is more than the {model.hidden:,} inputs of the layers of {model.name}",
            hint=f"{METHOD.flag} sft trains all weights, and there are fewer of them",
        )
    targets = read.value_or_default(LORA_TARGETS) if method.adapts else ALL_LINEAR
    if method.adapts and not any(weight.copies for weight in adapted_weights(model, targets, fused=True)):
        raise UsageError(
            f"{LORA_TARGETS.flag}: no layer of {model.name} has weights of `{targets}`",
            hint=f"{LORA_TARGETS.flag} {ALL_LINEAR} adapts those that it has",
        )
    tuning = Tuning(
        lora_rank=rank,
        lora_targets=targets,
        trained_layers=layers,
        double_quant=not read.value(SINGLE_QUANT),
        in_backward=bool(read.value(IN_BACKWARD)),
        loss=read.value(LOSS),
        moe_dispatcher=read.value(MOE_DISPATCHER),
    )
    return _with_mtp_layers(read, model, method, stack), tuning


def _with_mtp_layers(read: Reader, model: ModelShape, method: Method, stack: str) -> ModelShape:
    """Return the model with the modules of multi-token prediction that the run trains.

    Raises:
        UsageError: such modules were requested where nothing trains them.
    """
    given, usual = read.value(MTP_LAYERS), trained_mtp_layers(model, method, stack)
    if given and (model.kind != "decoder" or method.trains != "all" or method.pairs):
        raise UsageError(
            Message.of("error.mtp_layers", model=model.name, method=method.id), hint=Message.of("hint.mtp_layers")
        )
    if given is None and model.mtp_layers and not method.fine_tunes:
        note = Message.of("note.mtp_published" if usual else "note.mtp_stack", published=model.mtp_layers, stack=stack)
        read.note(MTP_LAYERS, usual, "catalogue" if usual else "default", note)
    return replace(model, mtp_layers=usual if given is None else given)


def check_one_micro_batch(read: Reader, tuning: Tuning, gpus: int | None) -> None:
    """Check that a step is one micro-batch on each GPU where updates are made inside the backward pass.

    Raises:
        UsageError: batch, micro-batch and GPUs were given, and make more or less than one micro-batch per GPU.
    """
    batch, micro_batch = read.value(GLOBAL_BATCH), read.value(MICRO_BATCH)
    if not tuning.in_backward or batch is None or micro_batch is None or gpus is None:
        return
    if batch != micro_batch * gpus:
        raise UsageError(
            f"{IN_BACKWARD.flag} makes a step of one micro-batch per GPU: {micro_batch * gpus} sequences, not {batch}",
            hint=f"{GLOBAL_BATCH.flag} {micro_batch * gpus}, or leave {MICRO_BATCH.flag} out",
        )


def _check_used(read: Reader, method: Method) -> None:
    needs: tuple[tuple[tuple[Input[Any], ...], Callable[[Method], bool]], ...] = (
        ((LORA_RANK, LORA_TARGETS), lambda other: other.adapts),
        ((TRAINED_LAYERS,), lambda other: other.trains == "last-layers"),
        ((SINGLE_QUANT,), lambda other: other.low_bits),
    )
    for inputs, uses in needs:
        for item in inputs:
            if read.text(item) is not None and not uses(method):
                *most, last = [other.id for other in load_methods().values() if uses(other)]
                methods = f"{', '.join(most)} or {last}" if most else last
                raise UsageError(
                    f"{item.flag} does not apply to {METHOD.flag} {method.id}", hint=f"it applies to {methods}"
                )
    tp = read.value(TP) or 1
    if method.low_bits and tp > 1:
        raise UsageError(
            Message.of("error.tp_low_bits", tp=tp, method=method.id),
            hint=Message.of("hint.tp_low_bits", method=UNPACKED[method.id]),
        )
    pp = read.value(PP) or 1
    if method.trains == "last-layers" and pp > 1:
        raise UsageError(Message.of("error.pp_last_layers", pp=pp), hint=Message.of("hint.pp_last_layers"))


UNPACKED = {"qlora": "lora", "qdora": "dora", "dpo-qlora": "dpo-lora"}
"""16-bit counterparts of the methods that keep frozen weights in 4 bits."""


def tuning_length(read: Reader, model: ModelShape, usual: int) -> int:
    """Return the longest sequence of a fine-tuning where none is given: the usual one, or the model's if shorter."""
    seq_len = min(usual, model.context)
    read.note(SEQ_LEN, seq_len, "default")
    return seq_len


def asked_grad_compression(read: Reader) -> GradCompression | None:
    """Return the compression of gradients; None: gradients are sent as they are.

    Raises:
        UsageError: there is no such method or rank.
    """
    text = read.value_or_default(GRAD_COMPRESSION).strip().lower()
    scheme = find_grad_compression(text)
    if scheme is not None:
        read.note(GRAD_COMPRESSION, f"{scheme.id}{OF_RANK}{scheme.rank}" if scheme.rank else scheme.id)
    return scheme


def stack_with(
    read: Reader, scheme: GradCompression | None, stack: str, framework: Framework | None
) -> tuple[str, Framework | None]:
    """Return stack and framework unchanged or, where the user gave none, the usual stack that has the method.

    Args:
        read: the question.
        scheme: the method that compresses gradients; None: none.
        stack: as given, or the usual one.
        framework: the framework behind the stack, where it has a name.

    Raises:
        UsageError: a stack was given that does not have the method.
    """
    if scheme is None or not scheme.stacks or stack in scheme.stacks:
        return stack, framework
    if read.value(STACK) is not None:
        raise UsageError(
            Message.of("error.compression_stack", name=scheme.name, home=scheme.home, stack=stack),
            hint=Message.of("hint.compression_stack", stacks=scheme.stacks),
        )
    read.note(
        STACK, scheme.stacks[0], "derived", Message.of("note.compression_stack", name=scheme.name, home=scheme.home)
    )
    return scheme.stacks[0], None


def check_grad_compression(
    read: Reader, scheme: GradCompression | None, optimizer: Optimizer, clusters: tuple[Cluster, ...]
) -> None:
    """Refuse settings that the compression method does not support.

    Raises:
        UsageError: the ZeRO stage, the optimizer or a GPU is not supported.
    """
    if scheme is None:
        return
    zero = read.value(ZERO)
    if zero is not None and zero > scheme.most_zero:
        allows_some = scheme.most_zero > 0
        raise UsageError(
            Message.of(
                "error.compression_zero" if allows_some else "error.compression_no_zero", name=scheme.name, zero=zero
            ),
            hint=Message.of(
                "hint.compression_zero" if allows_some else "hint.compression_no_zero", most=scheme.most_zero
            ),
        )
    if scheme.optimizers and optimizer.id not in scheme.optimizers:
        raise UsageError(
            Message.of("error.compression_optimizer", name=scheme.name, optimizer=optimizer.id),
            hint=Message.of("hint.compression_optimizer", optimizers=scheme.optimizers),
        )
    lacking = [
        cluster.gpu.id for cluster in clusters if scheme.compute and scheme.compute not in cluster.gpu.peak_flop_per_s
    ]
    if scheme.compute and lacking:
        raise UsageError(
            Message.of("error.compression_gpu", name=scheme.name, gpus=tuple(lacking)),
            hint=Message.of("hint.compression_gpu", compute=scheme.compute),
        )
