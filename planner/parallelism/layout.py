"""Layouts: how a model is split over GPUs. `Layout` is one, `Layouts` is many as columns of arrays.

Order of the axes, innermost (closest together) first: tensor `tp`, context `cp`, data `dp`, pipeline `pp`. Expert
parallel `ep` lies inside `cp * dp`, or inside `tp * cp * dp` where it does not divide that. `tp * cp * dp * pp == gpus`
and `dp * micro_batch * grad_accum == global batch in sequences`.
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
"""Share of the layers that are checkpointed whole, by code of `ACT_CKPT`."""
SELECTIVE = ACT_CKPT.index("selective")
"""Code of selective checkpointing."""


def full_share(act_ckpt: str) -> float:
    """Share of the layers that are checkpointed whole, 0..1, by one of `ACT_CKPT`."""
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
    """0 none, 1 optimizer states, 2 and gradients, 3 and parameters (FSDP full shard), over the data parallel ranks."""
    micro_batch: int
    """Sequences per micro-batch and data parallel rank."""
    grad_accum: int
    """Micro-batches per step and data parallel rank."""
    act_ckpt: str
    """One of `ACT_CKPT`."""
    replicas: int = 1
    """Copies of the sharded states among the data parallel ranks: above 1, ZeRO shards inside a group only (HSDP)."""

    @property
    def gpus(self) -> int:
        """GPUs of the layout."""
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
    """Many layouts as integer arrays of one shape: `[layout]`, or `[layout, 1]` where each meets every draw."""

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
    kinds: int = 1
    """How many consecutive layouts differ in checkpointing alone, the same kinds in the same order each time."""

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
        """Tensor parallel size inside an expert of a mixture, of each layout, `[layout]`.

        Megatron-Core's rule: experts may use tensor, context and data parallel ranks; an `ep` that does not divide
        `cp*dp` (because it is larger, say) takes the tensor parallel ranks too, and each expert is then whole.
        """
        return np.where((self.cp * self.dp) % self.ep == 0, self.tp, 1)

    @property
    def column(self) -> Layouts:
        """The same as `[layout, 1]`: what is computed of them under draws, `[draw]`, is `[layout, draw]`."""
        return Layouts(**{name: getattr(self, name)[:, None] for name in COLUMNS})

    @property
    def by_kind(self) -> Layouts:
        """One of each such run, `[layout]`, with all kinds of checkpointing: what these change is `[kind, layout]`."""
        if self.kinds == 1:
            return self
        rows = {name: getattr(self, name)[:: self.kinds] for name in COLUMNS}
        return Layouts(**rows | {"act_ckpt": self.act_ckpt[: self.kinds, None]})

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> Layouts:
        """The layouts at an index, mask or slice; all kinds of each where there are several."""
        taken = {name: getattr(self, name) for name in COLUMNS}
        shared = self.act_ckpt.ndim > self.tp.ndim
        return Layouts(**{n: v if shared and n == "act_ckpt" else v[index] for n, v in taken.items()})

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
        """The layouts of some columns, one after the other."""
        none = np.zeros(0, dtype=np.int64)
        columns: dict[str, Any] = {
            name: np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in COLUMNS
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


COLUMNS = tuple(f.name for f in fields(Layouts) if f.name != "kinds")
"""Names of the columns of `Layouts`, listed once: a search slices them thousands of times."""
