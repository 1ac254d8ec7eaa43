"""The commands: one file each, listed here; a module is imported only when its command is chosen.

To add a command, write `mpplan/commands/<name>.py` and add a row to `COMMANDS`. A row's target is either a function
(its parameters are the flags, its docstring the help) or a `typer.Typer` with subcommands.
"""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of the program."""

    name: str
    """What the user types after `mpplan`."""
    target: str
    """`module:attribute` that holds the function or the `typer.Typer`."""
    help: str
    """One line for `mpplan --help`; a test checks that it equals the first line of the command's own help."""


COMMANDS = (
    Command(
        name="estimate",
        target="mpplan.commands.planning.estimate:estimate",
        help="Plan a training run: GPUs, layout, days, cost, energy, carbon, in each precision.",
    ),
    Command(
        name="fit",
        target="mpplan.commands.planning.fit:fit",
        help="Check whether fine-tuning fits, and what would make it fit: memory, out-of-memory risk and speed of each "
        "method.",
    ),
    Command(
        name="report",
        target="mpplan.commands.planning.report:report",
        help="Render a saved answer as HTML, Markdown, PDF, CSV, JSON or text.",
    ),
    Command(
        name="export",
        target="mpplan.commands.planning.export:export",
        help="Export from a saved answer: a bill for finance, or a framework's configuration file.",
    ),
    Command(
        name="explain",
        target="mpplan.commands.planning.explain:explain",
        help="Trace a figure in a saved answer back to its inputs and their sources.",
    ),
    Command(
        name="compare",
        target="mpplan.commands.planning.compare:compare",
        help="Read the log of a real run and report its MFU, gap to the plan, finish date and cost.",
    ),
    Command(
        name="validate",
        target="mpplan.commands.planning.validate:validate",
        help="Predict published runs and compare with what was reported.",
    ),
    Command(
        name="calibrate",
        target="mpplan.commands.planning.calibrate:calibrate",
        help="Learn from your own runs: one row is enough, three give most of the benefit.",
    ),
    Command(
        name="claims",
        target="mpplan.commands.planning.claims:claims",
        help="Check published claims about lower precision against arithmetic, plans, published runs and your record.",
    ),
    Command(
        name="probe",
        target="mpplan.commands.measuring.probe:probe",
        help="Measure this machine: time, memory and power of training in each precision.",
    ),
    Command(
        name="numerics",
        target="mpplan.commands.measuring.numerics:numerics",
        help="Train small models in lower precisions: overflows, gradients flushed to zero, parity with FP32, "
        "sensitive layers.",
    ),
    Command(
        name="check",
        target="mpplan.commands.measuring.check:check",
        help="Check whether a measurement record can be trusted, and suggest what to run again.",
    ),
    Command(
        name="records",
        target="mpplan.commands.measuring.records:records_app",
        help="List, show, import, merge and remove measurement records.",
    ),
    Command(
        name="gpus",
        target="mpplan.commands.catalogues.gpus:gpus",
        help="List the GPUs in the catalogue with their sources.",
    ),
    Command(
        name="models",
        target="mpplan.commands.catalogues.models:models",
        help="List the models in the catalogue with their sources.",
    ),
    Command(
        name="prices",
        target="mpplan.commands.catalogues.prices:prices_app",
        help="List the prices in the price book with their dates and sources.",
    ),
    Command(
        name="doctor",
        target="mpplan.commands.measuring.doctor:doctor",
        help="Say what this machine can measure, and what to install or permit for the rest.",
    ),
)
"""All commands, in the order in which `mpplan --help` shows them."""
