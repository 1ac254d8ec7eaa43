"""What `mpplan numerics` found, as tables that a reader understands without the manual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpplan.ui.listing import figure, table, wrapped

Plain = Mapping[str, Any]

MOST_LAYERS = 8
"""Most sensitive layers that are shown; the document has all."""
VERDICTS = {"equivalent": "equivalent", "not_equivalent": "NOT equivalent", "cannot_tell": "cannot tell"}


def numerics_text(document: Plain) -> str:
    """The whole answer, section by section."""
    tasks = [f"  {task['id']}: {task['what']}, {task['parameters']:,} parameters\n" for task in document["tasks"]]
    head = f"{document['device_name']}, {document['size']} tasks\n{''.join(tasks)}"
    sections = (_scaling, _exponents, _parity, _layers, _schedule)
    return "\n".join(part for part in (head, *(section(document) for section in sections)) if part)


def percent(ratio: float | None) -> str:
    """A share in percent, `-` where it is not known, `<0.01 %` where it is small but there."""
    if ratio is None:
        return "-"
    return "<0.01 %" if 0.0 < ratio < 1e-4 else f"{100.0 * ratio:.3g} %"


def _scaling(document: Plain) -> str:
    if not document["loss_scaling"]:
        return ""
    rows = [_scaling_row(row) for row in document["loss_scaling"]]
    headers = ("task", "tried", "highest scale without", "lowest with", "from 2^16", "skipped", "a long run loses")
    return (
        "Loss scaling in FP16: at which static scale gradients overflow, and steps that dynamic scaling skips\n"
        f"{table(headers, rows)}"
    )


def _scaling_row(row: Plain) -> tuple[str, ...]:
    usual = next((run for run in row["dynamic"] if run["name"] == "usual"), None)
    fits, over = row["largest_without_overflow_log2"], row["smallest_with_overflow_log2"]
    return (
        row["task"],
        f"{len(row['static'])} scales",
        "none" if fits is None else f"2^{fits}",
        "none" if over is None else f"2^{over}",
        "-" if usual is None else f"{usual['steps']} steps",
        "-" if usual is None else percent(usual["skipped_step_ratio"]),
        "-" if usual is None else percent(usual["steady_skipped_step_ratio"]),
    )


def _exponents(document: Plain) -> str:
    rows = []
    for row in document["histograms"]:
        for tensor, seen in row["overall"].get("tensors", {}).items():
            for element, found in seen["formats"].items():
                if element != "bf16" and seen["values"]:
                    rows.append(_exponent_row(row["task"], tensor, element, found))
    if not rows:
        return ""
    headers = ("task", "tensor", "format", "flushed to 0", "too large", "best scale", "flushed then")
    swallowed = [
        f"{row['task']}: weights held in {element.upper()} would swallow {percent(share)} of the updates\n"
        for row in document["histograms"]
        for element, share in row["overall"].get("swallowed_ratio", {}).items()
        if share is not None
    ]
    title = "Exponents in FP32 training: what each format would lose without a scale, and the scale that helps\n"
    return title + table(headers, rows) + "".join(swallowed)


def _exponent_row(task: str, tensor: str, element: str, found: Plain) -> tuple[str, ...]:
    best = found["best_scale_log2"]
    return (
        task,
        tensor.replace("_", " "),
        element,
        percent(found["flushed_ratio"]),
        percent(found["saturated_ratio"]),
        "-" if best is None else f"2^{best}",
        percent(found["flushed_at_best_ratio"]),
    )


def _parity(document: Plain) -> str:
    rows = [
        (
            row["task"], pair["precision"], pair["mode"], row["metric"], _signed(pair["difference_mid"]),
            f"{_signed(pair['difference_low'])} … {_signed(pair['difference_high'])}", f"± {row['margin']:g}",
            VERDICTS[pair["verdict"]], str(pair["pairs"] + pair["diverged"]), str(row["steps"]), _needed(pair),
        )
        for row in document["parity"]
        for pair in row["pairs"]
    ]  # fmt: skip
    if not rows:
        return ""
    headers = ("task", "precision", "run", "metric", "difference", "90 % interval", "margin", "verdict", "seeds",
               "steps", "seeds needed")  # fmt: skip
    return f"Parity with FP32 from the same seeds (two one-sided paired t tests)\n{table(headers, rows)}"


def _needed(pair: Plain) -> str:
    return "-" if pair["seeds_needed"] is None else str(pair["seeds_needed"])


def _layers(document: Plain) -> str:
    parts = []
    for row in document["sensitivity"]:
        if not row["layers"]:
            continue
        shown = [
            (", ".join(layer["layers"]), ", ".join(layer["kinds"]), _signed(layer["loss_change"]),
             figure(layer["gradient_error_ratio"], digits=3))
            for layer in row["layers"][:MOST_LAYERS]
        ]  # fmt: skip
        headers = ("layer", "kind", "loss change", "gradient error")
        title = (
            f"{row['task']}: the layers that suffer most in {row['precision']} ({row['mode']}), {row['method']}, "
            f"{row['steps']} steps each\n"
        )
        parts.append(title + table(headers, shown))
    parts += [
        wrapped(f"{row['task']}: {row['words']} (margin {row['margin']:g}, {row['steps']} steps)", 2) + "\n"
        for row in document["policy"]
    ]
    return "".join(parts)


def _schedule(document: Plain) -> str:
    rows = [
        (row["task"], row["precision"], row["mode"], *(_signed(_change(row["schedules"], name)) for name in
         ("all low", "high first", "high last")), row["recommended"] or "-", str(row["seeds"]), str(row["steps"]))
        for row in document["schedule"]
    ]  # fmt: skip
    if not rows:
        return ""
    headers = ("task", "precision", "run", "all low", "high first", "high last", "recommended", "seeds", "steps")
    return f"Schedules: change of the loss against FP32 throughout\n{table(headers, rows)}"


def _change(schedules: Sequence[Plain], name: str) -> float | None:
    return next((row["loss_change"] for row in schedules if row["name"] == name), None)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2g}"
