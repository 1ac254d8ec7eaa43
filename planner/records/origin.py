"""Where a line is from that no probe wrote as it is: the file of another tool, or the records of a fleet."""

from __future__ import annotations

from planner.hardware.catalogue import GPUS
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of an imported line; keys begin with `imported_`. All empty: mpplan measured the line itself."""

    tool: str | None = None
    """What wrote the file, for example `nvidia-smi`; None: the line was not imported."""
    version: str | None = None
    """Version of the tool, where its file says it."""
    file: str | None = None
    """Name of the file, without its folder."""
    sha256: str | None = None
    """SHA-256 of the file as it lay on the disk, in hex digits."""
    date: str | None = None
    """When it was measured, as the file says; None where it does not."""
    gpu: str | None = None
    """Catalogue id of the GPU, by the name in the file or as the user said; None where no row bears the name."""
    sd_ratio: float | None = None
    """Relative standard deviation that the doubts add to that of the times sampled."""
    power_sd_ratio: float | None = None
    """Relative standard deviation of the mean power, and of the energy; None where no power was read."""
    doubts: tuple[str, ...] = ()
    """What makes the figures less sure than measured ones, in words."""

    @property
    def catalogue_gpu(self) -> str | None:
        """The GPU, where the catalogue has it: a record is written by anybody."""
        known = None if self.gpu is None else GPUS.get(self.gpu)
        return None if known is None else known.id


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFrom:
    """What a line of a fleet stands for; keys begin with `merged_`. Empty: the line is of one record alone.

    What a merged record that is merged again stands for is in it too, so that no record can count twice.
    """

    run_ids: tuple[str, ...] = ()
    """Runs of the records, sorted."""
    device_hashes: tuple[str, ...] = ()
    """`device_hash` of their devices, sorted."""
