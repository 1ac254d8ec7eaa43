"""Compare a log with a plan, both named by the user, and update the file of runs with the result."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpplan.version import __version__
from planner.errors import InputFileError

if TYPE_CHECKING:
    from planner.answer.document import Document
    from planner.comparison.basis import Given

LARGEST_LOG_BYTES = 2**40
"""Largest accepted size of a log in bytes. Logs are streamed, so this does not limit memory."""


def given_of(texts: Mapping[str, str | None]) -> Given:
    """Parse what the user typed as `mpplan estimate` parses it.

    Args:
        texts: by name of the input: model, method, gpu, gpus, seq_len, global_batch, precision, price.

    Raises:
        UsageError: a text is not valid for its input, or the model is a vision model.
        InputFileError: the config.json is invalid.
    """
    from planner.comparison.basis import Given
    from planner.comparison.planned import check_counts_tokens
    from planner.hardware.catalogue import find_gpu, load_gpus
    from planner.question.asked import Ask, Reader
    from planner.question.cost_inputs import PRICE
    from planner.question.inputs import GLOBAL_BATCH, GPUS, METHOD, MODEL, PRECISION, SEQ_LEN
    from planner.question.resolve_model import resolve_model
    from planner.question.usual_names import taken_for

    typed = {name: text for name, text in texts.items() if text is not None}
    name = typed.pop("gpu", None)
    read = Reader(Ask(texts=typed))
    usual = None if name is None else taken_for("gpu", name, load_gpus())
    price = read.value(PRICE)
    model = resolve_model(read) if MODEL.name in typed else None
    if model is not None:
        check_counts_tokens(model.name, model.kind, "--model")
    return Given(
        model=model,
        method=read.value(METHOD) if METHOD.name in typed else None,
        gpu=None if name is None else find_gpu(name if usual is None else usual[0]),
        gpus=read.value(GPUS),
        seq_len=read.value(SEQ_LEN),
        global_batch=read.value(GLOBAL_BATCH),
        precision=read.value(PRECISION),
        price_usd_per_gpu_h=None if price is None else float(price),
    )


def compare_log(log: str, plan: str | None, given: Given) -> Document:
    """Return the worded document `mpplan.compare/1` for a log.

    Args:
        log: path of the log; `-` is stdin.
        plan: path of an answer of `mpplan estimate --json`; None: without a plan.
        given: inputs that the user states in addition to the log and the plan.

    Raises:
        UsageError: a file cannot be read, or the answer has no plan for the run.
        InputFileError: the log has no known format or covers several runs, or the answer is invalid.
        InternalError: a range of the comparison is out of order.
    """
    from mpplan.api.document import worded
    from mpplan.ui.documents import read_answer
    from planner.answer.invariants import require_ordered
    from planner.comparison.basis import precision_of
    from planner.comparison.compare import compare
    from planner.comparison.document import to_compare_document
    from planner.comparison.planned import planned_of
    from planner.files import open_file
    from planner.records.home import user_path
    from planner.runlog.read import read_log

    answer = None if plan is None else read_answer(plan)
    if log == "-":
        run = read_log(sys.stdin.buffer, "stdin")
    else:
        path = user_path(log)
        with open_file(path, most_bytes=LARGEST_LOG_BYTES) as file:
            run = read_log(file, path.name)
    planned = None
    if answer is not None:
        planned = planned_of(answer, given.precision or precision_of(run), None if given.gpu is None else given.gpu.id)
    document: Document = worded(to_compare_document(compare(run, planned, given), __version__))
    require_ordered(document)
    return document


def with_rows(path: Path | None, rows: Sequence[Mapping[str, str]]) -> str:
    """Return a file of runs updated with these rows: a row with the same run and metric is replaced; others are kept.

    Args:
        path: the file, which need not exist; None: return a file of these rows alone.
        rows: cells by column name.

    Raises:
        InputFileError: the file is not a CSV with the columns `id` and `metric`.
    """
    from planner.files import read_text
    from planner.validation.runs import COLUMNS as EVERY_COLUMN
    from planner.validation.template import COLUMNS

    text = read_text(path) if path is not None and path.is_file() and path.stat().st_size else ""
    comments, separator, header, kept = _parsed(text, "" if path is None else path.name)
    columns = header or list(COLUMNS)
    added = sorted({name for row in rows for name in row if name not in columns}, key=EVERY_COLUMN.index)
    columns = [*columns, *added]
    replaced = {(row["id"], row["metric"]) for row in rows}
    kept = [row for row in kept if (row.get("id", ""), row.get("metric", "")) not in replaced]
    written = io.StringIO()
    written.write(comments)
    writer = csv.DictWriter(written, columns, restval="", lineterminator="\n", delimiter=separator)
    writer.writeheader()
    own = rows if separator == "," else _with_mark_of(kept, rows)
    writer.writerows([*kept, *({name: row.get(name, "") for name in columns} for row in own)])
    return written.getvalue()


def _with_mark_of(kept: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Return rows with decimal commas if the rows of the file have them."""
    from planner.csv_table import COMMA, POINT, decimal_mark
    from planner.validation.runs import NUMERIC

    if not any(decimal_mark(row[name] or "") == COMMA for row in kept for name in NUMERIC if name in row):
        return rows
    return [
        {name: cell.replace(POINT, COMMA) if name in NUMERIC else cell for name, cell in row.items()} for row in rows
    ]


def replaced_values(path: Path | None, rows: Sequence[Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return the id, the old and the new value of each row that `with_rows` replaces by another value.

    Logs of different runs often have the same name, as every `trainer_state.json` has.

    Args:
        path: the file, which need not exist; None: there is none.
        rows: cells by column name.

    Raises:
        InputFileError: as for `with_rows`.
    """
    from planner.files import read_text

    if path is None or not path.is_file():
        return []
    *_, kept = _parsed(read_text(path), path.name)
    before = {(row["id"], row["metric"]): row.get("value", "") for row in kept}
    keys = [((row["id"], row["metric"]), row.get("value", "")) for row in rows]
    return [(key[0], before[key], value) for key, value in keys if before.get(key, value) != value]


def _parsed(text: str, name: str) -> tuple[str, str, list[str], list[dict[str, Any]]]:
    """Split the text into the comments at its beginning, the separator of its cells, the columns and the rows."""
    from planner.csv_table import separator_of
    from planner.validation.runs import COLUMNS as EVERY_COLUMN

    lines = text.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    comments, body = "".join(lines[:first]), "".join(lines[first:])
    separator = separator_of(body.lstrip().partition("\n")[0])
    if not body.strip():
        return comments, separator, [], []
    try:
        reader = csv.DictReader(io.StringIO(body, newline=""), strict=True, delimiter=separator)
        header = [column.strip() for column in reader.fieldnames or []]
        header = [column.lower() if column.lower() in EVERY_COLUMN else column for column in header]
        reader.fieldnames = header
        rows = list(reader)
    except csv.Error as error:
        raise InputFileError(f"{name}:{first + 1}: not a CSV file: {error}", hint="name another file") from None
    if not {"id", "metric"} <= set(header) or len(set(header)) != len(header):
        raise InputFileError(
            f"{name}:{first + 1}: expected a file of runs, with the columns `id` and `metric`",
            hint="`mpplan calibrate --template` writes an empty one",
        )
    ragged = next((number for number, row in enumerate(rows, first + 2) if None in row or None in row.values()), None)
    if ragged is not None:
        raise InputFileError(
            f"{name}:{ragged}: expected {len(header)} cells", hint="correct the row, or name another file"
        )
    return comments, separator, header, rows
