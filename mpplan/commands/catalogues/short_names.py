"""Short names of GPUs and models in the commands that show the catalogues, resolved as a plan resolves them."""

from __future__ import annotations

from collections.abc import Iterable

from mpplan.ui.console import note
from planner.errors import Message
from planner.question.usual_names import taken_for


def meant(kind: str, name: str, ids: Iterable[str]) -> str:
    """Return the id that a short name usually means, and print a note that says so; any other name as it is.

    Args:
        kind: `gpu` or `model`.
        name: as typed.
        ids: ids of the catalogue, for the others that the name may have meant.
    """
    usual = taken_for(kind, name, ids)
    if usual is None:
        return name
    from reports.text.messages import word

    note(word(Message.of("assumption.usual_name", note=usual[1])))
    return usual[0]
