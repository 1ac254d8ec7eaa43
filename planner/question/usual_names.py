"""Short names that fit several rows of a catalogue, each with the row that is usually meant.

`h100` and `llama-3` name families. A question may use them: the row of `catalog/usual_names.csv` says which member is
taken, and the answer says so. A catalogue itself stays strict (`find_gpu`): an offer for an `h100` may be for any
member.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from planner.errors import Message
from planner.lazy import dataclass
from planner.rows import CATALOG, compact, read_rows

MOST_OTHERS = 3
"""Most other members of a family that an answer names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualName:
    """A short name and the catalogue row that it usually means."""

    name: str
    """The name as ids of the catalogue write it: `llama-3`."""
    id: str
    """Id of the catalogue row that is usually meant."""


@cache
def usual_names(kind: str) -> dict[str, UsualName]:
    """Return the short names of a catalogue, by their form without case and punctuation.

    Args:
        kind: `gpu` or `model`.

    Raises:
        InputFileError: a row of the file is wrong.
    """
    rows = read_rows(CATALOG / "usual_names.csv")
    names = [UsualName(name=r.text("name"), id=r.text("stands_for")) for r in rows if r.text("kind") == kind]
    return {compact(usual.name): usual for usual in names}


def taken_for(kind: str, name: str, ids: Iterable[str]) -> tuple[str, Message] | None:
    """Return the id that a short name is taken for, and the note that says so; None where the name is not a short one.

    Args:
        kind: `gpu` or `model`.
        name: as typed.
        ids: ids of the catalogue, for the others that the name may have meant.
    """
    usual = usual_names(kind).get(compact(name))
    if usual is None:
        return None
    others = [id_ for id_ in ids if id_.startswith(f"{usual.name}-") and id_ != usual.id]
    named = tuple(others[:MOST_OTHERS])
    more = Message.of("note.usual_other" if len(named) == 1 else "note.usual_others", others=named) if named else ""
    return usual.id, Message.of("note.usual", name=name, id=usual.id, others=more)


def named_among(kind: str, name: str, ids: Iterable[str]) -> str | None:
    """Return which of some ids a name means: whatever its case and punctuation, or as a short name.

    Args:
        kind: `gpu` or `model`.
        name: as typed.
        ids: the ids to choose among, for example of the GPUs in an answer.
    """
    known = {compact(id_): id_ for id_ in ids}
    usual = usual_names(kind).get(compact(name))
    return known.get(compact(name)) or (None if usual is None else known.get(compact(usual.id)))
