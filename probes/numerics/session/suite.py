"""Run every instrument on every task, each within its share of the time, and write the record and its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from planner.errors import CannotMeasureError, MpplanError, UsageError
from planner.records.measurement import Measurement
from probes.device.device import Device, open_device
from probes.device.faults import DeviceLost, cleaned, is_lost
from probes.numerics.instruments.exponents import histograms
from probes.numerics.instruments.parity import parity
from probes.numerics.instruments.policy import policy
from probes.numerics.instruments.reach import reach
from probes.numerics.instruments.scaling import known_limit
from probes.numerics.instruments.schedule import schedule
from probes.numerics.instruments.sensitivity import empty_answer, sensitivity
from probes.numerics.instruments.time import Keep, OutOfTimeError, TimeBudget
from probes.numerics.instruments.warm_starts import WarmStarts
from probes.numerics.lowering.recipes import LowerRecipe, choose_lower, harshest, lower_by_id
from probes.numerics.session.agreement import held_to
from probes.numerics.session.document import ENDED, HEAD, SECTIONS, answered, result_key, task_key
from probes.numerics.session.lines import lines_of
from probes.numerics.session.options import LEAST_TASK_S, MARGINS, SEEDS, NumericsOptions
from probes.numerics.session.parts import PartFile
from probes.numerics.session.request import begun_on, must_agree
from probes.numerics.session.trial import (
    REMEDY,
    TRIED_STEPS,
    UntrainedError,
    first_broken_step,
    loss_scaling_with_fp32_control,
    same_batch,
)
from probes.numerics.tasks import USUAL, choose_tasks, find_task, missing_for
from probes.numerics.tasks.interface import LARGE, SMALL, Task
from probes.numerics.training import Place
from probes.precisions import recipe_by_id
from probes.record.ledger import PointLedger
from probes.record.options import Options
from probes.record.provenance import provenance
from probes.session.listener import Listener, Progress, Silence
from probes.session.outcome import Outcome

Plain = dict[str, Any]

WEIGHTS = {
    "loss_scaling": 0.25, "histograms": 0.05, "parity": 0.32, "sensitivity": 0.21, "policy": 0.08, "schedule": 0.09,
}  # fmt: skip
"""Share of a task's time for each section. Time that a section does not use goes to the sections after it."""
FIRST_TASK_WEIGHT = 2.0
"""Ratio of the first task's time to the time of any other task."""
CLOSING_RATIO, CLOSING_MOST_S = 0.05, 5.0
"""Share of the budget, and upper limit in seconds, held back for the step under way and for ending the process."""
AGAIN_S = 5.0
"""Least time that must be left over, in seconds, for parts that were cut short to be continued."""
DIED = "the process died in it"


@dataclass(slots=True, kw_only=True)
class _OfTask:
    """Results that the instruments of one task pass on to later ones; filled as they run."""

    task: Task
    sensitivity: Plain | None = None
    warm_starts: WarmStarts | None = None


class NumericsSession:
    """A run of `mpplan numerics` on one device."""

    def __init__(self, options: NumericsOptions, listener: Listener | None = None) -> None:
        """Open the device and the record.

        Args:
            options: the options of the run.
            listener: is notified of events; None: nobody is.

        Raises:
            CannotMeasureError: the device, or a package that a task needs, is missing.
            UsageError: an option, a task or the record cannot be used.
        """
        asked_s = time.time() if options.asked_unix_s is None else options.asked_unix_s
        self._began = time.monotonic() - max(time.time() - asked_s, 0.0)
        self._options = options
        self._listener: Listener = listener or Silence()
        self.device = _opened(options)
        _set_threads(options, self.device)
        recipe_by_id("fp32").activate()  # the baseline is strict FP32: no TF32, not even in convolutions
        settings = Options(
            device=options.device, gpu_index=options.gpu_index, path=options.path, store=options.store,
            resume=options.resume, skip_failed=options.skip_failed, threads=options.threads,
        )  # fmt: skip
        self._ledger = PointLedger(settings, provenance(self.device), self._listener.noted)
        self.parts = self._opened_parts()
        try:
            self._head = self._begin()
            self._recipes = choose_lower(self._head["precisions"])
            self._tasks = [find_task(name) for name in self._head["tasks"]]
        except BaseException:
            self.close()
            raise
        self._place = Place(
            device=self.device.torch,
            kind=self.device.kind,
            capability=self.device.capability,
            size=self._head["size"],
        )
        budget_s = options.budget_on(self.device.kind)
        closing_s = min(CLOSING_RATIO * budget_s, CLOSING_MOST_S)
        self._budget = TimeBudget(end_s=self._began + max(budget_s - closing_s, 1.0))

    def _opened_parts(self) -> PartFile:
        try:
            parts = PartFile(self._ledger.path)
            if parts.known and not self._options.resume:  # left by a run that ended before its record had a line
                raise UsageError(
                    f"`{parts.path}` exists already", hint="continue it with `--resume`, or name another file"
                )
            return parts
        except BaseException:
            self._ledger.close()
            raise

    @property
    def path(self) -> Path:
        """Path of the record."""
        return self._ledger.path

    def run(self) -> Outcome:
        """Run every part for which there is time.

        Raises:
            UsageError: one of the user's own tasks failed, or the record can no longer be written.
        """
        self._listener.began(str(self.path), self.device.name)
        died = self._ledger.under_way.left_behind()
        if self._options.skip_failed:
            for key in died:
                self.parts.add(key, {"failed": DIED})
        self._ledger.under_way.end()
        waiting = [(number, section) for number in range(len(self._tasks)) for section in SECTIONS]
        self._listener.planned(len(waiting), self._budget.left_s)
        lost = None
        try:
            self._must_train()
            self._run_parts(waiting)
            short = [part for part in waiting if not self._is_done(self._tasks[part[0]].id, part[1])]
            if short and self._budget.left_s > AGAIN_S:
                self._run_parts(short)  # in the time that the other parts left over
        except DeviceLost as error:
            lost = str(error)
        self.parts.add(ENDED, {"wall_s": time.monotonic() - self._began})
        return Outcome(points=self._ledger.written, left_out=(), lost_device=lost)

    def _must_train(self) -> None:
        """Check that every task has a finite loss in FP32, before any other precision is judged.

        Raises:
            UsageError: the loss of a task is not finite.
        """
        for task in self._tasks:
            key = f"{task_key(task.id)}/trains"
            if key not in self.parts.known:
                step = self._guarded_call(task.id, "the first steps", partial(first_broken_step, task, self._place))
                if step is not None:
                    raise UsageError(
                        f"--task: `{task.id}`: FP32 training gives no finite loss from step {step} on", hint=REMEDY
                    )
                self.parts.add(key, {"steps": TRIED_STEPS})

    def _run_parts(self, waiting: Sequence[tuple[int, str]]) -> None:
        """Run every part in turn, each with its share of the time that is left."""
        by_task = {number: _OfTask(task=self._tasks[number]) for number, _ in waiting}
        for at, (number, section) in enumerate(waiting):
            weights = [self._weight(*later) for later in waiting[at:]]
            self._run_part(by_task[number], section, self._budget.portion(weights[0] / sum(weights)))
            if section == SECTIONS[-1]:
                by_task[number].warm_starts = None  # their models are no longer needed

    def _is_done(self, task: str, section: str) -> bool:
        """Return whether a part is finished. Sensitivity counts only with the policy, which uses its warm starts."""
        known = self.parts.known.get(result_key(task, section))
        if known is None or known.get("cut_short") != []:
            return False
        return section != "sensitivity" or self._is_done(task, "policy")

    def close(self) -> None:
        """Close the record; delete the files beside it if no instrument found anything, as after an error in a task."""
        if not any(key.partition("/")[0] not in (HEAD, ENDED, "task") for key in self.parts.known):
            self._ledger.under_way.end()
            self.parts.remove()
        self._ledger.close()

    def _weight(self, number: int, section: str) -> float:
        return WEIGHTS[section] * (FIRST_TASK_WEIGHT if number == 0 else 1.0)

    def _run_part(self, of_task: _OfTask, section: str, budget: TimeBudget) -> None:
        """Run one instrument on one task, unless it is finished already."""
        task, key = of_task.task, result_key(of_task.task.id, section)
        known = self.parts.known.get(key)
        if known is not None and (known.get("failed") == DIED and self._options.skip_failed):
            return
        if self._is_done(task.id, section):
            return
        done_s = time.monotonic() - self._began
        label = f"{task.id}, {section.replace('_', ' ')}"
        self._listener.started(Progress(label=label, done_s=done_s, left_s=max(self._budget.left_s, 0.0)))
        self._ledger.under_way.begin((key,))
        try:
            document = self._guarded(of_task, section, budget)
        except OutOfTimeError:
            self._ledger.under_way.end()
            return
        except UntrainedError:
            self._ledger.under_way.end()
            self.parts.forget(task.id, but=task_key(task.id))
            raise
        self._ledger.under_way.end()
        if document == known:
            return
        self.parts.add(key, document)
        for line in lines_of(task.id, section, document):
            self._listener.measured(self._written(line))

    def _written(self, line: Any) -> Measurement:
        return self._ledger.write_finding(line.probe_id, line.precision, line.recipe, line.figures)

    def _guarded(self, of_task: _OfTask, section: str, budget: TimeBudget) -> Plain:
        """Run an instrument. Errors of a user's own task are raised; those of a built-in one give a `failed` answer."""
        task, name = of_task.task.id, section.replace("_", " ")
        try:
            answer: Plain = self._guarded_call(task, name, self._instruments(of_task, budget)[section])
            return answer
        except (MpplanError, OutOfTimeError, DeviceLost):
            raise
        except Exception as error:
            self._listener.noted(f"{task}, {name}: {cleaned(error)}")
            return {"failed": cleaned(error)}

    def _guarded_call(self, task: str, what: str, call: Callable[[], Any]) -> Any:
        """Call a function that trains a task, and name the cause if the device is lost or the user's own task fails.

        Raises:
            DeviceLost: the device is gone.
            UsageError: the task is the user's own and failed.
        """
        try:
            return call()
        except (MpplanError, OutOfTimeError):
            raise
        except (Exception, SystemExit) as error:
            if self.device.kind == "cuda" and isinstance(error, Exception) and is_lost(error):
                raise DeviceLost(cleaned(error)) from error
            if ":" in task:
                reason = "it called sys.exit" if isinstance(error, SystemExit) else cleaned(error)
                raise UsageError(
                    f"--task: `{task}` failed in {what}: {reason}",
                    hint="train it for one step with the same batch, without mpplan",
                ) from error
            raise

    def _instruments(self, of_task: _OfTask, budget: TimeBudget) -> dict[str, Callable[[], Plain]]:
        task, place = of_task.task, self._place
        lowered = lower_by_id(self._head["lowered_to"])
        keep = {section: self.parts.keeper(f"{section}/{task.id}") for section in SECTIONS}
        margin = float(self._head["margin"])
        loss_margin = margin if self._head["metric"] == "loss" else MARGINS["loss"]
        metric = self._head["metric"] if self._head["metric"] in task.metrics else "loss"
        return {
            "loss_scaling": partial(loss_scaling_with_fp32_control, task, place, budget, keep["loss_scaling"]),
            "histograms": partial(histograms, task, place, budget, keep["histograms"], self._limit(task.id)),
            "parity": partial(
                parity, task, place, self._recipes, budget, keep["parity"], metric=metric, seeds=self._head["seeds"],
                margin=margin if metric == self._head["metric"] else MARGINS[metric],
            ),
            "sensitivity": partial(self._sensitivity, of_task, lowered, budget, keep["sensitivity"]),
            "policy": partial(self._policy, of_task, loss_margin, budget, keep["policy"]),
            "schedule": partial(
                schedule, task, place, lowered, loss_margin, budget, keep["schedule"], keep["parity"]
            ),
        }  # fmt: skip

    def _limit(self, task: str) -> int | None:
        """Return log2 of the largest loss scale at which a task never overflowed, early or late; None: unknown."""
        return known_limit(self.parts.known.get(result_key(task, "loss_scaling"), {}))

    def _sensitivity(self, of_task: _OfTask, recipe: LowerRecipe, budget: TimeBudget, keep: Any) -> Plain:
        why_not = reach(of_task.task, self._place, recipe, self._kept_parity(of_task.task))["why_not_applied"]
        if why_not is not None:
            of_task.sensitivity = empty_answer(self._place, recipe, [], why_not)
        else:
            of_task.sensitivity, of_task.warm_starts = sensitivity(of_task.task, self._place, recipe, budget, keep)
        return of_task.sensitivity

    def _kept_parity(self, task: Task) -> Keep:
        return self.parts.keeper(f"parity/{task.id}")

    def _policy(self, of_task: _OfTask, margin: float, budget: TimeBudget, keep: Any) -> Plain:
        if of_task.sensitivity is None:
            raise OutOfTimeError
        if of_task.warm_starts is None and of_task.sensitivity["why_not_applied"] is None:
            raise OutOfTimeError
        answer = policy(of_task.warm_starts, of_task.sensitivity, margin, budget, keep)
        beside = (answered(self.parts.known, of_task.task.id, section) for section in ("parity", "schedule"))
        return held_to(answer, *beside)

    def _begin(self) -> Plain:
        """Return the request. A resumed record keeps its own request, which this run must agree with."""
        known, where = self.parts.known.get(HEAD), provenance(self.device)
        if known is not None:
            must_agree(known, self._options.asked(), where)
            return known
        left_out = [f"{name}: scikit-learn is missing: pip install 'mpplan[numerics]'" for name in USUAL
                    if self._options.tasks is None and missing_for(name)]  # fmt: skip
        described: dict[str, Plain] = {}
        size = self._options.size or (LARGE if self.device.kind == "cuda" else SMALL)
        for name in choose_tasks(self._options.tasks or ()):
            try:
                described[name] = self._described(find_task(name), size)
            except CannotMeasureError as error:
                if self._options.tasks is not None:
                    raise
                left_out.append(f"{name}: {error.message}")
        budget_s = self._options.budget_on(self.device.kind)
        if self._options.tasks is None:
            for name in list(described)[max(int(budget_s / LEAST_TASK_S[self.device.kind]), 1) :]:
                del described[name]
                left_out.append(f"{name}: the budget holds fewer tasks; name it with --task")
        tasks = tuple(described)
        recipes = choose_lower(self._options.precisions or ())
        metric = self._options.metric or "loss"
        head: Plain = {
            "mpplan": where.software.mpplan_version, "device": self.device.kind, "device_name": self.device.name,
            "tasks": list(tasks), "precisions": [recipe.id for recipe in recipes], "metric": metric,
            "lowered_to": harshest(recipes, named=self._options.precisions is not None).id,
            "margin": MARGINS[metric] if self._options.margin is None else self._options.margin,
            "seeds": self._options.seeds or SEEDS, "size": size,
            "software": {"torch": where.software.torch_version, "python": where.software.python_version,
                         "threads": where.device.threads},
            "left_out": left_out, "begun_on": begun_on(where),
        }  # fmt: skip
        head["asked"] = {
            "--task": head["tasks"], "--precision": head["precisions"], "--metric": metric, "--margin": head["margin"],
            "--seeds": head["seeds"], "--size": head["size"],
        }  # fmt: skip
        for name, description in described.items():
            self.parts.add(task_key(name), description)
        return self.parts.add(HEAD, head)

    def _described(self, task: Task, size: str) -> Plain:
        model = task.make(0, size, torch.device("cpu")).model
        return {
            "id": task.id, "what": task.what, "parameters": sum(p.numel() for p in model.parameters()),
            "data": task.data() if task.data is not None else {}, "most_steps": task.steps[size],
            "loss_unit": task.loss_unit, "seeded_batches": _seeded_batches(task, size),
        }  # fmt: skip


def _seeded_batches(task: Task, size: str) -> bool:
    """Return whether two seeds of a task train on different batches, judged by the first batch of each."""
    if task.seeded_batches is not None:
        return task.seeded_batches
    first, second = (task.make(seed, size, torch.device("cpu")).batch(0) for seed in (0, 1))
    return not same_batch(first, second)


def _opened(options: NumericsOptions) -> Device:
    """Open the requested device.

    Raises:
        CannotMeasureError: the device is missing.
    """
    try:
        return open_device(options.device, options.gpu_index).as_current()
    except CannotMeasureError as error:
        raise CannotMeasureError(error.message, hint="`mpplan numerics --device cpu` trains on the CPU") from error


def _set_threads(options: NumericsOptions, device: Device) -> None:
    """Use one thread on a CPU by default: threads that wait for each other are slow on a machine with other work."""
    if options.threads is not None or device.kind == "cpu":
        torch.set_num_threads(options.threads or 1)
