"""The settings in which two layouts differ, in the words of reports."""

from __future__ import annotations

from planner.errors import Message
from planner.parallelism.layout import Layout

SHORT = {"tp": "TP", "pp": "PP", "vp": "VP", "cp": "CP", "ep": "EP", "zero": "ZeRO-"}
"""Settings of a layout that reports write as a few letters and a number."""
LONG = {"micro_batch": "setting.micro_batch", "global_batch": "setting.global_batch"}
"""Settings that reports write in words, with the message of each."""
CHECKPOINTING = {
    "none": "setting.no_act_ckpt", "selective": "setting.selective_act_ckpt", "full": "setting.full_act_ckpt",
    "every-2": "setting.second_act_ckpt", "every-4": "setting.fourth_act_ckpt",
}  # fmt: skip
"""Messages of the activation-checkpointing modes."""


def differences(layout: Layout, other: Layout) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the settings in which two layouts differ, as the first has them and as the second has them."""
    names = [name for name in (*SHORT, *LONG, "act_ckpt") if getattr(layout, name) != getattr(other, name)]
    return tuple(_setting(layout, name) for name in names), tuple(_setting(other, name) for name in names)


def _setting(layout: Layout, name: str) -> Message:
    """Return one setting of a layout, as reports write it."""
    if name == "act_ckpt":
        return Message.of(CHECKPOINTING[layout.act_ckpt])
    value = getattr(layout, name)
    if name in LONG:
        return Message.of(LONG[name], value=value)
    return Message.of("setting.short", label=SHORT[name], value=value)
