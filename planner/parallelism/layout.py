"""Layouts: how a model is split over GPUs. `Layout` is a single one; `Layouts` holds many as columns of arrays.

Order of the axes, innermost (closest together) first: tensor `tp`, context `cp`, data `dp`, pipeline `pp`. Expert
parallel `ep` uses the ranks of `cp * dp`, or of `tp * cp * dp` if it does not divide `cp * dp`. It holds that
`tp * cp * dp * pp == gpus` and `dp * micro_batch * grad_accum == global batch in sequences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.training.recipe import ACT_CKPT

Ints = npt.NDArray[np.int64]

FULL_SHARE = np.array([0.0, 0.0, 1.0, 0.5, 0.25])
"""Share of the layers that are fully checkpointed, by code of `ACT_CKPT`."""
SELECTIVE = ACT_CKPT.index("selective")
"""Code of selective checkpointing."""


def full_share(act_ckpt: str) -> float:
    """Share of the layers that are fully checkpointed, 0..1, for one of `ACT_CKPT`."""
    return float(FULL_SHARE[ACT_CKPT.index(act_ckpt)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to split a model and its batch over GPUs."""

    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    dp: int
    zero: int
    """Sharded over data parallel ranks: 0 nothing, 1 optimizer states, 2 also gradients, 3 also parameters (FSDP)."""
    micro_batch: int
    """Sequences per micro-batch and data parallel rank."""
    grad_accum: int
    """Micro-batches per step and data parallel rank."""
    act_ckpt: str
    """One of `ACT_CKPT`."""
    replicas: int = 1
    """Copies of the sharded states among the data parallel ranks; above 1, ZeRO shards only within groups (HSDP)."""

    @property
    def gpus(self) -> int:
        """Number of GPUs of the layout."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def global_batch(self) -> int:
        """Sequences per step."""
        return self.dp * self.micro_batch * self.grad_accum

    @property
    def expert_tp(self) -> int:
        """Tensor parallel size inside an expert of a mixture, by the rule of `Layouts.expert_tp`."""
        return int(Layouts.of(self).expert_tp[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """Many layouts as integer arrays of one shape: `[layout]`, or `[layout, 1]` to broadcast with draws."""

    tp: Ints
    pp: Ints
    vp: Ints
    cp: Ints
    ep: Ints
    dp: Ints
    zero: Ints
    micro_batch: Ints
    grad_accum: Ints
    act_ckpt: Ints
    """Index into `ACT_CKPT`."""
    replicas: Ints
    ckpt_modes: int = 1
    """Length of the runs of layouts that differ only in checkpointing; all have the same modes in the same order."""

    def __len__(self) -> int:
        return int(self.tp.shape[0])

    @property
    def gpus(self) -> Ints:
        """GPUs of each layout, `[layout]`."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def global_batch(self) -> Ints:
        """Sequences per step of each layout, `[layout]`."""
        return self.dp * self.micro_batch * self.grad_accum

    @property
    def expert_tp(self) -> Ints:
        """Tensor parallel size inside an expert of a mixture, for each layout, `[layout]`.

        Megatron-Core's rule is that experts may use tensor, context and data parallel ranks. If `ep` does not divide
        `cp*dp` (for example because it is larger), it uses the tensor parallel ranks too, and each expert is whole.
        """
        return np.where((self.cp * self.dp) % self.ep == 0, self.tp, 1)

    @property
    def column(self) -> Layouts:
        """These layouts as `[layout, 1]`, which broadcasts with draws, `[draw]`, to results `[layout, draw]`."""
        return Layouts(**{name: getattr(self, name)[:, None] for name in COLUMNS})

    @property
    def by_ckpt_mode(self) -> Layouts:
        """One row per run of `ckpt_modes` layouts, `[layout]`, with `act_ckpt` as `[ckpt_mode, 1]`.

        Results that depend on checkpointing are then `[ckpt_mode, layout]`.
        """
        if self.ckpt_modes == 1:
            return self
        rows = {name: getattr(self, name)[:: self.ckpt_modes].copy() for name in COLUMNS}  # each is read many times
        return Layouts(**rows | {"act_ckpt": self.act_ckpt[: self.ckpt_modes, None]})

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> Layouts:
        """The layouts at an index, mask or slice; after `by_ckpt_mode`, each with all checkpointing modes."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        shared = self.act_ckpt.ndim > self.tp.ndim
        return Layouts(**{n: v if shared and n == "act_ckpt" else v[index] for n, v in columns.items()})

    def only(self, i: int) -> Layouts:
        """One layout as columns of length 1."""
        return self.take(slice(i, i + 1))

    def at(self, i: int) -> Layout:
        """One layout as plain Python values."""
        values = {name: int(getattr(self, name)[i]) for name in COLUMNS}
        ckpt = ACT_CKPT[values.pop("act_ckpt")]
        return Layout(act_ckpt=ckpt, **values)

    @classmethod
    def joined(cls, parts: Sequence[Layouts]) -> Layouts:
        """Concatenate several sets of layouts."""
        empty = np.zeros(0, dtype=np.int64)
        columns: dict[str, Any] = {
            name: np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in COLUMNS
        }
        return cls(**columns)

    @classmethod
    def of(cls, *layouts: Layout) -> Layouts:
        """Columns of the given layouts."""
        columns: dict[str, Any] = {
            name: np.array([getattr(layout, name) for layout in layouts], dtype=np.int64)
            for name in COLUMNS
            if name != "act_ckpt"
        }
        codes = np.array([ACT_CKPT.index(layout.act_ckpt) for layout in layouts], dtype=np.int64)
        return cls(act_ckpt=codes, **columns)


COLUMNS = tuple(f.name for f in fields(Layouts) if f.name != "ckpt_modes")
"""Names of the columns of `Layouts`, listed once because a search slices them thousands of times."""
