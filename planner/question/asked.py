"""The question as typed, and how its texts are read: every value is noted with where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.errors import Message, UsageError
from planner.units import parse_count

LARGEST_WHOLE = 10**8
"""Of GPUs, sequences in a step, tokens in a sequence: more is a slip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of the question with its source."""

    value: object
    """A string, number, bool, list or None: plain JSON; or a message."""
    source: str
    """flag, file, default, catalogue, derived or record."""
    note: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The question as typed: every field is the text of the flag of the same name, None where it was not given."""

    params: str | None = None
    model: str | None = None
    method: str | None = None
    tokens: str | None = None
    seq_len: str | None = None
    global_batch: str | None = None
    precision: str | None = None
    policy: str | None = None
    optimizer: str | None = None
    act_ckpt: str | None = None
    offload: str | None = None
    stack: str | None = None
    attention: str | None = None
    gpu: str | None = None
    gpus: str | None = None
    deadline: str | None = None
    budget: str | None = None
    gpus_per_node: str | None = None
    network: str | None = None
    power_limit: str | None = None
    tp: str | None = None
    pp: str | None = None
    vp: str | None = None
    cp: str | None = None
    ep: str | None = None
    zero: str | None = None
    micro_batch: str | None = None
    price: str | None = None
    provider: str | None = None
    region: str | None = None
    commitment: str | None = None
    pue: str | None = None
    electricity: str | None = None
    grid: str | None = None
    as_of: str | None = None
    market_grid: str | None = None
    quote: str | None = None
    own: str | None = None
    beside: str | None = None
    tariff: str | None = None
    embodied: str | None = None
    power_cap: str | None = None
    seed: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    """`flag`, `file` or `environment` by field name; a given field without an entry counts as `flag`."""

    def source(self, name: str) -> str:
        """Where a given field came from."""
        return self.sources.get(name, "flag")


class Reader:
    """Collects inputs while reading them."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.inputs: dict[str, Input] = {}

    def text(self, name: str) -> str | None:
        """What was given for a field, None where nothing was."""
        value: str | None = getattr(self.ask, name)
        return value.strip() if value is not None else None

    def note(self, name: str, value: object, source: str | None = None, note: Message | None = None) -> None:
        """Keep a value that was read, with where it came from."""
        given = self.text(name) is not None if hasattr(self.ask, name) else False
        origin = source or (self.ask.source(name) if given else "default")
        self.inputs[name] = Input(value=value, source=origin, note=note)

    def choice(self, name: str, options: tuple[str, ...], default: str, also: dict[str, str] | None = None) -> str:
        """One of some words; `also` are other spellings of them.

        Raises:
            UsageError: another word.
        """
        text = self.text(name)
        value = default if text is None else (also or {}).get(text.lower(), text.lower())
        if value not in options:
            raise UsageError(f"--{name.replace('_', '-')}: unknown `{text}`", hint=f"one of {', '.join(options)}")
        self.note(name, value)
        return value

    def whole(self, name: str, low: int = 1) -> int | None:
        """A whole number from `low` to `LARGEST_WHOLE`, None where nothing was given.

        Raises:
            UsageError: it is none.
        """
        text = self.text(name)
        if text is None:
            return None
        flag = f"--{name.replace('_', '-')}"
        value = 0.0 if set(text) == {"0"} else parse_count(text, flag)
        if value != int(value) or value < low:
            raise UsageError(f"{flag}: `{text}` must be a whole number of at least {low}", hint=f"for example {flag} 8")
        if value > LARGEST_WHOLE:
            raise UsageError(f"{flag}: `{text}` must be at most {LARGEST_WHOLE}", hint=f"for example {flag} 8")
        self.note(name, int(value))
        return int(value)

    def real(self, name: str, low: float = 0.0) -> float | None:
        """A finite number above `low`, None where nothing was given.

        Raises:
            UsageError: it is none.
        """
        text = self.text(name)
        if text is None:
            return None
        flag = f"--{name.replace('_', '-')}"
        try:
            value = float(text.lstrip("$").replace(",", ""))
        except ValueError as error:
            raise UsageError(f"{flag}: `{text}` is not a number", hint=f"for example {flag} 2.5") from error
        if not low < value < float("inf"):
            raise UsageError(f"{flag}: `{text}` must be greater than {low:g}", hint=f"for example {flag} 2.5")
        self.note(name, value)
        return value
