"""The sections of the report below the first screen, in order. A builder returns None if its data is absent.

To add a section, write a builder `(facts, words) -> Section | None` and list it here; every format shows it.
"""

from __future__ import annotations

from collections.abc import Callable

from reports.document.facts import Facts
from reports.sections.breakdown.alternatives import alternatives
from reports.sections.breakdown.limits import limits
from reports.sections.breakdown.money import money
from reports.sections.breakdown.parts import memory, step_time
from reports.sections.comparison.curve import curve
from reports.sections.comparison.gpus import gpus
from reports.sections.comparison.layout import layout
from reports.sections.comparison.precisions import views
from reports.sections.evidence.basis import assumptions, glossary, method, question, reading, sources
from reports.sections.evidence.calibration import calibration
from reports.sections.evidence.claims import claims
from reports.sections.evidence.drivers import drivers
from reports.sections.safety.safety import safety
from reports.text.language import Words
from reports.view import Section

Builder = Callable[[Facts, Words], Section | None]

SECTIONS: tuple[Builder, ...] = (
    views,
    gpus,
    curve,
    safety,
    limits,
    step_time,
    memory,
    money,
    alternatives,
    layout,
    drivers,
    calibration,
    claims,
    assumptions,
    question,
    reading,
    method,
    sources,
    glossary,
)
"""All sections, from top to bottom."""
