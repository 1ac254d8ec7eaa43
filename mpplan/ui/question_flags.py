"""The flags of `mpplan estimate` as types, in the sections of its help.

Every part of a question is text here; reading it is the planner's business, so that flag, file, variable and Python API
behave alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from mpplan.ui.options import OUTPUT

MODEL, TRAINING, MACHINES, LAYOUT = "The model", "The training", "The machines", "The layout (else searched)"
MONEY, EVIDENCE, LIMITS = "Money, power, carbon", "Evidence", "Limits"


def _gpus() -> Iterable[str]:
    from planner.hardware.catalogue import load_gpus

    return load_gpus()


def _models() -> Iterable[str]:
    from planner.models.catalogue import load_models

    return load_models()


def _policies() -> Iterable[str]:
    from planner.training.policies import load_policies

    return load_policies()


def _optimizers() -> Iterable[str]:
    from planner.training.optimizers import load_optimizers

    return load_optimizers()


def _precisions() -> Iterable[str]:
    from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS

    return (*PRECISIONS, *EXTRA_PRECISIONS)


def _flag(section: str, metavar: str, help_text: str, names: Callable[[], Iterable[str]] | None = None) -> Any:
    """An option of text; `names` are what a shell offers after it, loaded only when a shell asks."""

    def complete(incomplete: str) -> list[str]:
        done, comma, last = incomplete.rpartition(",")
        return [f"{done}{comma}{name}" for name in (names() if names else ()) if name.startswith(last)]

    return typer.Option(
        metavar=metavar, rich_help_panel=section, help=help_text, autocompletion=complete if names else None
    )


Params = Annotated[str | None, _flag(MODEL, "N", "Parameters, like 70B; the shape is derived and shown.")]
Model = Annotated[str | None, _flag(MODEL, "NAME", "A catalogue model or a Hugging Face config.json.", _models)]
Method = Annotated[str | None, _flag(TRAINING, "NAME", "pretrain, sft, lora or qlora. Default pretrain.")]
Tokens = Annotated[str | None, _flag(TRAINING, "N", "Tokens to train on, like 1.5T. Default 20 per parameter.")]
SeqLen = Annotated[str | None, _flag(TRAINING, "N", "Sequence length in tokens. Default 4096 or the model's.")]
GlobalBatch = Annotated[str | None, _flag(TRAINING, "N", "Sequences per step. Default the model's, or by model size.")]
Precision = Annotated[
    str | None,
    _flag(
        TRAINING,
        "NAME",
        "The precision asked for: fp32, tf32, fp16, bf16, fp8 (mxfp8, nvfp4). All are compared.",
        _precisions,
    ),
]
Policy = Annotated[str | None, _flag(TRAINING, "NAME", "Named recipe behind the precision, like bf16-fsdp.", _policies)]
Optimizer = Annotated[str | None, _flag(TRAINING, "NAME", "Optimizer. Default adamw.", _optimizers)]
ActCkpt = Annotated[str | None, _flag(TRAINING, "MODE", "none, selective or full. Default the planner's choice.")]
Offload = Annotated[str | None, _flag(TRAINING, "WHAT", "none, optimizer or activations. Default none.")]
Stack = Annotated[str | None, _flag(TRAINING, "NAME", "tuned, fsdp-compile or eager. Default tuned.")]
Attention = Annotated[str | None, _flag(TRAINING, "NAME", "flash or naive. Default flash where the GPU has it.")]
Gpu = Annotated[str | None, _flag(MACHINES, "ID,...", "GPUs of the catalogue; several are compared.", _gpus)]
Gpus = Annotated[str | None, _flag(MACHINES, "N", "Number of GPUs.")]
Deadline = Annotated[
    str | None, _flag(MACHINES, "TIME", "Finish within, like 30d. Default 30d without --gpus or --budget.")
]
Budget = Annotated[str | None, _flag(MACHINES, "USD", "Spend at most, like 2M; sets the GPUs.")]
GpusPerNode = Annotated[str | None, _flag(MACHINES, "N", "GPUs per server. Default the GPU's.")]
Network = Annotated[
    str | None, _flag(MACHINES, "RATE", "Between servers: 400Gb/s (per GPU), 8x400Gb/s, ib-ndr. Default the GPU's.")
]
PowerLimit = Annotated[str | None, _flag(MACHINES, "W", "Power limit per GPU. Default the board's.")]
Tp = Annotated[str | None, _flag(LAYOUT, "N", "Tensor parallel.")]
Pp = Annotated[str | None, _flag(LAYOUT, "N", "Pipeline parallel.")]
Vp = Annotated[str | None, _flag(LAYOUT, "N", "Virtual stages per pipeline stage.")]
Cp = Annotated[str | None, _flag(LAYOUT, "N", "Context parallel.")]
Ep = Annotated[str | None, _flag(LAYOUT, "N", "Expert parallel.")]
Zero = Annotated[str | None, _flag(LAYOUT, "STAGE", "ZeRO stage 0 to 3 (3 is FSDP).")]
MicroBatch = Annotated[str | None, _flag(LAYOUT, "N", "Sequences per micro-batch and rank.")]
Price = Annotated[str | None, _flag(MONEY, "USD", "Per GPU-hour. Default the median over providers.")]
Provider = Annotated[str | None, _flag(MONEY, "NAME", "Provider of the price book.")]
Region = Annotated[str | None, _flag(MONEY, "NAME", "Region, for price and grid.")]
Commitment = Annotated[str | None, _flag(MONEY, "NAME", "on-demand, spot, 1y or 3y. Default on-demand.")]
Quote = Annotated[str | None, _flag(MONEY, "FILE", "quote.toml: a vendor's offer, with its term and fee.")]
Own = Annotated[str | None, _flag(MONEY, "FILE", "own.toml: your own machines, beside what renting costs.")]
Beside = Annotated[str | None, _flag(MONEY, "FILE", "beside.toml: storage, egress, hosts, experiments.")]
Pue = Annotated[str | None, _flag(MONEY, "X", "Power usage effectiveness. Default 1.25, or the operator's.")]
Electricity = Annotated[str | None, _flag(MONEY, "USD", "Electricity per kWh, where it is paid apart.")]
Tariff = Annotated[str | None, _flag(MONEY, "FILE", "tariff.toml: electricity by hour of the week.")]
PowerCap = Annotated[str | None, _flag(MONEY, "POWER", "What the facility can deliver at the peak, like 2MW.")]
Grid = Annotated[
    str | None,
    _flag(MONEY, "ZONE|G", "Grid zone, or g CO2e per kWh (live:ZONE asks Electricity Maps). Default the US average."),
]
MarketGrid = Annotated[str | None, _flag(MONEY, "G", "Market-based g CO2e per kWh of your contracts; 0 is allowed.")]
Embodied = Annotated[
    bool,
    typer.Option(
        "--embodied", rich_help_panel=MONEY, help="Also carbon with that of making the GPUs, as a second number."
    ),
]
AsOf = Annotated[str | None, _flag(MONEY, "DATE", "Day of the prices, YYYY-MM-DD. Default today.")]
Records = Annotated[str | None, _flag(EVIDENCE, "PATH", "Measurement file or folder. Default your own records.")]
Seed = Annotated[str | None, _flag(EVIDENCE, "N", "Seed of the draws behind the ranges.")]
Report = Annotated[str | None, _flag(OUTPUT, "PATH", "Also write the HTML report; `-` is stdout.")]
Format = Annotated[str | None, _flag(OUTPUT, "NAME", "terminal, json, csv, markdown or html. Default terminal.")]
MaxCost = Annotated[str | None, _flag(LIMITS, "USD", "Exit 7 when the high cost is above.")]
MaxDays = Annotated[str | None, _flag(LIMITS, "DAYS", "Exit 7 when the high duration is above.")]
MaxEnergy = Annotated[str | None, _flag(LIMITS, "MWH", "Exit 7 when the high energy is above.")]
