"""The findings of `mpplan numerics`, as tables that need no manual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpplan.ui.listing import UNKNOWN, counted, figure, folding, power_of_two, wrapped
from reports.text.numbers import with_minus

Plain = Mapping[str, Any]

MOST_LAYERS = 8
"""Maximum number of the most sensitive layers that are shown; the document has all of them."""
VERDICTS = {
    "equivalent": "equivalent", "not_equivalent": "NOT equivalent", "cannot_tell": "cannot tell",
    "not_applied": "not applied", "not_run": "not run",
}  # fmt: skip
SETTLED_STEPS = 20
"""Minimum number of steps with dynamic scaling before a statement about a long run is made."""


def numerics_text(document: Plain) -> str:
    """Return the whole answer, section by section."""
    tasks = "".join(_task(task) for task in document["tasks"])
    head = f"{document['device_name']}, {document['size']} tasks\n{tasks}"
    sections = (_scaling, _exponents, _parity, _layers, _schedule)
    return "\n".join(part for part in (head, *(section(document) for section in sections)) if part)


def is_empty(document: Plain) -> bool:
    """Return whether nothing useful was measured."""
    scales = any(row["static"] or row["why_not_applied"] for row in document["loss_scaling"])
    pairs = any(pair["verdict"] != "not_run" for row in document["parity"] for pair in row["pairs"])
    return not (scales or pairs or any(row["layers"] for row in document["histograms"]))


def _task(task: Plain) -> str:
    unit = "" if task["loss_unit"] == "nats" else "; its loss in its own unit"
    same = "" if task["seeded_batches"] else "; same batches in every pair: seeds vary the start only"
    return wrapped(f"  {task['id']}: {task['what']}, {task['parameters']:,} parameters{unit}{same}", 4) + "\n"


def percent(ratio: float | None) -> str:
    """Format a share in percent: a dash if it is unknown, `<0.01%` if it is small but not zero."""
    if ratio is None:
        return UNKNOWN
    return "<0.01%" if 0.0 < ratio < 1e-4 else f"{100.0 * ratio:.3g}%"


def _scaling(document: Plain) -> str:
    if not document["loss_scaling"]:
        return ""
    rows = [_scaling_row(row) for row in document["loss_scaling"]]
    headers = ("task", "highest without overflow", "lowest with overflow", "highest after training", "scales tried",
               f"dynamic from {power_of_two(16)}", "skipped", "skipped in a long run")  # fmt: skip
    steps = max(row["static_steps"] for row in document["loss_scaling"])
    remarks = [f"{row['task']}: {text}" for row in document["loss_scaling"] if (text := _scaling_words(row))]
    title = (
        f"Loss scaling in FP16: static scales at which gradients overflow in the first {steps} steps, and steps that "
        "dynamic scaling skips"
    )
    return _block(title, folding(headers, rows), remarks)


def _block(title: str, body: str, remarks: list[str]) -> str:
    """Return a section: its title, its table, and the sentences below."""
    return f"{wrapped(title)}\n{body}{''.join(wrapped(text, 2) + chr(10) for text in remarks)}"


def _scaling_words(row: Plain) -> str | None:
    if row["why_not_applied"] is not None:
        return f"FP16 is not applied: {row['why_not_applied']}"
    if row["trains"] is False:
        return "FP16 does not train it: every step overflows at every scale that was tried"
    return None


def _scaling_row(row: Plain) -> tuple[str, ...]:
    usual = next((run for run in row["dynamic"] if run["name"] == "usual"), None)
    fits, over, tried = row["largest_without_overflow_log2"], row["smallest_with_overflow_log2"], len(row["static"])
    warm = row["largest_without_overflow_warm_log2"]
    return (
        row["task"],
        (power_of_two(fits) if fits is not None else "all overflow") if tried else UNKNOWN,
        (power_of_two(over) if over is not None else "none") if tried else UNKNOWN,
        UNKNOWN if warm is None else power_of_two(warm),
        str(tried),
        UNKNOWN if usual is None else counted(usual["steps"], "step"),
        UNKNOWN if usual is None else percent(usual["skipped_step_ratio"]),
        UNKNOWN if usual is None else _long_run(usual),
    )


def _long_run(usual: Plain) -> str:
    """Format the share of steps that a long run skips, with its basis; a dash if dynamic scaling has not settled."""
    basis, late = usual["steady_basis"], usual["late_skipped_step_ratio"]
    if basis is None or usual["steps"] < SETTLED_STEPS or (basis == "arithmetic" and late):
        return UNKNOWN
    source = "by arithmetic" if basis == "arithmetic" else "measured"
    return f"{percent(usual['steady_skipped_step_ratio'])}, {source}"


def _exponents(document: Plain) -> str:
    rows = []
    for row in document["histograms"]:
        for tensor, seen in row["overall"].get("tensors", {}).items():
            for element, lost in seen["formats"].items():
                if element != "bf16" and seen["values"]:
                    rows.append(_exponent_row(row["task"], tensor, element, lost, seen["zeros_ratio"]))
    if not rows:
        return ""
    headers = ("task", "tensor", "format", "flushed to 0", "at the best scale", "best scale", "too large",
               "exactly zero")  # fmt: skip
    scales = [
        text for row in document["histograms"] if row["overall"] and (text := _loss_scale(row["task"], row["overall"]))
    ]
    swallowed = [
        f"{row['task']}: weights kept in {element.upper()} would swallow {percent(share)} of the updates"
        for row in document["histograms"]
        for element, share in row["overall"].get("swallowed_ratio", {}).items()
        if share is not None
    ]
    title = (
        "Exponents in FP32 training: the share of nonzero values that each format loses without a scale, and with the "
        "scale that loses least"
    )
    return _block(title, folding(headers, rows, 3), [*scales, *swallowed])


def _loss_scale(task: str, overall: Plain) -> str | None:
    scale = overall["loss_scale"]
    if scale["scale_log2"] is None:
        return None
    limit = "" if scale["limit_log2"] is None else f"; FP16 overflowed above {power_of_two(scale['limit_log2'])}"
    return (
        f"{task}: at a loss scale of {power_of_two(scale['scale_log2'])} FP16 flushes "
        f"{percent(scale['flushed_ratio'])} of the gradients, with room for gradients "
        f"{2 ** scale['headroom_octaves']} times the largest seen{limit}"
    )


def _exponent_row(task: str, tensor: str, element: str, lost: Plain, zeros: float) -> tuple[str, ...]:
    best = lost["best_scale_log2"]
    return (
        task,
        tensor.replace("_", " "),
        element,
        percent(lost["flushed_ratio"]),
        percent(lost["flushed_at_best_ratio"]),
        UNKNOWN if best is None else power_of_two(best),
        percent(lost["saturated_ratio"]),
        percent(zeros),
    )


def _parity(document: Plain) -> str:
    units = {task["id"]: task["loss_unit"] for task in document["tasks"]}
    rows = [
        (
            row["task"], pair["precision"], VERDICTS[pair["verdict"]], _between(pair, "difference"),
            str(pair["pairs"] + pair["diverged"]), str(row["steps"]), f"± {row['margin']:g}", _reached(pair),
            mode_text(pair) if pair["verdict"] not in ("not_applied", "not_run") else UNKNOWN,
            units.get(row["task"], "loss") if row["metric"] == "loss" else row["metric"],
            _signed(pair["difference_mid"]), _needed(pair),
        )
        for row in document["parity"]
        for pair in row["pairs"]
    ]  # fmt: skip
    if not rows:
        return ""
    headers = ("task", "precision", "verdict", "difference, 90%", "seeds", "steps", "margin", "matrices lowered",
               "run", "metric", "mean", "seeds needed")  # fmt: skip
    title = "Parity with FP32: paired runs from the same seeds, two one-sided t tests"
    remarks = [
        f"{row['task']}, {pair['precision']}: {pair['reason']}"
        for row in document["parity"]
        for pair in row["pairs"]
        if pair["verdict"] == "not_applied" or pair["diverged"] or _fp32_broke_down(pair)
    ]
    return _block(title, folding(headers, rows, 2), [*remarks, *_errors(document)])


def _fp32_broke_down(pair: Plain) -> bool:
    """Return whether FP32 runs themselves ended without a result, so that some pairs could not be compared."""
    return len(pair.get("differences", ())) > int(pair["pairs"]) + int(pair["diverged"])


def _reached(pair: Plain) -> str:
    """Format how many of the matrix parameters the precision lowers."""
    return UNKNOWN if pair["matrices"] is None else f"{pair['lowered_matrices']} of {pair['matrices']}"


def _between(row: Plain, figure_name: str) -> str:
    """Format an interval; a dash if it is unknown."""
    low, high = row[f"{figure_name}_low"], row[f"{figure_name}_high"]
    return UNKNOWN if low is None else f"{_signed(low)} … {_signed(high)}"


def _errors(document: Plain) -> list[str]:
    """Report the number of tests and the joint risk of an error, since each test may err."""
    count = sum(row["tests"] for row in document["parity"])
    alpha = max(row["alpha"] for row in document["parity"])
    if count < 2:
        return []
    return [
        f"Each test has a risk of {percent(alpha)} of calling a precision equivalent that is not; over all {count} "
        f"tests, the risk of at least one such error is up to {100.0 * (1.0 - (1.0 - alpha) ** count):.0f}%"
    ]


def mode_text(row: Plain) -> str:
    """Return `real`, `emulated`, or how many of the layers are real."""
    return (
        f"mixed, {row['real_layers']} of {row['lowered_layers']} real" if row["mode"] == "mixed" else str(row["mode"])
    )


def _needed(pair: Plain) -> str:
    if pair["seeds_needed"] is None:
        return UNKNOWN
    tells = "" if pair["seeds_would_show"] in (None, pair["verdict"]) else f": {VERDICTS[pair['seeds_would_show']]}"
    return f"{pair['seeds_needed']}{tells}"


def _layers(document: Plain) -> str:
    parts = []
    for row in document["sensitivity"]:
        if not row["layers"]:
            continue
        shown = [
            (", ".join(layer["layers"]), ", ".join(layer["kinds"]), figure(layer["gradient_error_ratio"], digits=3),
             _change(layer), {True: "yes", False: "no", None: UNKNOWN}[layer["told_from_next"]])
            for layer in row["layers"][:MOST_LAYERS]
        ]  # fmt: skip
        headers = ("layer", "kind", "gradient error", "loss change, 90%", "differs from next")
        unshown = len(row["layers"]) - len(shown)
        title = (
            f"{row['task']}: the layers most sensitive to {row['precision']} ({mode_text(row)}), {row['method']}, "
            f"{_runs(row)}{f'; {unshown} more in --json' if unshown > 0 else ''}"
        )
        remarks = [f"{row['task']}: {text}" for text in (row["words"], *row["notes"])]
        parts.append(_block(title, folding(headers, shown), remarks))
    remarks = [_policy(row) for row in document["policy"]]
    if remarks:
        parts.append(_block("Policy: which layers to keep in FP32", "", remarks))
    return "\n".join(parts)


def _policy(row: Plain) -> str:
    if not row["seeds"]:
        return f"{row['task']}: {row['words']}"
    tried = len(row["tried"])
    policies = f"{tried} {'policy' if tried == 1 else 'policies'} tried"
    return f"{row['task']}: {row['words']} (margin {row['margin']:g}, {_runs(row)}, {policies})"


def _runs(row: Plain) -> str:
    return f"{counted(row['seeds'], 'seed')} of {counted(row['steps'], 'step')}"


def _change(row: Plain) -> str:
    """Format the interval of a change of the loss; a dash if it was not measured."""
    if row["diverged"]:
        return f"{counted(row['diverged'], 'run')} not finite"
    return _between(row, "loss_change")


def _schedule(document: Plain) -> str:
    rows = [
        (row["task"], schedule["name"], VERDICTS[schedule["verdict"]] if schedule["seeds"] else VERDICTS["not_run"],
         _change(schedule), str(schedule["seeds"]), str(row["steps"]), row["precision"],
         mode_text(row) if schedule["seeds"] else UNKNOWN)
        for row in document["schedule"]
        for schedule in row["schedules"]
        if schedule["name"] != "all high" and not row["words"].startswith("not applied")
    ]  # fmt: skip
    remarks = [f"{row['task']}: {_recommended(row)}" for row in document["schedule"]]
    if not remarks:
        return ""
    headers = ("task", "schedule", "verdict", "loss change, 90%", "seeds", "steps", "precision", "run")
    body = folding(headers, rows, 2) if rows else ""
    return _block("Schedules: change of the loss against FP32 throughout", body, remarks)


def _recommended(row: Plain) -> str:
    return str(row["words"]) if row["recommended"] is None else f"{row['recommended']}: {row['words']}"


def _signed(value: float | None) -> str:
    return UNKNOWN if value is None else with_minus(f"{value:+.2g}")
