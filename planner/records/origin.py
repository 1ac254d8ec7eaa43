"""Origin of a line that no probe wrote directly: the file of another tool, or the records of a fleet."""

from __future__ import annotations

from planner.hardware.catalogue import GPUS
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Source of an imported line; keys begin with `imported_`. All fields are empty if mpplan measured the line."""

    tool: str | None = None
    """Tool that wrote the file, for example `nvidia-smi`; None if the line was not imported."""
    version: str | None = None
    """Version of the tool, if its file gives it."""
    file: str | None = None
    """Name of the file, without its folder."""
    sha256: str | None = None
    """SHA-256 of the file as stored on disk, in hex digits."""
    date: str | None = None
    """Time of the measurement, if the file gives it."""
    gpu: str | None = None
    """Catalogue id of the GPU, from the name in the file or from the user; None if no row has the name."""
    sd_ratio: float | None = None
    """Relative standard deviation that the doubts add to the standard error of the sampled times."""
    power_sd_ratio: float | None = None
    """Relative standard deviation of the mean power and of the energy; None if no power was read."""
    doubts: tuple[str, ...] = ()
    """Reasons why the figures are less certain than measured ones, in words."""

    @property
    def catalogue_gpu(self) -> str | None:
        """Id of the GPU if the catalogue has it. A record may come from anybody, so its id is not trusted."""
        known = None if self.gpu is None else GPUS.get(self.gpu)
        return None if known is None else known.id


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFrom:
    """Records that a line of a fleet was merged from; keys begin with `merged_`. Empty for a line of a single record.

    If a merged record is merged again, the records behind it are listed as well, so that no record can count twice.
    """

    run_ids: tuple[str, ...] = ()
    """Run ids of the records, sorted."""
    device_hashes: tuple[str, ...] = ()
    """`device_hash` of their devices, sorted."""
