"""Settings of a cluster that a user can give, each defined once with the characters that are safe in every job file.

Job files are shell and YAML, in which a value with a quote, a space or a line end could become a command. Such values
are refused.
"""

from __future__ import annotations

import re

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.text import shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting that a cluster needs to know."""

    name: str
    metavar: str
    help: str
    """Help text of the flag, without the launchers that take it."""
    pattern: str
    """Regular expression that every accepted value matches completely."""
    expected: str
    """The pattern in words, for the hint."""

    @property
    def flag(self) -> str:
        """The flag of the setting."""
        return f"--{self.name}"

    def read(self, text: str) -> str:
        """Return the value, which is safe in any job file.

        Raises:
            UsageError: the value contains something that the setting does not accept.
        """
        if not re.fullmatch(self.pattern, text, re.ASCII):
            raise UsageError(f"{self.flag}: `{shortened(text)}` does not fit into a job file", hint=self.expected)
        return text


_SITE_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+@-]*"

GPU = "gpu"
"""Name of the setting that names a GPU of the catalogue."""
TIME = "time"
"""Name of the setting that limits the time of a job."""

SETTINGS: tuple[Setting, ...] = (
    Setting(
        name=GPU, metavar="ID", help="The GPU to ask for.",
        pattern=r"[A-Za-z0-9][A-Za-z0-9 ._()/,-]*", expected="a GPU of the catalogue; `mpplan gpus` lists them",
    ),
    Setting(
        name="partition", metavar="NAME", help="Partition, as in `sinfo -s`.",
        pattern=rf"{_SITE_NAME}(,{_SITE_NAME})*", expected="letters, digits and `_ . + @ -`, commas between several",
    ),
    Setting(
        name="account", metavar="NAME", help="Account that is charged.",
        pattern=_SITE_NAME, expected="a name of letters, digits and `_ . + @ -`",
    ),
    Setting(
        name="qos", metavar="NAME", help="Quality of service.",
        pattern=_SITE_NAME, expected="a name of letters, digits and `_ . + @ -`",
    ),
    Setting(
        name=TIME, metavar="TIME",
        help="Time limit of the job, in sbatch's format. Default: twice the probe's own, plus 20 minutes.",
        pattern=r"\d{1,6}(:\d{1,2}){0,2}|\d{1,3}-\d{1,2}(:\d{1,2}){0,2}",
        expected="as sbatch takes it: `45` (minutes), `1:30:00` or `1-12` (a day and twelve hours)",
    ),
    Setting(
        name="image", metavar="IMAGE", help="Container image with Python >= 3.11 and PyTorch for its GPUs.",
        pattern=r"[A-Za-z0-9][A-Za-z0-9._/:@-]*", expected="an image as a registry names it: `repository/name:tag`",
    ),
    Setting(
        name="namespace", metavar="NAME", help="Namespace of the job.",
        pattern=r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        expected="at most 63 small letters, digits and `-` (RFC 1123, as Kubernetes wants it)",
    ),
)  # fmt: skip
"""All settings, in the order of the help."""

SETTING_BY_NAME = {setting.name: setting for setting in SETTINGS}
