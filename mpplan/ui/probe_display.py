"""Show the progress of a probe run on stderr and its results on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpplan.ui.console import note
from mpplan.ui.listing import counted, figure, table
from mpplan.ui.sink import folded, uncleaned
from planner.records.measurement import Measurement
from planner.units import GIB, MILLI, MINUTE_S, TERA
from reports.text.numbers import with_minus

if TYPE_CHECKING:
    from probes.record.summary import SummaryRow
    from probes.session.listener import Progress

RECENT = 8
"""Number of results shown below the bar."""


class Quiet:
    """Show nothing; remember the path of the record."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.device_name: str | None = None

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def began(self, path: str, device_name: str) -> None:
        """See `Listener`."""
        self.path, self.device_name = path, device_name

    def planned(self, groups: int, estimate_s: float) -> None:
        """See `Listener`."""

    def started(self, progress: Progress) -> None:
        """See `Listener`."""

    def measured(self, measurement: Measurement) -> None:
        """See `Listener`."""

    def noted(self, text: str) -> None:
        """See `Listener`."""


class Lines(Quiet):
    """Show one line per result, for pipes and logs."""

    def began(self, path: str, device_name: str) -> None:
        """See `Listener`."""
        super().began(path, device_name)
        note(f"measuring {device_name}, recording to {path}")

    def planned(self, groups: int, estimate_s: float) -> None:
        """See `Listener`."""
        note(f"{groups} {'part' if groups == 1 else 'parts'}, about {duration(estimate_s)}")

    def measured(self, measurement: Measurement) -> None:
        """See `Listener`."""
        if measurement.kind != "support":
            note(f"  {result_line(measurement)}")

    def noted(self, text: str) -> None:
        """See `Listener`."""
        note(text)


class Live(Quiet):
    """Show a bar with the time left, the current point and the latest results, for terminals."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live as RichLive

        self._recent: list[str] = []
        self._label = "opening the device"
        self._total_s = self._left_s = 0.0
        self._since = time.monotonic()
        self._console = Console(file=uncleaned(sys.stderr), highlight=False)
        self._live = RichLive(console=self._console, refresh_per_second=4, get_renderable=self._render, transient=True)

    def __enter__(self) -> Live:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def planned(self, groups: int, estimate_s: float) -> None:
        """See `Listener`."""
        self._total_s = self._left_s = estimate_s

    def started(self, progress: Progress) -> None:
        """See `Listener`."""
        self._label, self._left_s, self._since = progress.label, progress.left_s, time.monotonic()

    def measured(self, measurement: Measurement) -> None:
        """See `Listener`."""
        if measurement.kind != "support":
            self._recent = [*self._recent, result_line(measurement)][-RECENT:]

    def noted(self, text: str) -> None:
        """See `Listener`."""
        self._console.print(folded(text), markup=False)

    def _render(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        left_s = max(self._left_s - (time.monotonic() - self._since), 0.0)
        done_s = max(self._total_s - left_s, 0.0)
        bar = Table.grid()  # a bar alone would not end its line
        bar.add_row(ProgressBar(total=max(self._total_s, 1e-9), completed=done_s, width=min(self._console.width, 72)))
        return Group(
            Text(folded(f"{self.device_name or 'mpplan probe'}: {self._label}, about {duration(left_s)} left")),
            bar,
            *[Text(folded(f"  {line}"), style="dim", no_wrap=True, overflow="ellipsis") for line in self._recent],
        )


def display(*, quiet: bool) -> Quiet:
    """Return the display that suits stderr."""
    if quiet:
        return Quiet()
    return Live() if sys.stderr.isatty() else Lines()


def duration(seconds: float) -> str:
    """Format a time for people: `40 s`, `3 min 20 s`."""
    minutes, left_s = divmod(round(max(seconds, 0.0)), int(MINUTE_S))
    return f"{minutes} min {left_s:02d} s" if minutes else f"{left_s} s"


def result_line(point: Measurement) -> str:
    """Format a result in one line."""
    if point.status != "ok":
        return f"{point.probe_id}: {point.status}: {point.reason}"
    if point.kind == "numerics":
        return f"{point.probe_id}: {finding_text(point)}"
    parts = []
    if point.time.median_s is not None:
        parts.append(f"{figure(point.time.median_s, MILLI)} ms")
        if point.counts.flop_model:
            parts.append(f"{figure(point.counts.flop_model / point.time.median_s, TERA, 3)} TFLOP/s")
        elif point.counts.bytes_min and point.kind == "bandwidth":
            parts.append(f"{figure(point.counts.bytes_min / point.time.median_s, 1e9, 3)} GB/s")
    if point.memory.allocated_peak_bytes is not None:
        parts.append(f"{figure(point.memory.allocated_peak_bytes, GIB, 3)} GiB")
    if point.power.mean_w is not None:
        parts.append(f"{figure(point.power.mean_w, digits=3)} W")
    if point.sampling.quality not in (None, "ok"):
        parts.append(str(point.sampling.quality))
    return f"{point.probe_id}: {', '.join(parts)}"


def finding_text(point: Measurement) -> str:
    """Format what training showed about a precision, in one line."""
    figures = point.training_numerics
    parts = [figures.verdict.replace("_", " ")] if figures.verdict else []
    if figures.difference_mid is not None:
        parts.append(f"{figures.metric} {with_minus(f'{figures.difference_mid:+.2g}')}")
    if figures.skipped_step_ratio is not None:
        parts.append(f"{100 * figures.skipped_step_ratio:.3g}% of steps skipped")
    if figures.lowered_parameters_ratio is not None:
        parts.append(f"{figures.lowered_parameters_ratio:.0%} of the parameters lowered")
    return f"{', '.join(parts)}{', emulated' if figures.emulated else ''}"


def summary_text(rows: Sequence[SummaryRow]) -> str:
    """Return the final table: each precision compared with FP32 and TF32."""
    if not rows:
        return "no training step was measured\n"
    modes = {row.recipe for row in rows if row.mode == "compiled"}
    per_image = "resnet" in rows[0].model
    unit = "images/s" if per_image else "tokens/s"
    headers = (
        "precision", "recipe", unit, "speed ÷ FP32's", "speed ÷ TF32's", "peak GiB", "FP32's GiB ÷ this",
        f"mJ/{unit[:-3]}", "FP32's mJ ÷ this", "quality",
    )  # fmt: skip
    lines = [
        (
            row.precision,
            f"{row.recipe}, {row.mode}" if row.recipe in modes else row.recipe,
            figure(row.tokens_per_s),
            figure(row.speed_over_fp32, digits=3),
            figure(row.speed_over_tf32, digits=3),
            figure(row.memory_bytes, GIB, 3),
            figure(row.memory_under_fp32, digits=3),
            figure(row.energy_j_per_token, MILLI, 3),
            figure(row.energy_under_fp32, digits=3),
            row.quality or "-",
        )
        for row in rows
    ]
    return f"one training step of {rows[0].model}, forward, backward and update\n{table(headers, lines)}"


def verify_text(document: dict[str, Any]) -> str:
    """Return predictions and measurements, one line per case and metric, then the median errors with their targets."""
    scales = {"time": (MILLI, "ms"), "memory": (GIB, "GiB"), "energy": (1.0, "J")}
    rows = []
    for case in document["cases"]:
        scale, unit = scales[case["metric"]]
        predicted, measured = (figure(case[key], scale) for key in ("predicted", "measured"))
        error, interval = with_minus(f"{100 * case['error_ratio']:+.1f}%"), case["measured_interval_ratio"]
        within = "-" if interval is None else f"{100 * interval:.1f}%"
        rows.append((case["name"], case["metric"], unit, predicted, measured, within, error, case["quality"] or "-"))
    lines = [table(("never run before", "metric", "unit", "predicted", "measured", "±", "error", "quality"), rows)]
    for metric, summary in document["summary"].items():
        quiet = document["summary_quiet"][metric]
        if summary["n"]:
            target = document["targets"].get(metric)
            aim = f", target {100 * target:.0f}%" if target else ""
            lines.append(f"{metric}: {_errors(summary)}{aim}\n")
            if 0 < quiet["n"] < summary["n"]:
                lines.append(f"{metric}, quiet cases only: {_errors(quiet)}\n")
    lines += [f"not compared: {case['name']}: {case['status']}: {case['reason']}\n" for case in document["not_run"]]
    if document["contended"]:
        count = len(document["contended"])
        lines.append(f"{count} of the cases were predicted or run while something else used the machine\n")
    return "".join(lines) if rows or document["not_run"] else "nothing was verified: no time was left\n"


def _errors(summary: dict[str, Any]) -> str:
    median, largest = 100 * summary["median_abs_error"], 100 * summary["max_abs_error"]
    return f"median error {median:.1f}%, largest {largest:.1f}%, {counted(summary['n'], 'case')}"
