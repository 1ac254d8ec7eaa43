"""Tasks on text: a character-level decoder, a decoder with routed experts, and a masked encoder trained as BERT is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.lazy import dataclass
from probes.numerics.tasks.corpus import VOCABULARY, described, library_tokens
from probes.numerics.tasks.interface import LARGE, SMALL, Job, Task

MASKED_RATIO = 0.15
"""Share of the characters: 80 % become the mask, 10 % another character, and 10 % stay (BERT, arXiv 1810.04805)."""
MASK = VOCABULARY - 1
RATE = {SMALL: 3e-3, LARGE: 1e-3}
HELD_OUT_BATCHES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    width: int
    layers: int
    heads: int
    context: int
    batch: int


_SIZES = {
    SMALL: _Sizes(width=64, layers=2, heads=4, context=64, batch=8),
    LARGE: _Sizes(width=512, layers=8, heads=8, context=256, batch=64),
}


def _job(
    seed: int, size: str, device: Any, *, causal: bool, experts: int, pairs: Callable[..., tuple[Any, Any]]
) -> Job:
    import torch

    from probes.numerics.tasks.transformers import Shape, TextModel

    sizes = _SIZES[size]
    shape = Shape(
        width=sizes.width, layers=sizes.layers, heads=sizes.heads, context=sizes.context, batch=sizes.batch,
        experts=experts,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = TextModel(shape, VOCABULARY, causal=causal).to(device)
    train, held = (torch.from_numpy(tokens) for tokens in library_tokens())

    def draw(tokens: Any, number: int) -> tuple[Any, Any]:
        generator = torch.Generator().manual_seed(number)
        starts = torch.randint(0, len(tokens) - shape.context - 1, (shape.batch,), generator=generator)
        rows = tokens[starts[:, None] + torch.arange(shape.context + 1)]
        inputs, targets = pairs(rows, generator)
        return inputs.to(device), targets.to(device)

    def loss(network: Any, batch: Any) -> Any:
        logits = network(batch[0]).float()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten(), ignore_index=-100)

    def held_out(network: Any) -> dict[str, float]:
        with torch.no_grad():
            losses = [float(loss(network, draw(held, 10**6 + number))) for number in range(HELD_OUT_BATCHES)]
        return {"loss": sum(losses) / len(losses)}

    return Job(
        model=model,
        batch=lambda step: draw(train, seed * 10**7 + step),
        loss=loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=RATE[size], betas=(0.9, 0.95), weight_decay=0.1),
        held_out=held_out,
    )


def _next_character(rows: Any, _generator: Any) -> tuple[Any, Any]:
    return rows[:, :-1], rows[:, 1:]


def _masked(rows: Any, generator: Any) -> tuple[Any, Any]:
    import torch

    whole = rows[:, :-1]
    chance = torch.rand(whole.shape, generator=generator)
    kind = torch.rand(whole.shape, generator=generator)
    others = torch.randint(0, VOCABULARY - 1, whole.shape, generator=generator)
    hidden = chance < MASKED_RATIO
    inputs = torch.where(hidden & (kind < 0.8), torch.full_like(whole, MASK), whole)
    inputs = torch.where(hidden & (kind >= 0.9), others, inputs)
    return inputs, torch.where(hidden, whole, torch.full_like(whole, -100))


def _decoder(seed: int, size: str, device: Any) -> Job:
    return _job(seed, size, device, causal=True, experts=0, pairs=_next_character)


def _mixture(seed: int, size: str, device: Any) -> Job:
    return _job(seed, size, device, causal=True, experts=4, pairs=_next_character)


def _encoder(seed: int, size: str, device: Any) -> Job:
    return _job(seed, size, device, causal=False, experts=0, pairs=_masked)


CHAR_LM = Task(
    id="char-lm",
    what="a decoder on the characters of Python's standard library",
    metrics=("loss",),
    make=_decoder,
    steps={SMALL: 400, LARGE: 2000},
    data=described,
)
CHAR_MOE = replace(CHAR_LM, id="char-moe", what="the same with four routed experts in each layer", make=_mixture)
MASKED_LM = replace(CHAR_LM, id="masked-lm", what="an encoder that restores masked characters, as BERT", make=_encoder)
