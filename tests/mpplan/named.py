"""Questions in which everything that a user may name has one word in it, for tests of what leaves and is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from planner.records.flat import nest
from planner.records.jsonl import to_line
from planner.text import one_line
from tests.mpplan.commands.planning.test_validate import ROW, text
from tests.planner.nccl_output import output
from tests.planner.recorded import H200, kernels
from tests.planner.safety.recorded import PATH as RECORDED

GPU = "h200-sxm-141gb"
MODEL = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip


PLACES = (
    "model", "model folder", "vendor", "quote file", "quote region", "tariff", "tariff file", "beside file", "own file",
    "network file", "host", "device", "records file", "run id", "torch", "runs file", "runs id", "runs cells",
    "calibration", "provider", "region", "instance", "price source", "price notes",
    "numerics file", "numerics task", "numerics device", "numerics layer", "numerics words",
)  # fmt: skip
"""Every place that a user names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the user calls things: one word, with the number of the place behind it."""

    word: str

    def __call__(self, place: str) -> str:
        """The name in a place."""
        return f"{self.word}{PLACES.index(place)}"

    def file(self, place: str, suffix: str) -> str:
        """A file's name in a place: the word without what no file system takes."""
        return "".join(c for c in self(place) if c not in "/\0") + suffix

    def path(self, home: Path, place: str, suffix: str) -> Path:
        """A file in a folder of its own, so that all may have one name."""
        folder = home / place.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        return folder / self.file(place, suffix)


def quoted(home: Path, names: Names) -> tuple[str, ...]:
    """Arguments of a question about the user's own model, billed by an offer under a tariff, with costs beside it."""
    return (
        "--model", _model(home, names), "--gpu", GPU, "--gpus", "16", "--tokens", "20B", "--embodied",
        "--quote", _quote(home, names), "--tariff", _tariff(home, names), "--beside", _beside(home, names),
        "--numerics", _numerics(home, names),
    )  # fmt: skip


def measured(home: Path, names: Names) -> tuple[str, ...]:
    """Arguments of a question about own machines, with the user's own record, network and runs.

    `calibrated` has to be run first.
    """
    return (
        "--model", _model(home, names), "--gpu", GPU, "--gpus", "16", "--tokens", "20B", "--max-days", "9000",
        "--own", _own(home, names), "--network-file", _network(home, names), "--records", _record(home, names),
        "--calibration", names.file("calibration", ".json"),
    )  # fmt: skip


def calibrated(home: Path, names: Names) -> tuple[str, ...]:
    """Arguments of the calibration that `measured` uses."""
    cells = {name: names("runs cells") for name in ("framework", "group", "pair", "notes", "source")}
    own = ROW | cells | {"act_ckpt": "none", "gpu": GPU}
    rows = [
        own | {"id": f"{names('runs id')}{gpus}", "n_gpus": str(gpus), "global_batch_seqs": str(gpus), "value": "7000"}
        for gpus in (8, 16)
    ]
    file = home / names.file("runs file", ".csv")
    file.write_text(text(*rows), encoding="utf-8")
    return ("calibrate", file.name, "-o", names.file("calibration", ".json"), "--quiet")


def booked(home: Path, names: Names) -> tuple[str, ...]:
    """Arguments of a question about a provider and a region of the user's own prices; `added` has to be run first."""
    return (
        "--model", _model(home, names), "--gpu", GPU, "--gpus", "16", "--tokens", "20B",
        "--provider", one_line(names("provider")), "--region", one_line(names("region")),  # as the book keeps them

    )  # fmt: skip


def added(names: Names) -> tuple[str, ...]:
    """Arguments that add the row of `booked` to the price book."""
    return (
        "prices", "add", "--gpu", GPU, "--price", "2.5", "--provider", names("provider"), "--region", names("region"),
        "--instance", names("instance"), "--source", names("price source"), "--notes", names("price notes"),
        "--date", "2026-11-20",
    )  # fmt: skip


def _model(home: Path, names: Names) -> str:
    folder = home / names.file("model folder", "")
    folder.mkdir(exist_ok=True)
    file = folder / "config.json"
    file.write_text(json.dumps(MODEL | {"_name_or_path": f"x/{names.file('model', '')}"}), encoding="utf-8")
    return str(file)


def toml(value: str) -> str:
    """A value as a TOML string."""
    return json.dumps(value)


def _quote(home: Path, names: Names) -> str:
    file = names.path(home, "quote file", ".toml")
    file.write_text(
        f'vendor = {toml(names("vendor"))}\nregion = {toml(names("quote region"))}\ngpu = "{GPU}"\n'
        'price_per_gpu_h = 2.5\ncommitment = "1y"\nminimum_term = "90d"\nminimum_gpus = 32\nsetup_fee = 1000\n'
        "valid_until = 2020-01-01\n",
        encoding="utf-8",
    )
    return str(file)


def _tariff(home: Path, names: Names) -> str:
    file = names.path(home, "tariff file", ".toml")
    file.write_text(
        f"name = {toml(names('tariff'))}\n[[period]]\nfrom = 0\nto = 12\nusd_per_kwh = 0.05\n"
        "[[period]]\nfrom = 12\nto = 24\nusd_per_kwh = 0.15\n",
        encoding="utf-8",
    )
    return str(file)


def _beside(home: Path, names: Names) -> str:
    file = names.path(home, "beside file", ".toml")
    file.write_text("[experiments]\nratio = 0.2\n[hosts]\ncount = 2\nusd_per_h = 1.5\n", encoding="utf-8")
    return str(file)


def _own(home: Path, names: Names) -> str:
    file = names.path(home, "own file", ".toml")
    file.write_text("[capital]\nserver_usd_per_gpu = 30000\n[people]\nstaff_ratio = 0.2\n", encoding="utf-8")
    return str(file)


def _numerics(home: Path, names: Names) -> str:
    """What training showed, as anybody may write it: also what mpplan calls by words of its own has a name."""
    file = names.path(home, "numerics file", ".json")
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    document["device_name"] = names("numerics device")
    for task in document["tasks"]:
        task["id"] = names("numerics task")
    for part in ("loss_scaling", "histograms", "parity", "sensitivity", "policy", "schedule"):
        for row in document[part]:
            row["task"] = names("numerics task")
    document["parity"][0]["baseline"] = names("numerics words")
    for pair in document["parity"][0]["pairs"]:
        pair["baseline"] = names("numerics words")
    for row in (layer for part in document["sensitivity"] for layer in part["layers"]):
        row["layers"][0] = names("numerics layer")
    for scale in document["loss_scaling"][0]["dynamic"]:
        scale["name"] = names("numerics words")
    file.write_text(json.dumps(document), encoding="utf-8")
    return str(file)


def _network(home: Path, names: Names) -> str:
    file = names.path(home, "network file", ".txt")
    device = f"NVIDIA H200 {names('device')}"
    times = {2: 1e-4, 4: 2e-4}
    printed = "".join(
        output("all_reduce", nodes, 8, lambda size, floor_s=floor_s: floor_s + size / 2e10, device=device)
        for nodes, floor_s in times.items()
    )
    file.write_text(printed.replace("host-", names.file("host", "-")), encoding="utf-8")
    return str(file)


def _record(home: Path, names: Names) -> str:
    file = names.path(home, "records file", ".jsonl")
    named = {"run_id": names("run id"), "torch_version": names("torch"), "hostname": names("host")}
    lines = [json.loads(to_line(point)) | {"run_id": named["run_id"]} for point in kernels()]
    points = [nest(line | H200 | {"torch_version": named["torch_version"]}) for line in lines]
    file.write_text("".join(to_line(point) + "\n" for point in points), encoding="utf-8")
    return str(file)


def asked(home: Path, names: Names, run: Callable[..., str]) -> dict[str, str]:
    """The answers to all of these questions, as `mpplan estimate --json` prints them.

    Args:
        home: an empty folder, the current one.
        names: what things are called.
        run: runs `mpplan` with these arguments and gives what it printed on stdout.
    """
    run(*calibrated(home, names))
    run(*added(names))
    questions = {"quoted": quoted, "measured": measured, "booked": booked}
    return {name: run("estimate", *question(home, names), "--json") for name, question in questions.items()}
