"""Turn the question as typed into a `Question`: read every input, fill in the defaults, record each source."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import Message, UsageError
from planner.hardware.catalogue import find_gpu, load_gpus
from planner.hardware.cluster import (
    CARDS_PER_MACHINE,
    DEFAULT_NIC_BYTES_PER_S,
    Cluster,
    cards_of_one_machine,
    make_cluster,
)
from planner.hardware.gpu import Gpu
from planner.hardware.typed_network import is_of_a_server, parse_network
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.search import FixedLayout
from planner.question.asked import Ask, Reader
from planner.question.batch import (
    StepBatch,
    batch_band,
    batch_sequences,
    critical_batch_tokens,
    default_batch_sequences,
    tuning_band,
    tuning_batch,
)
from planner.question.cost_inputs import CALIBRATION, NUMERICS, SEED
from planner.question.inputs import (
    ACT_CKPT,
    ATTENTION,
    BUDGET,
    CONFIDENCE,
    CP,
    DEADLINE,
    DEFAULT_DEADLINE,
    DEFAULT_MAX_GPUS,
    DEFAULT_SEQ_LEN,
    EP,
    GLOBAL_BATCH,
    GPU,
    GPUS,
    GPUS_PER_NODE,
    MAX_GPUS,
    MEMORY_RISK,
    METHOD,
    MICRO_BATCH,
    MODEL,
    NETWORK,
    NETWORK_FILE,
    OFFLOAD,
    OPTIMIZER,
    POLICY,
    POWER_LIMIT,
    PP,
    PRECISION,
    SEQ_LEN,
    STACK,
    TP,
    TUNING_SEQ_LEN,
    VP,
    ZERO,
)
from planner.question.parsers import AUTO, is_auto
from planner.question.question import Question
from planner.question.resolve_costs import read_money
from planner.question.resolve_images import (
    TrainingData,
    image_defaults,
    policy_of,
    read_images,
    read_one_copy,
    refuse_images,
)
from planner.question.resolve_model import resolve_model
from planner.question.resolve_tuning import (
    asked_grad_compression,
    check_grad_compression,
    check_one_micro_batch,
    read_data,
    read_tuning,
    stack_with,
    tuning_length,
)
from planner.question.tuning_inputs import EXAMPLES, IN_BACKWARD
from planner.question.usual_names import taken_for
from planner.rates.clock import idle_w, least_limit_w
from planner.records.home import CPU_LOCAL
from planner.rows import compact
from planner.training.frameworks import Framework, named_stacks
from planner.training.method import Method, find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS, PrecisionPolicy
from planner.units import GIGA

DEFAULT_GPU = "h100-sxm5-80gb"
DEFAULT_PRECISION = "bf16"
DEFAULT_STACK = "typical"
DEFAULT_OPTIMIZER = "adamw"
TUNING_STACK = "hf"
"""Stack of a fine-tuning that fits on the GPUs of one node."""


def _global_batch(read: Reader, model: ModelShape, method: Method, seq_len: int, tokens: float) -> StepBatch:
    given = read.value(GLOBAL_BATCH)
    for item in (GLOBAL_BATCH, MICRO_BATCH):
        number = read.value(item)
        if number is not None and number % method.sequences_per_example:
            raise UsageError(
                f"{item.flag} counts sequences, and an example of {method.id} has two: {number} is odd",
                hint=f"for example {item.flag} {number + 1}",
            )
    if given is not None:
        return StepBatch(sequences=given)
    if method.fine_tunes:
        in_backward = bool(read.value(IN_BACKWARD))
        usual = tuning_batch(read.value(GPUS) or 0, method.sequences_per_example)
        band = tuning_band(usual, in_backward=in_backward)
        note = Message.of("note.usual_batch", least=band[0], most=band[1])
        read.note(GLOBAL_BATCH, usual, "default", note)
        return StepBatch(sequences=usual, band=band, kept=not in_backward)
    published = model.global_batch_tokens
    sequences = batch_sequences(published, seq_len) if published else default_batch_sequences(tokens, seq_len)
    critical = critical_batch_tokens(model.params_total, tokens) / seq_len
    band = batch_band(sequences, critical)
    note = Message.of(
        "note.published_batch" if published else "note.batch_by_tokens",
        tokens=sequences * seq_len, least=band[0], most=band[1],
        critical=Message.of("note.critical_batch", tokens=critical * seq_len),
    )  # fmt: skip
    read.note(GLOBAL_BATCH, sequences, "catalogue" if published else "default", note)
    return StepBatch(sequences=sequences, band=band, critical=critical, kept=bool(published))


def _policies(
    read: Reader, model: ModelShape, framework: Framework | None
) -> tuple[PrecisionPolicy, tuple[PrecisionPolicy, ...]]:
    """Return the requested policy and those compared with it: the framework's where one was requested."""
    usual = policy_of(model) if framework is None else framework.policy
    precision, name = read.value(PRECISION), read.text(POLICY)
    asked = find_policy(name) if name else usual(precision or DEFAULT_PRECISION)
    if name and precision and asked.precision != precision:
        raise UsageError(
            f"{POLICY.flag} {name} belongs to {asked.precision}, not to {PRECISION.flag} {precision}",
            hint=f"leave out {PRECISION.flag}, or ask for {asked.precision}",
        )
    read.note(PRECISION, asked.precision, "derived" if name and not precision else None)
    read.note(POLICY, asked.id, note=Message.of("note.policy", what=asked.evidence.what))
    names = [*PRECISIONS, *([asked.precision] if asked.precision in EXTRA_PRECISIONS else [])]
    return asked, tuple(asked if name == asked.precision else usual(name) for name in names)


def _gpu(name: str, own: OwnDevices) -> Gpu:
    """Return a row of the catalogue, or the device of this machine's own record (`cpu-local`)."""
    if compact(name) != compact(CPU_LOCAL):
        return find_gpu(name)
    if (local := own.local()) is None:
        raise UsageError(
            f"{GPU.flag}: there is no trustworthy record of {CPU_LOCAL}",
            hint="measure this machine: `mpplan probe --device cpu`; `mpplan records list` shows what is there",
        )
    return local


def _clusters(read: Reader, own: OwnDevices) -> tuple[Cluster, ...]:
    text = read.text(GPU) or own.gpu or DEFAULT_GPU
    names = [name.strip() for name in text.split(",") if name.strip()]
    usual = [taken_for("gpu", name, load_gpus()) for name in names]
    gpus = [_gpu(short[0] if short else name, own) for name, short in zip(names, usual, strict=True)]
    if not gpus:
        raise UsageError(f"{GPU.flag}: no name given", hint="`mpplan gpus` lists the catalogue")
    per_node, limit_w, network = read.value(GPUS_PER_NODE), read.value(POWER_LIMIT), read.text(NETWORK)
    if _searches_power_limit(read):
        read.note(POWER_LIMIT, AUTO, note=Message.of("note.limit_searched"))
        _check_limits_known(gpus)
    if limit_w:
        _check_limit(limit_w, gpus)
    clusters = []
    for gpu in {gpu.id: gpu for gpu in gpus}.values():
        cards = cards_of_one_machine(gpu, read.value(GPUS))
        node = per_node or cards or gpu.gpus_per_node
        between = parse_network(network, NETWORK.flag, node) if network else None
        sized = bool(cards and read.value(GPUS) and not per_node and not is_of_a_server(network or ""))
        cluster = make_cluster(gpu, gpus_per_node=node, network=between, power_limit_w=limit_w, sized_by_number=sized)
        clusters.append(cluster)
    _note_machines(read, clusters, recorded=own.gpu is not None and read.text(GPU) is None)
    if taken := tuple(short[1] for short in usual if short):
        read.note(GPU, read.inputs[GPU.name].value, "derived", Message.of("note.usual_names", names=taken))
    return tuple(clusters)


def _check_limit(limit_w: float, gpus: list[Gpu]) -> None:
    """Raise for a power limit that no board can be set to, or at which one of them cannot train."""
    most = max(gpus, key=lambda gpu: gpu.tdp_w)
    if limit_w > most.tdp_w > 0:
        raise UsageError(f"{POWER_LIMIT.flag} {limit_w:g}: {most.name} takes at most {most.tdp_w:g} W",
                         hint="leave it out for the limit as sold")  # fmt: skip
    for gpu in gpus:
        if limit_w < (least_w := least_limit_w(gpu)):
            more = f"; idle it draws {idle_w(gpu):.0f} W" if gpu.power_limit_min_w is None else ", or `auto`"
            raise UsageError(f"{POWER_LIMIT.flag} {limit_w:g}: {gpu.name} takes at least {least_w:g} W",
                             hint=f"from {least_w:g} to {gpu.tdp_w:g} W{more}")  # fmt: skip


def _searches_power_limit(read: Reader) -> bool:
    """Return whether the power limit is left to a search."""
    return is_auto(read.text(POWER_LIMIT))


def _check_limits_known(gpus: list[Gpu]) -> None:
    for gpu in gpus:
        if gpu.power_limit_min_w is None:
            known = ", ".join(row.id for row in load_gpus().values() if row.power_limit_min_w is not None)
            raise UsageError(Message.of("error.power_limits_unknown", gpu=gpu.id),
                             hint=Message.of("hint.power_limits_known", known=known))  # fmt: skip


def _note_machines(read: Reader, clusters: list[Cluster], *, recorded: bool) -> None:
    """Record the GPUs, the servers and the network, of the first GPU where there are several."""
    first = clusters[0]
    ids = [cluster.gpu.id for cluster in clusters]
    note = Message.of("note.gpu_of_record") if recorded else None
    read.note(GPU, ids if len(ids) > 1 else first.gpu.id, "record" if recorded else None, note)
    if read.text(GPUS_PER_NODE) is None:
        sold_singly = (c for c in clusters if cards_of_one_machine(c.gpu, c.gpus_per_node) is not None)
        cards = next(sold_singly, None)
        note = Message.of("note.cards", most=CARDS_PER_MACHINE) if cards else None
        read.note(GPUS_PER_NODE, (cards or first).gpus_per_node, "default" if cards else "catalogue", note)
    source = None if read.text(NETWORK) else "default" if first.nic_assumed else "catalogue"
    assumed = Message.of("note.network_assumed", gbit_per_s=_gbit_per_s(DEFAULT_NIC_BYTES_PER_S))
    rate = Message.of("text.network_rate", gbit_per_s=_gbit_per_s(first.nic_bytes_per_s))
    read.note(NETWORK, rate, source, assumed if first.nic_assumed else None)
    read.value(NETWORK_FILE)  # recorded only: a higher layer reads the file


def _gbit_per_s(rate_bytes_per_s: float) -> float:
    return rate_bytes_per_s * 8 / GIGA


def _max_gpus(read: Reader, *, budget_alone: bool) -> int | None:
    """Return the most GPUs that the user allows; where only a budget limits them, record the default."""
    given = read.value(MAX_GPUS)
    if given is None and budget_alone:
        read.note(MAX_GPUS, DEFAULT_MAX_GPUS, "default")
    return given


def _stack(read: Reader, method: Method) -> tuple[str, Framework | None]:
    """Return the stack whose kernels are used, and the framework behind it where that has a name.

    Fine-tuning uses Hugging Face by default; the caller takes the stack of several nodes where one node is not enough.
    """
    name = read.value(STACK)
    if name is None:
        name = TUNING_STACK if method.fine_tunes else DEFAULT_STACK
        read.note(STACK, name)
    framework = named_stacks().get(name)
    return (name, None) if framework is None else (framework.stack, framework)


def _defaults(read: Reader, model: ModelShape, method: Method) -> tuple[str, str, Framework | None]:
    """Return the optimizer, the stack and the framework behind it, as given or as usual."""
    if model.kind == "image":
        return (*image_defaults(read, model), None)
    stack, framework = _stack(read, method)
    usual = DEFAULT_OPTIMIZER if framework is None else framework.optimizer.id
    return read.value(OPTIMIZER) or usual, stack, framework


def _fixed(read: Reader, method: Method, framework: Framework | None) -> FixedLayout:
    """Return the fixed parts of the layout; a named framework spreads a model over data-parallel ranks alone.

    No usual software trains adapters in a pipeline, so a stack must be named for that.
    """
    alone = None if framework is None else 1
    unpiped = 1 if method.adapts and read.inputs[STACK.name].source == "default" else alone
    return FixedLayout(
        tp=read.value(TP) or alone,
        pp=read.value(PP) or unpiped,
        vp=read.value(VP) or unpiped,
        cp=read.value(CP) or alone,
        ep=read.value(EP) or alone,
        zero=read.value(ZERO),
        micro_batch=read.value(MICRO_BATCH),
        act_ckpt=read.value(ACT_CKPT),
        on_given_gpus=bool(read.value(GPUS)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDevices:
    """The GPUs that the records of this machine offer."""

    gpu: str | None = None
    """Catalogue id of the GPU with the newest trustworthy record: the default."""
    local: Callable[[], Gpu | None] = lambda: None
    """Returns the CPU as a row from its record, only for `--gpu cpu-local`; None where the record is insufficient."""


NO_DEVICES = OwnDevices()


def resolve(ask: Ask, own: OwnDevices = NO_DEVICES) -> Question:
    """Read and complete a question.

    Args:
        ask: the question as typed.
        own: the GPUs that this machine's records offer.

    Raises:
        UsageError: a value cannot be read, a name is unknown, or two inputs contradict each other.
        InputFileError: the model's config.json is invalid.
    """
    read = Reader(ask)
    model = resolve_model(read)
    method = find_method(read.value_or_default(METHOD))
    images = model.kind == "image"
    data = read_images(read, model) if images else _sequences(read, model, method)
    model, batch = data.model, data.batch
    clusters = _clusters(read, own)
    usual_optimizer, stack, framework = _defaults(read, model, method)
    compression = asked_grad_compression(read)
    stack, framework = stack_with(read, compression, stack, framework)
    asked, policies = _policies(read, model, framework)
    optimizer = find_optimizer(usual_optimizer)
    read.note(OPTIMIZER, optimizer.id)
    fixed = read_one_copy(read, model) if images else _fixed(read, method, framework)
    attention, (model, tuning) = read.value(ATTENTION), read_tuning(read, method, model, stack)
    gpus, deadline_s, budget_usd = read.value(GPUS), read.value(DEADLINE), read.value(BUDGET)
    deadline_assumed = gpus is None and deadline_s is None and budget_usd is None
    if deadline_assumed:
        deadline_s = DEADLINE.parse(DEFAULT_DEADLINE, DEADLINE.flag)
        read.note(DEADLINE, DEFAULT_DEADLINE, note=Message.of("note.no_target"))
    check_one_micro_batch(read, tuning, gpus)
    confidence_ratio = read.value_or_default(CONFIDENCE)
    max_gpus = _max_gpus(read, budget_alone=budget_usd is not None and gpus is None and deadline_s is None)
    if gpus is not None and max_gpus is not None and gpus > max_gpus:
        raise UsageError(
            Message.of("error.gpus_over_most", gpus=gpus, most=max_gpus), hint=Message.of("hint.one_of_gpus")
        )
    offload = read.value_or_default(OFFLOAD)
    check_grad_compression(read, compression, optimizer, clusters)
    memory_risk = read.value_or_default(MEMORY_RISK)
    money = read_money(read)
    if _searches_power_limit(read) and money.power_cap_w is not None:
        raise UsageError(Message.of("error.auto_under_cap"), hint=Message.of("hint.limit_under_cap"))
    return Question(
        model=model, method=method.id, tokens=data.tokens, by_examples=EXAMPLES.name in read.inputs,
        seq_len=data.seq_len, global_batch=batch.sequences,
        batch_band=batch.band, critical_batch=batch.critical, keeps_batch=batch.kept,
        policy=asked, policies=policies,
        optimizer=optimizer, stack=stack, framework=framework, tuning=tuning,
        lengths=data.lengths, lengths_assumed=data.lengths_assumed,
        attention=attention, offload=offload, grad_compression=compression, clusters=clusters, gpus=gpus,
        deadline_s=deadline_s, deadline_assumed=deadline_assumed, budget_usd=budget_usd,
        confidence_ratio=confidence_ratio, max_gpus=max_gpus,
        fixed=fixed, memory_risk=memory_risk, money=money,
        seed=_seed(read), searches_power_limit=_searches_power_limit(read), inputs=read.inputs,
    )  # fmt: skip


def _sequences(read: Reader, model: ModelShape, method: Method) -> TrainingData:
    """Return the training data of a language model; for an encoder, samples are sequences."""
    refuse_images(read, model)
    seq_len = _seq_len(read, model, method)
    data = read_data(read, model, method, seq_len)
    batch = _global_batch(read, model, method, seq_len, data.tokens)
    return TrainingData(
        model=model, seq_len=seq_len, tokens=data.tokens, batch=batch, lengths=data.lengths,
        lengths_assumed=data.lengths_assumed,
    )  # fmt: skip


def _seq_len(read: Reader, model: ModelShape, method: Method) -> int:
    seq_len = read.value(SEQ_LEN)
    if seq_len is not None and method.fine_tunes and 0 < model.learned_positions < seq_len:
        raise UsageError(
            f"{SEQ_LEN.flag}: {seq_len:,} is above the {model.learned_positions:,} positions that {model.name} learned",
            hint=f"at most {SEQ_LEN.flag} {model.learned_positions}",
        )
    if seq_len is None and method.fine_tunes:
        return tuning_length(read, model, TUNING_SEQ_LEN)
    if seq_len is None:
        named = read.text(MODEL) is not None
        seq_len = model.context if named else DEFAULT_SEQ_LEN
        read.note(SEQ_LEN, seq_len, "catalogue" if named else "default")
    return seq_len


def _seed(read: Reader) -> int:
    for item in (CALIBRATION, NUMERICS):
        read.value(item)  # recorded only: a higher layer reads the file
    seed = read.value(SEED) or 0
    read.note(SEED, seed)
    return seed
