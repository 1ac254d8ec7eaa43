"""Log lines of Hugging Face's Trainer: one dict per line, through its progress bar or alone (transformers 5.23).

A line looks like `{'loss': '6.155', 'grad_norm': '1.154', 'learning_rate': '4.667e-05', 'epoch': '0.004883'}`
(`ProgressCallback` and `PrinterCallback` of src/transformers/trainer_callback.py; numbers are strings since version 5).
Each evaluation prints a line with `eval_runtime`. The last line is `{'train_runtime': 123.4567,
'train_samples_per_second': 64.8, 'train_steps_per_second': 8.1, ...}` (`speed_metrics` of trainer_utils.py). No line
has the number of its step, but the bar beside it has. `trainer_state.json` has steps but no times, except for the
closing entry if `save_state` wrote it. LLaMA-Factory's `trainer_log.jsonl` has both: `{"current_steps": 10,
"total_steps": 500, "loss": 1.2, "lr": 1e-05, "epoch": 0.1, "percentage": 2.0, "elapsed_time": "0:00:21", ...}`, in
whole seconds (`LogCallback` of src/llamafactory/train/callbacks.py, hiyouga/LLaMA-Factory 0583d066).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from planner.runlog.amounts import as_number
from planner.runlog.events import Event, Fact, Mark, Progress, Step, Total
from planner.runlog.formats.base import LogFormat, amount, optional, rates_of
from planner.units import DAY_S, HOUR_S, MINUTE_S

_DICT = re.compile(r"\{['\"][a-z_]{2,60}['\"]: .{0,20000}\}")
_PAIR = re.compile(r"['\"]([A-Za-z_/().%-]{2,60})['\"]:\s*['\"]?([^,'\"}]{1,60})")
_COUNTED = re.compile(r'\{"current_steps": (\d{1,15}), "total_steps": (\d{1,15}), ')
_ELAPSED = re.compile(r'"elapsed_time": "(?:(\d{1,5}) days?, )?(\d{1,2}):(\d\d):(\d\d)"')
RATE = "train_steps_per_second"
MARKED = (
    ("***** Running training *****", "start"),
    ("Saving model checkpoint to", "checkpoint"),
    ("Writing model shards: 100%", "checkpoint"),
    ("Loading model from ", "load"),
)
"""Text in a line, with the kind of mark that it gives."""
STATED = {
    "Instantaneous batch size per device": "micro_batch",
    "Total train batch size (w. parallel, distributed & accumulation)": "global_batch_seqs",
    "Gradient Accumulation steps": "grad_accum",
    "Total optimization steps": "steps",
}
"""Labels that the Trainer's logger prints before training, with the fact that each gives."""
_STATED = re.compile(r"(?:^|\s)([A-Z][A-Za-z ().&,]{10,70}) = ([0-9,]{1,20})")


def _read(text: str) -> Iterator[Event]:
    for words, kind in MARKED:
        if words in text:
            yield Mark(kind=kind)
            return
    stated = _STATED.search(text)
    if stated is not None and stated[1] in STATED and (number := optional(stated[2])):
        yield Fact(key=STATED[stated[1]], value=number)
        return
    printed = _DICT.search(text)
    if printed is None:
        return
    pairs = dict(_PAIR.findall(printed[0]))
    yield from _counted(text)
    if RATE in pairs:
        yield from _closing(pairs)
    elif "eval_runtime" in pairs:
        yield Mark(kind="evaluation", duration_s=optional(pairs["eval_runtime"]))
    elif "loss" in pairs and ("epoch" in pairs or "learning_rate" in pairs):
        yield Step(**rates_of(pairs))


def _counted(text: str) -> Iterator[Event]:
    """Read a line of LLaMA-Factory as a state of a progress bar that began at 0."""
    counted, elapsed = _COUNTED.match(text), _ELAPSED.search(text)
    if counted is None or elapsed is None:
        return
    days, hours, minutes, seconds = (int(figure or 0) for figure in elapsed.groups())
    elapsed_s = days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    for number, at in ((0, 0.0), (int(counted[1]), elapsed_s)):
        yield Progress(number=number, of=int(counted[2]), elapsed_s=at, rates=Step())
    if '"eval_loss"' in text:
        yield Mark(kind="evaluation")


def _closing(pairs: dict[str, str]) -> Iterator[Event]:
    rate = amount(RATE, pairs[RATE])
    runtime = optional(pairs.get("train_runtime"))
    if runtime is None:
        yield Step(duration_s=1.0 / rate)
        return
    yield Total(runtime_s=runtime, steps=runtime * rate)
    yield Mark(kind="end")


HUGGING_FACE = LogFormat(
    name="Hugging Face",
    marks=(
        "'loss'",
        '"loss"',
        "_runtime'",
        '_runtime"',
        RATE,
        "***** Running",
        " = ",
        '"current_steps"',
        *(words for words, _ in MARKED),
    ),
    read=_read,
)


def state_events(text: str) -> Iterator[Event]:
    """Read the events of a `trainer_state.json`: its steps without times, and the total time if training has ended.

    Raises:
        ValueError: the text is not such a document.
    """
    state: Any = json.loads(text)
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise ValueError("no log_history")
    of = as_number(state.get("max_steps"))
    total, last = int(of) if of else None, 0
    for entry in state["log_history"]:
        number = as_number(entry.get("step")) if isinstance(entry, dict) else None
        if not number:
            continue
        if "loss" in entry:
            last = int(number)
            yield Step(number=last, of=total, **rates_of({k: str(v) for k, v in entry.items()}))
        elif RATE in entry:
            yield from _closing({key: str(value) for key, value in entry.items()})
    reached = as_number(state.get("global_step"))
    if reached and reached > last:  # steps after the last entry of the log
        yield Step(number=int(reached), of=total)
    if micro_batch := as_number(state.get("train_batch_size")):
        yield Fact(key="micro_batch", value=micro_batch)
