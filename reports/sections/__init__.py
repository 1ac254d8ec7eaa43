"""The parts of the report below the first screen, in their order. A builder returns None where the data is absent.

To add a part, write a builder `(facts, words) -> Section | None` and list it here; every format shows it.
"""

from __future__ import annotations

from collections.abc import Callable

from reports.facts import Facts
from reports.language import Words
from reports.sections.accuracy import accuracy, verify
from reports.sections.basis import assumptions, glossary, method, question, reading, sources
from reports.sections.beside import beside
from reports.sections.drivers import drivers
from reports.sections.gpus import gpus
from reports.sections.layout import layout
from reports.sections.money import money
from reports.sections.pareto import pareto
from reports.sections.parts import memory, step_time
from reports.sections.precisions import views
from reports.sections.records import claims, traces
from reports.view import Section

Builder = Callable[[Facts, Words], Section | None]

SECTIONS: tuple[Builder, ...] = (
    views,
    gpus,
    step_time,
    memory,
    money,
    beside,
    layout,
    pareto,
    drivers,
    accuracy,
    verify,
    traces,
    claims,
    assumptions,
    question,
    reading,
    method,
    sources,
    glossary,
)
"""All parts, top to bottom."""
