"""Names of the catalogue's models elsewhere: rows of `catalog/published_names.csv`."""

from __future__ import annotations

from functools import cache

from planner.lazy import dataclass
from planner.rows import CATALOG, read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNames:
    """Names of one model; None where it was not published."""

    hugging_face: str | None = None
    """Repository of its weights on the Hugging Face Hub."""
    torchtitan: str | None = None
    """Name of the model in torchtitan."""
    torchtitan_flavor: str | None = None
    """Name of its size (flavor) in torchtitan."""


@cache
def load_published_names() -> dict[str, PublishedNames]:
    """The names by catalogue id of the model.

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
    """The names of a model; all are None if the table does not list it."""
    return load_published_names().get(model, PublishedNames())
