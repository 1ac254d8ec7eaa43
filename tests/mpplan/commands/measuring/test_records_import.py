"""`mpplan records import`: from files of other tools to a record, rows to calibrate with, and a plan."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path

import pytest

from planner.validation.runs import COLUMNS, PublishedRun, parse_run
from tests.planner.imported.readings import SAMPLES
from tests.planner.imported.traces import of_products
from tests.planner.nccl_output import output

pytestmark = pytest.mark.usefixtures("nothing_ships")

POWER, STEPS = str(SAMPLES / "nvidia-smi.csv"), str(SAMPLES / "megatron.log")
TRAINED = ("--model", "Llama 3.1 8B", "--precision", "BF16", "--gpus", "2", "--seq-len", "8192")


def test_a_file_becomes_a_record_that_check_understands(run, home) -> None:
    result = run("records", "import", POWER, "--steps", STEPS, "-o", "power.jsonl")

    assert result.code == 0, result.err
    assert "wrote power.jsonl" in result.err
    assert "doubt     sampled every 1 s" in result.out
    checked = run("check", "power.jsonl")
    assert checked.code == 0
    assert "1 point imported from nvidia-smi, not measured by mpplan" in checked.out
    assert "`mpplan probe` on such a machine" in checked.out


def test_the_answer_as_json_names_each_file_with_its_hash_and_its_doubts(run, home) -> None:
    document = json.loads(run("records", "import", POWER, "--steps", STEPS, "--json").out)

    (file,) = document["files"]
    assert (document["schema"], document["record"], document["gpu"]) == ("mpplan.import/1", None, "h100-sxm5-80gb")
    assert (file["file"], file["tool"], file["date"]) == ("nvidia-smi.csv", "nvidia-smi", "2026-11-20T10:00:00")
    assert len(file["sha256"]) == 64
    (point,) = document["points"]
    assert (point["kind"], point["power_w"]) == ("training", pytest.approx(610.0, abs=0.5))
    assert str(SAMPLES) not in json.dumps(document)


def test_without_a_name_nothing_is_written_and_that_is_said(run, home) -> None:
    result = run("records", "import", POWER, "--steps", STEPS)

    assert (result.code, list(home.glob("*.jsonl"))) == (0, [])
    assert "warning: nothing was written" in result.err


def test_nothing_that_is_there_is_written_over(run, home) -> None:
    Path("mine.jsonl").write_text("a measurement\n", encoding="utf-8")

    result = run("records", "import", POWER, "--steps", STEPS, "-o", "mine.jsonl")

    assert result.code == 2
    assert "exists already" in result.err
    assert Path("mine.jsonl").read_text(encoding="utf-8") == "a measurement\n"


def test_a_packed_record_goes_to_a_packed_file_and_a_record_to_stdout(run, home) -> None:
    arguments = ("records", "import", POWER, "--steps", STEPS)
    assert run(*arguments, "-o", "power.jsonl.gz").code == 0

    printed = run(*arguments, "-o", "-").out

    packed = gzip.decompress(Path("power.jsonl.gz").read_bytes()).decode()
    assert [json.loads(text)["probe_id"] for text in (printed, packed)] == [
        "training/step/nvidia-smi-" + json.loads(packed)["imported_sha256"][:8]
    ] * 2


def test_rows_for_calibrate_have_the_columns_of_its_template_and_what_was_measured(run, home) -> None:
    result = run("records", "import", POWER, "--steps", STEPS, *TRAINED, "--runs", "runs.csv")

    assert result.code == 0, result.err
    with Path("runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) <= set(COLUMNS)
    assert [(row["metric"], float(row["value"])) for row in rows] == [
        ("step_time_s", pytest.approx(2.004, abs=0.005)), ("avg_gpu_power_w", pytest.approx(610.0, abs=0.5)),
    ]  # fmt: skip
    for row in rows:
        parsed = parse_run(row)
        assert isinstance(parsed, PublishedRun)
        assert (parsed.model, parsed.precision, parsed.gpu, parsed.n_gpus) == (
            "llama-3.1-8b", "bf16", "h100-sxm5-80gb", 2,
        )  # fmt: skip
        assert (parsed.seq_len, parsed.global_batch_seqs, parsed.framework) == (8192, 128, "Megatron-LM")
        assert (row["source"], "sampled every 1 s" in row["notes"]) == ("nvidia-smi: nvidia-smi.csv", True)


def test_a_row_asks_for_what_it_lacks(run, home) -> None:
    result = run("records", "import", POWER, "--steps", STEPS, "--model", "llama-3.1-8b", "--runs", "runs.csv")

    assert result.code == 2
    assert "--precision, --gpus, --seq-len must be known to make a row" in result.err
    assert not Path("runs.csv").exists()


def test_a_batch_that_the_log_contradicts_is_a_usage_error(run, home) -> None:
    result = run("records", "import", POWER, "--steps", STEPS, "--global-batch", "256")

    assert result.code == 2
    assert "the log of steps says 128, not 256" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((POWER,), 2, "which does not say which steps ran"),
        (("missing.csv",), 2, "cannot read `missing.csv`"),
        ((STEPS,), 3, "megatron.log:1: expected a file of a known tool"),
        ((POWER, "--as", "zeus"), 3, "nvidia-smi.csv:1: start_time: expected a column"),
        ((POWER, "--as", "smi"), 2, "--as: unknown format `smi`"),
        ((POWER, POWER, "--steps", STEPS), 2, "has the same content as `nvidia-smi.csv`"),
        ((str(SAMPLES / "zeus.csv"),), 2, "no file says which GPU was measured"),
        ((str(SAMPLES / "zeus.csv"), "--gpu", "h1000"), 2, "unknown GPU `h1000`"),
        ((str(SAMPLES / "zeus.csv"), "--gpu", "h100-sxm5-80gb", "--steps", STEPS), 2, "--steps has no effect on"),
        ((POWER, "--steps", POWER), 3, "expected a log of training"),
        ((POWER, "--steps", STEPS, "--gpu", "b200-sxm-180gb"), 3, "expected a file of `b200-sxm-180gb`"),
        ((POWER, "--steps", STEPS, "--utc-offset", "here"), 2, "--utc-offset"),
        ((POWER, "--steps", STEPS, "--precision", "bf17"), 2, "--precision: unknown `bf17`"),
        ((POWER, "--steps", STEPS, "--gpus", "0"), 2, "--gpus"),
        ((POWER, "--steps", STEPS, "-o", "power.csv"), 2, "a record ends in `.jsonl`"),
        ((POWER, "--steps", STEPS, "-o", "-", "--json"), 2, "only one answer can go to stdout"),
    ],
)
def test_what_is_wrong_is_said_with_the_exit_code_of_its_kind(
    run, home, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = run("records", "import", *arguments)

    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "hint: " in result.err


def test_names_that_would_obey_on_a_terminal_are_shown(run, home) -> None:
    shutil.copy(SAMPLES / "zeus.csv", "ze\x1b[31mus.csv")

    result = run("records", "import", "ze\x1b[31mus.csv", "--gpu", "h100-sxm5-80gb", "-o", "z.jsonl")

    assert result.code == 0, result.err
    assert "\x1b" not in result.out + result.err + Path("z.jsonl").read_text(encoding="utf-8")


def test_the_list_names_the_tool_and_marks_no_imported_record_as_used(run, home) -> None:
    from planner.records.home import records_dir

    Path("trace.json").write_bytes(of_products().written())
    records_dir().mkdir(parents=True)
    assert run("records", "import", "trace.json", "-o", str(records_dir() / "trace.jsonl")).code == 0

    listed = run("records", "list").out.splitlines()[1].split()
    (entry,) = json.loads(run("records", "list", "--json").out)["records"]
    shown = run("records", "show", "trace").out

    assert (listed[0], listed[-1]) == ("trace", "torch-trace")
    assert (entry["imported"], entry["used"]) == ("torch-trace", False)
    assert "imported  torch-trace: trace.json, SHA-256" in shown


ASKED = ("estimate", "--model", "llama-3.1-8b", "--gpus", "16", "--tp", "1", "--pp", "1", "--precision", "bf16",
         "--gpu", "h100-sxm5-80gb", "--json")  # fmt: skip


def test_a_plan_rests_on_an_imported_trace_and_says_that_it_was_imported(run, home) -> None:
    Path("trace.json").write_bytes(of_products().written())
    run("records", "import", "trace.json", "-o", "trace.jsonl")

    document = json.loads(run(*ASKED, "--records", "trace.jsonl").out)

    assert any("imported from another tool" in warning for warning in document["warnings"])
    assert [entry["source"] for entry in document["evidence"] if "torch-trace" in entry["source"]] == [
        "torch-trace (trace.json)"
    ]


def test_the_record_of_a_networks_times_plans_as_their_file_does(run, home) -> None:
    Path("nccl.txt").write_text(output("all_reduce", 2, 8, lambda size: 3e-5 + size / 2e11), encoding="utf-8")
    run("records", "import", "nccl.txt", "-o", "nccl.jsonl")

    plans = [json.loads(run(*ASKED, "--network-file", name).out)["plans"] for name in ("nccl.txt", "nccl.jsonl")]

    assert plans[0][0]["step_s"] == plans[1][0]["step_s"]


def test_a_record_of_training_alone_gives_no_rates_and_the_hint_says_what_it_is_for(run, home) -> None:
    run("records", "import", POWER, "--steps", STEPS, "-o", "r.jsonl")

    result = run(*ASKED, "--records", "r.jsonl")

    assert result.code == 3
    assert "r.jsonl:1: kind: expected kernels or collectives between GPUs, found only training" in result.err
    assert "mpplan calibrate" in result.err


def test_a_record_of_collectives_alone_gives_the_network_and_leaves_the_rates_of_the_gpu(run, home) -> None:
    Path("nccl.txt").write_text(output("all_reduce", 4, 8, lambda size: 3e-5 + size / 1e10), encoding="utf-8")
    run("records", "import", "nccl.txt", "-o", "r.jsonl")

    plain, own = (json.loads(run(*ASKED, *extra).out) for extra in ((), ("--records", "r.jsonl")))
    sources = {row["source"]: row["kind"] for row in own["evidence"]}

    assert sources["nccl-tests, record r"] == "measured"
    assert not any("planned from" in text for text in own["warnings"])
    assert own["plans"][0]["products"] == plain["plans"][0]["products"]
