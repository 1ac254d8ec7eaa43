"""Argument vectors of the real commands and flags, with values that people write and values that break programs.

python -m tests.fuzz.arguments --seed 1 --seconds 20
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz import values
from tests.fuzz.case import Case, Outcome
from tests.fuzz.program import run_program

SLOW = ("probe", "numerics", "doctor")
"""Commands that start processes of their own with torch in them; a case of them takes seconds."""
SLOW_RATIO = 0.004
ANSWER_RATIO = 0.03
"""Of the cases of `estimate`, those without a value that breaks programs: most of these are answered, in seconds."""
QUESTION = ("--params", "125M", "--gpus", "8", "--tokens", "1B", "--seq-len", "512")
"""A question that is answered quickly; the first words of most cases of `estimate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option of a command."""

    name: str
    """Of the parameter, `max_gpus`."""
    spelt: tuple[str, ...]
    """`--max-gpus`, or both ways to write it."""
    is_switch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command that can be run, with what it takes."""

    words: tuple[str, ...]
    """`("prices", "add")`."""
    arguments: tuple[str, ...]
    flags: tuple[Flag, ...]


@functools.cache
def commands() -> tuple[Command, ...]:
    """Every command of the program, from its own declarations."""
    from mpplan.commands import COMMANDS
    from mpplan.group import load_command

    return tuple(leaf for command in COMMANDS for leaf in _leaves((command.name,), load_command(command)))


def _leaves(words: tuple[str, ...], command: Any) -> Iterator[Command]:
    inner = getattr(command, "commands", None)
    if inner:
        for name, child in inner.items():
            yield from _leaves((*words, name), child)
        return
    options = [option for option in command.params if option.param_type_name == "option"]
    yield Command(
        words=words,
        arguments=tuple(option.name for option in command.params if option.param_type_name == "argument"),
        flags=tuple(Flag(name=o.name, spelt=(*o.opts, *o.secondary_opts), is_switch=o.is_flag) for o in options),
    )


def cases(seed: int) -> Iterator[Case]:
    """Argument vectors without end; the one at an index depends on the seed and the index alone."""
    index = 0
    while True:
        yield _case(random.Random(f"{seed}:{index}"))
        index += 1


def _case(draw: random.Random) -> Case:
    tree = commands()
    command = draw.choice(tree)
    if command.words[0] in SLOW and draw.random() > SLOW_RATIO * len(tree):
        command = tree[0]
    given = 1.0 if command.words == ("validate",) else 0.93  # as `_predicts_all`
    arguments = [*command.words, *(_value(draw, name, 0.5) for name in command.arguments if draw.random() < given)]
    plain = command.words == ("estimate",) and draw.random() < ANSWER_RATIO
    if command.words == ("estimate",) and draw.random() < 0.9:
        arguments += QUESTION
    for flag in draw.sample(command.flags, min(len(command.flags), draw.choice((0, 1, 1, 1, 2, 2, 3, 4, 6)))):
        arguments += _flag(draw, flag, 0.0 if plain else 0.75)
    if command.words[0] in SLOW:
        seed = {"probe": "--seed", "numerics": "--seeds"}.get(command.words[0])
        arguments += [] if seed is None else [seed, draw.choice(("²", "-1", "x", "1e400"))]  # so that nothing is run
    if draw.random() < 0.04:
        bent = _bent(draw, arguments)
        arguments = arguments if _predicts_all(bent) else bent
    stdin = draw.choice((b"", b"{}", b"\xff\xfe", b"[" * 10_000)) if "-" in arguments else b""
    return Case(arguments=tuple(arguments), stdin=stdin, variables=_variables(draw))


def _predicts_all(arguments: list[str]) -> bool:
    """Whether this is `validate` without a file: minutes, for all published runs."""
    return arguments[:1] == ["validate"] and all(word.startswith("-") for word in arguments[1:])


def _flag(draw: random.Random, flag: Flag, nasty: float) -> list[str]:
    """A flag with its value: apart, joined with `=`, twice, or misspelt."""
    spelt = draw.choice(flag.spelt)
    if flag.is_switch:
        return [spelt] if draw.random() < 0.95 else [f"{spelt}={_value(draw, flag.name, nasty)}"]
    value = _value(draw, flag.name, nasty)
    way = draw.random()
    if way < 0.08:
        return [f"{spelt}={value}"]
    if way < 0.12:
        return [spelt, value, spelt, _value(draw, flag.name, nasty)]
    if way < 0.14:
        return [spelt[:-1], value]
    return [spelt] if way < 0.15 else [spelt, value]


def _value(draw: random.Random, name: str, nasty: float) -> str:
    if draw.random() < nasty:
        return draw.choice(values.NASTY) if draw.random() < 0.8 else draw.choice(values.FILES)
    plausible = values.PLAUSIBLE.get(name, values.NAMES)
    value = draw.choice(plausible)
    if nasty and draw.random() < 0.15:
        return value + draw.choice(("²", " ", "0" * 400, "\n", "e400", "\x1b", ",", "B", "d", "W", "%"))
    return value


def _bent(draw: random.Random, arguments: list[str]) -> list[str]:
    """The same with a word too many, missing, elsewhere, or twice."""
    at = draw.randrange(len(arguments))
    word = arguments[at]
    return draw.choice(
        (
            [*arguments[:at], draw.choice(values.NASTY), *arguments[at:]],
            [*arguments[:at], *arguments[at + 1 :]],
            [word, *arguments[:at], *arguments[at + 1 :]],
            [*arguments, *arguments[at:]],
        )
    )


def _variables(draw: random.Random) -> dict[str, str]:
    if draw.random() > 0.03:
        return {}
    return {draw.choice(VARIABLES): draw.choice(values.NASTY)}


VARIABLES = ("COLUMNS", "LINES", "TERM", "NO_COLOR", "MPPLAN_ESTIMATE_SEED", "MPPLAN_ESTIMATE_JSON", "XDG_DATA_HOME")

INPUTS = {
    "own.toml": b"[capital]\nserver_usd_per_gpu = 30000\nlife_years = 4\n",
    "quote.toml": b'vendor = "Acme"\ngpu = "h100-sxm5-80gb"\nprice_per_gpu_h = 2.10\ncommitment = "1y"\n',
    "beside.toml": b"[storage]\nusd_per_gb_month = 0.023\ncheckpoints_kept = 5\ndata = '40TB'\nmonths_after = 12\n",
    "tariff.toml": b'name = "flat"\n[[period]]\nfrom = 0\nto = 24\nusd_per_kwh = 0.1\n',
    "config.json": b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, '
    b'"intermediate_size": 1376, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 32000, '
    b'"num_key_value_heads": 4, "max_position_embeddings": 2048, "tie_word_embeddings": false}',
    "runs.csv": b"id,model,precision,gpu,n_gpus,seq_len,global_batch_seqs,metric,value\n"
    b"mine-1,llama-3.1-8b,bf16,h100-sxm5-80gb,8,4096,128,tokens_per_s_per_gpu,9000\n",
    "prices.csv": b"gpu,price,region\nh100-sxm5-80gb,2.5,us-east-1\n",
    "nccl.txt": b"# nThread 1 nGpus 8\n",
    "cal.json": b'{"schema": "mpplan.calibration/1"}\n',
    "numerics.json": b'{"schema": "mpplan.numerics/1"}\n',
    "logo.png": b"\x89PNG\r\n\x1a\n",
    "empty": b"",
    "folder/kept": b"",
}  # fmt: skip
"""Small files that lie in the folder of every case."""


@functools.cache
def inputs() -> dict[str, bytes]:
    """`INPUTS`, and those that the program writes itself or that other tests have."""
    record = Path(__file__).parents[1] / "planner" / "records" / "probe_lines.jsonl"
    answered = run_program(Case(arguments=("estimate", *QUESTION, "--json", "--quiet")))
    return {**INPUTS, "record.jsonl": record.read_bytes(), "answer.json": answered.out}


def run(case: Case) -> Outcome:
    """Run one argument vector."""
    return run_program(case, inputs())


if __name__ == "__main__":
    import sys

    from tests.fuzz.__main__ import main

    sys.exit(main(["--surface", "arguments", *sys.argv[1:]]))
