"""By which name others know a model of the catalogue: rows of `catalog/published_names.csv`."""

from __future__ import annotations

from functools import cache

from planner.lazy import dataclass
from planner.rows import CATALOG, read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNames:
    """Names of one model; None where nobody published it there."""

    hugging_face: str | None = None
    """Repository of its weights on the Hugging Face Hub."""
    torchtitan: str | None = None
    """Model of torchtitan."""
    torchtitan_flavor: str | None = None
    """Its size in that model."""


@cache
def load_published_names() -> dict[str, PublishedNames]:
    """The names by model of the catalogue.

    Raises:
        InputFileError: a row is wrong.
    """
    return {
        row.text("model"): PublishedNames(
            hugging_face=row.opt_text("hugging_face"),
            torchtitan=row.opt_text("torchtitan"),
            torchtitan_flavor=row.opt_text("torchtitan_flavor"),
        )
        for row in read_rows(CATALOG / "published_names.csv")
    }


def published_names(model: str) -> PublishedNames:
    """The names of a model; all None where the catalogue does not know it."""
    return load_published_names().get(model, PublishedNames())
