"""`mpplan calibrate`: from a file of own runs to a calibration that plans and validations use; what it refuses."""

from __future__ import annotations

import json

import jsonschema
import pytest

from mpplan.commands.planning.calibrate import _shown
from mpplan.ui.schema import file_of
from tests.mpplan.commands.planning.test_validate import ROW, text
from tests.planner.recorded import kernels, write_record

pytestmark = pytest.mark.usefixtures("nothing_ships")

OWN = ROW | {"act_ckpt": "none", "pair": "", "group": ""}
SPEEDS = {8: 6000.0, 16: 5850.0, 32: 5700.0}


def own_run(gpus: int, speed: float, **cells: str) -> dict[str, str]:
    batch = str(gpus)
    return OWN | {"id": f"r{gpus}", "n_gpus": str(gpus), "global_batch_seqs": batch, "value": str(speed)} | cells


@pytest.fixture
def file(home):
    def write(*rows: dict[str, str], name: str = "my-runs.csv") -> str:
        (home / name).write_text(text(*rows), encoding="utf-8")
        return name

    return write


@pytest.fixture
def three(file):
    return file(*(own_run(gpus, speed) for gpus, speed in SPEEDS.items()))


def test_it_says_in_words_what_it_learned_and_writes_the_file(run, three, home):
    result = run("calibrate", three, "-o", "our-stack.json")

    assert result.code == 0
    assert "Learned from 3 runs of my-runs.csv on h100-sxm5-80gb" in result.out
    assert "most teams" in result.out
    assert "For runs like these, the range of the speed is" in result.out
    assert "error before" in result.out
    assert "wrote our-stack.json" in result.err
    assert json.loads((home / "our-stack.json").read_text())["schema"] == "mpplan.calibration/1"


def test_json_has_every_row_before_after_and_left_out(run, three):
    document = json.loads(run("calibrate", three, "--json", "--quiet").out)

    assert document["runs"] == 3
    assert [row["id"] for row in document["rows"]] == ["r8", "r16", "r32"]
    for row in document["rows"]:
        after, left_out, before = (abs(row[f"error_{when}"]) for when in ("after", "left_out", "before"))
        assert after < left_out < before
    assert all(isinstance(entry["words"], str) and entry["words"] for entry in document["learned"])


def test_the_document_agrees_with_its_schema(run, file, home):
    runs = file(*(own_run(gpus, speed, gpu="h200-sxm-141gb") for gpus, speed in SPEEDS.items()))
    write_record(home / "h200.jsonl", *kernels())
    document = json.loads(run("calibrate", runs, "--records", "h200.jsonl", "--json", "--quiet").out)

    assert (document["stacks"], document["mixtures"], document["images"]) == (["fsdp-compile"], [False], [False])
    jsonschema.validate(document, json.loads(file_of("mpplan.calibration/1").read_text(encoding="utf-8")))


@pytest.mark.parametrize("record", [(), ("--records", "h200.jsonl")])
def test_the_errors_are_those_that_a_validation_prints(run, file, home, record):
    runs = file(*(own_run(gpus, speed, gpu="h200-sxm-141gb") for gpus, speed in SPEEDS.items()))
    write_record(home / "h200.jsonl", *kernels())
    document = json.loads(run("calibrate", runs, "--json", "--quiet", "-o", "our-stack.json", *record).out)

    for name, given in (("error_before", ()), ("error_after", ("--calibration", "our-stack.json"))):
        validated = json.loads(run("validate", runs, "--json", "--quiet", *given, *record).out)["runs"]
        told = [f"{row[name]:+.1%}" for row in document["rows"]]
        assert told == [f"{row['error_ratio']:+.1%}" for row in validated]


def test_a_plan_made_with_it_is_nearer_to_the_own_runs_and_names_it(run, three):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")
    question = ("--model", "llama-3-8b", "--gpus", "16", "--tokens", "10B", "--seq-len", "8192", "--json", "--quiet")

    plain = json.loads(run("estimate", *question).out)
    calibrated = json.loads(run("estimate", *question, "--calibration", "our-stack.json").out)

    named = [row for row in calibrated["evidence"] if "our-stack.json: learned from 3 own runs" in row["source"]]
    assert named
    # own runs say what the stack makes of a rate; the rate of the GPU itself was still measured by others
    assert {row["kind"] for row in named if row["id"].startswith("parameter:")} == {"measured"}
    assert {row["kind"] for row in named if row["id"].startswith("rate:")} <= {"published"}
    assert "calibrated on 3 of your own runs from `my-runs.csv` (`our-stack.json`)" in calibrated["warnings"]
    assert calibrated["question"]["calibration"]["value"] == "our-stack.json"
    speeds = [doc["plans"][0]["tokens_per_s_per_gpu"] for doc in (plain, calibrated)]
    assert speeds[0]["mid"] != speeds[1]["mid"]


def test_a_page_of_a_calibrated_plan_does_not_say_that_the_gpu_was_measured(run, three, home):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")
    run("estimate", "--model", "llama-3-8b", "--gpus", "16", "--calibration", "our-stack.json", "--report", "plan.html")

    page = (home / "plan.html").read_text(encoding="utf-8")
    assert "Speeds measured on this" not in page
    assert "none of our own" not in page
    assert "Speeds adjusted to 3 of your own runs" in page
    assert "Learned from your own runs" in page


def test_a_plan_for_another_gpu_says_what_the_calibration_does_not_know(run, three):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")

    result = run(
        "estimate",
        "--params",
        "7B",
        "--gpus",
        "8",
        "--gpu",
        "a100-sxm4-80gb",
        "--json",
        "--calibration",
        "our-stack.json",
    )

    assert any("the calibration was learned on H100 SXM5 80 GB" in line for line in json.loads(result.out)["warnings"])


def test_lines_that_are_left_out_are_counted():
    learned = [{"words": f"term {number}", "bounded": False} for number in range(12)]

    text = _shown(
        {"runs": 1, "source": "a.csv", "gpus": [], "records": [], "total": [], "learned": learned, "width_ratio": {},
         "rows": []}
    )  # fmt: skip

    assert "  - term 9\n  … and 2 lines more; --json has all\n" in text


def test_a_report_tells_of_its_own_gpu_alone(run, file):
    rows = [own_run(gpus, 5000.0) for gpus in (16, 32, 64)]
    rows += [own_run(gpus, 3900.0, id=f"a{gpus}", gpu="a100-sxm4-80gb") for gpus in (16, 32, 64)]
    shown = run("calibrate", file(*rows), "-o", "two.json").out
    question = ("--model", "llama-3-8b", "--gpus", "16", "--calibration", "two.json", "--json", "--quiet")

    for gpu in ("h100-sxm5-80gb", "a100-sxm4-80gb"):
        document = json.loads(run("estimate", *question, "--gpu", gpu).out)
        told = [
            entry["words"] for entry in document["calibration"]["learned"] if "particular to the GPU" in entry["words"]
        ]
        assert [f"step time particular to the GPU {gpu}" in words for words in told] == [True]
        assert told[0] in shown


def test_validation_of_other_gpus_or_with_another_version_s_file_is_warned_about(run, three, home):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")
    document = json.loads((home / "our-stack.json").read_text(encoding="utf-8"))
    (home / "older.json").write_text(json.dumps(document | {"mpplan": "0.0.9"}), encoding="utf-8")
    other = home / "other.csv"
    other.write_text((home / three).read_text(encoding="utf-8").replace("h100-sxm5-80gb", "a100-sxm4-80gb"), "utf-8")

    far = run("validate", "other.csv", "--calibration", "our-stack.json").err
    older = run("validate", three, "--calibration", "older.json").err
    planned = json.loads(run("estimate", "--params", "7B", "--gpus", "8", "--calibration", "older.json", "--json").out)

    assert "warning: the calibration was learned on H100 SXM5 80 GB: for A100 SXM4 80 GB it says" in far
    assert "was learned on" not in older
    for told in (older, " ".join(planned["warnings"])):
        assert "`older.json` was written by mpplan 0.0.9, and this is " in told


def test_a_file_of_very_many_repeats_is_written_small_and_read_back(run, file, home):
    rows = [own_run(8, 4000.0 + 10.0 * number, id=f"n{number}") for number in range(400)]
    run("calibrate", file(*rows), "-o", "many.json", "--quiet")

    assert (home / "many.json").stat().st_size < 400 * 600 + 200_000
    assert run("validate", file(own_run(8, 7000.0)), "--calibration", "many.json", "--quiet").code == 0


def test_validation_with_it_is_nearer_to_the_runs_it_learned_from(run, three):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")

    plain = json.loads(run("validate", three, "--json", "--quiet").out)["runs"]
    calibrated = json.loads(run("validate", three, "--json", "--quiet", "--calibration", "our-stack.json").out)["runs"]

    assert sum(abs(row["error_ratio"]) for row in calibrated) < 0.7 * sum(abs(row["error_ratio"]) for row in plain)
    for before, after in zip(plain, calibrated, strict=True):
        assert after["high"] / after["low"] < before["high"] / before["low"]


def test_learning_from_part_of_a_file_is_reported_by_lineage(run, file):
    rows = [
        own_run(gpus, 7000.0, id=f"{name}{gpus}", lineage=name, group="throughput")
        for name in ("us", "them")
        for gpus in (8, 16, 32, 64, 128)
    ]

    document = json.loads(run("validate", file(*rows), "--learn", "2", "--seed", "3", "--json", "--quiet").out)

    assert document["learning"]["seed"] == 3
    assert [entry["lineage"] for entry in document["learning"]["lineages"]] == ["them", "us"]
    assert sum(row["learned_from"] for row in document["runs"]) == 4
    assert document["summary"]["one_vote_a_lineage"]["throughput"]["lineages"] == 2
    shown = run("validate", "my-runs.csv", "--learn", "2", "--quiet").out
    assert "Learned from 2 rows of each lineage and figure" in shown
    assert "Learned from 1 row of each" in run("validate", "my-runs.csv", "--learn", "1", "--quiet").out
    assert "mean over lineages" in shown


def test_learning_and_a_calibration_together_are_refused(run, three):
    result = run("validate", three, "--learn", "1", "--calibration", "x.json")

    assert result.code == 2
    assert "error: --calibration and --learn both say what is learned" in result.err


def test_what_a_record_of_the_gpu_measured_is_used_and_named(run, file, home):
    h200 = {"gpu": "h200-sxm-141gb"}
    runs = file(*(own_run(gpus, speed, **h200) for gpus, speed in SPEEDS.items()))
    write_record(home / "h200.jsonl", *kernels())

    result = run("calibrate", runs, "--records", "h200.jsonl", "-o", "our-stack.json")
    used = run("validate", runs, "--calibration", "our-stack.json", "--records", "h200.jsonl", "--json")
    unused = run("validate", runs, "--calibration", "our-stack.json", "--json")

    assert "in addition to what was measured on the GPUs themselves: h200\n" in result.out
    assert "plan with `mpplan estimate --calibration our-stack.json --records h200.jsonl …`" in result.err
    assert json.loads((home / "our-stack.json").read_text())["records"][0]["record"] == "h200"
    mids = [json.loads(made.out)["runs"][0]["mid"] for made in (used, unused)]
    assert mids[0] != mids[1]
    assert "was learned with" not in used.err
    assert "`our-stack.json` was learned with h200 of H200 SXM 141 GB, which this plan does not use" in unused.err


def test_rows_to_learn_from_are_predicted_with_a_record_that_is_named(run, file, home):
    rows = [own_run(gpus, 7000.0, gpu="h200-sxm-141gb", group="throughput") for gpus in (8, 16, 32, 64, 128)]
    runs = file(*rows)
    write_record(home / "h200.jsonl", *kernels())

    plain, recorded = (
        json.loads(run("validate", runs, "--learn", "2", "--json", "--quiet", *given).out)["learning"]["lineages"][0]
        for given in ((), ("--records", "h200.jsonl"))
    )

    assert plain["before"] != recorded["before"]
    assert plain["after"] != recorded["after"]


def test_one_row_is_enough(run, file):
    assert "Learned from 1 run of" in run("calibrate", file(own_run(8, 7000.0))).out
    result = run("calibrate", "my-runs.csv", "--json", "--quiet")

    assert result.code == 0
    assert json.loads(result.out)["width_ratio"]["time"] < 1.0


@pytest.mark.parametrize(("metric", "value"), [("tokens_per_s_per_gpu", "6000"), ("gpu_hours", "4500")])
def test_without_the_only_run_its_prediction_is_the_one_before(run, file, metric, value):
    only = own_run(32, 0.0, metric=metric, value=value, tokens_total="100B")
    (row,) = json.loads(run("calibrate", file(only), "--json", "--quiet").out)["rows"]

    assert row["error_left_out"] == pytest.approx(row["error_before"], abs=1e-4)
    assert abs(row["error_after"]) < abs(row["error_before"])


def test_rows_whose_batch_cannot_be_on_their_gpus_are_not_learned_from(run, file):
    rows = [
        own_run(64, 5600.0),
        own_run(64, 5600.0, id="few", global_batch_seqs="7", micro_batch=""),
        own_run(64, 5600.0, id="micro", global_batch_seqs="128", micro_batch="16"),
        own_run(64, 5600.0, id="uneven", global_batch_seqs="130"),
    ]
    result = run("calibrate", file(*rows), "--json")

    assert [row["id"] for row in json.loads(result.out)["rows"]] == ["r64", "uneven"]
    assert (
        "few: global_batch_seqs: 64 data-parallel ranks need at least 64 sequences per step; 7 is too few" in result.err
    )
    assert "micro: global_batch_seqs: 64 data-parallel ranks with micro_batch 16 need at least 1,024" in result.err
    assert "uneven: global_batch_seqs: 130 sequences do not divide evenly" in result.err
    assert "predicted with 128" in result.err


def test_the_template_is_an_empty_file_that_the_program_reads(run, home):
    template = run("calibrate", "--template").out
    columns = template.splitlines()[-1].split(",")
    filled = template + ",".join(own_run(8, 7000.0).get(name, "") for name in columns) + "\n"
    (home / "filled.csv").write_text(filled, encoding="utf-8")

    assert template.startswith("# id: ")
    result = run("calibrate", "filled.csv", "--json", "--quiet")
    assert (result.code, json.loads(result.out)["runs"]) == (0, 1)


def test_the_template_goes_where_it_was_told_to(run, home):
    printed, written = run("calibrate", "--template"), run("calibrate", "--template", "-o", "runs.csv")

    assert (written.code, written.out) == (0, "")
    assert (home / "runs.csv").read_text(encoding="utf-8") == printed.out


def test_an_empty_template_is_refused(run, home):
    (home / "empty.csv").write_text(run("calibrate", "--template").out, encoding="utf-8")

    result = run("calibrate", "empty.csv")

    assert result.code == 3
    assert "expected a row, found none" in result.err
    assert "hint: add a line per run of your own" in result.err


def test_a_header_without_its_columns_is_refused_with_the_page_on_own_runs(run, home):
    (home / "runs.csv").write_text("id,model\nmine,llama-3-8b\n", encoding="utf-8")

    result = run("calibrate", "runs.csv")

    assert result.code == 3
    assert "docs/calibrating.md describes them" in result.err


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        ({"n_gpus": "1024", "global_batch_seqs": "1024", "value": "7168000"}, "is this the cluster's rate?"),
        ({"metric": "step_time_s", "value": "1200"}, "is it in milliseconds?"),
        ({"metric": "peak_mem_gib", "mem_kind": "reserved", "value": "65000"}, "is it in MiB?"),
        ({"metric": "mfu", "value": "41"}, "is it in percent?"),
        ({"value": "3"}, "check the value, its unit and the configuration"),
    ],
)
def test_a_slip_of_the_unit_is_refused_with_the_row_and_what_would_explain_it(run, file, home, cells, hint):
    result = run("calibrate", file(own_run(8, 7000.0) | cells), "-o", "out.json")

    assert result.code == 3
    assert "my-runs.csv: r8: value:" in result.err
    assert hint in result.err
    assert not (home / "out.json").exists()


def test_a_value_of_zero_is_refused_as_what_it_is(run, file):
    result = run("calibrate", file(own_run(8, 0.0)))

    assert result.code == 3
    assert "no run can be learned from: r8: value: 0.0 must be above 0" in result.err


def test_rows_that_fail_alike_are_told_of_together(run, file):
    odd = [own_run(gpus, 7000.0, gpu="h100") for gpus in (16, 32)]
    result = run("calibrate", file(own_run(8, 7000.0), *odd))

    assert (
        "not learned from: r16, r32: GPU `h100` matches several models; say which one: `h100-pcie-80gb`" in result.err
    )
    alone = run("calibrate", file(*odd))
    assert "no run can be learned from: r16 and 1 row more: GPU `h100` matches several models" in alone.err


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "fast", "", "OOM"])
def test_a_value_that_is_no_number_is_refused_where_it_is_the_only_row(run, file, value):
    result = run("calibrate", file(own_run(8, 1.0) | {"value": value}))

    assert result.code == 3
    assert "no run can be learned from: r8" in result.err


def test_rows_that_cannot_teach_are_named_and_the_others_learned_from(run, file):
    result = run("calibrate", file(own_run(8, 7000.0), own_run(16, 7000.0, gpu="abacus")), "--json")

    assert json.loads(result.out)["runs"] == 1
    assert "not learned from: r16" in result.err


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_words_that_count_as_blank_are_named_with_row_and_column(run, file, command):
    odd = {"act_ckpt": "yes", "zero_or_fsdp_stage": "9", "compile": "True"}
    name = file(*(own_run(gpus, speed, **(odd if gpus > 8 else {})) for gpus, speed in SPEEDS.items()))

    result = run(command, name)

    assert result.code == 0
    assert "warning: r16, r32: act_ckpt: `yes` is not known: treated as blank\n" in result.err
    assert "warning: r16, r32: zero_or_fsdp_stage: `9` is not known: treated as blank\n" in result.err
    assert "compile" not in result.err


@pytest.mark.parametrize("command", ["calibrate", "validate"])
@pytest.mark.parametrize("value", ["1e-300", "1e300", "1e-10", "9" * 300, "1e-13"])
def test_a_value_that_no_run_has_is_told_in_a_few_words(run, file, command, value):
    name = file(own_run(8, 6000.0, value=value))

    result = run(command, name)

    assert len(result.out) < 3000
    assert max((len(line) for line in (result.out + result.err).splitlines()), default=0) < 300


def test_rows_that_contradict_each_other_are_named(run, file):
    result = run("calibrate", file(own_run(8, 7000.0), own_run(8, 9500.0, id="again")))

    assert "r8: disagrees with again for the same configuration" in result.err
    assert "again: disagrees with r8 for the same configuration" in result.err


def test_several_teams_in_one_file_are_refused(run, file):
    result = run("calibrate", file(own_run(8, 7000.0, lineage="us"), own_run(16, 7000.0, lineage="them")))

    assert result.code == 3
    assert "expected the runs of one team, found 2: them, us" in result.err


def test_no_file_is_a_clear_error(run):
    result = run("calibrate")

    assert result.code == 2
    assert "hint: `mpplan calibrate --template > my-runs.csv`" in result.err


def test_a_plan_refuses_what_is_no_calibration(run, three):
    result = run("estimate", "--params", "7B", "--calibration", three)

    assert result.code == 3
    assert "error: my-runs.csv:1: expected JSON" in result.err
    assert "Traceback" not in result.err


def test_a_configuration_file_may_name_it(run, three, home):
    run("calibrate", three, "-o", "our-stack.json", "--quiet")
    (home / "mpplan.toml").write_text('[estimate]\ncalibration = "our-stack.json"\n', encoding="utf-8")

    document = json.loads(run("estimate", "--params", "7B", "--gpus", "8", "--json", "--quiet").out)

    assert document["question"]["calibration"]["source"] == "file"


def test_the_python_interface_takes_it(run, three):
    from mpplan import estimate

    run("calibrate", three, "-o", "our-stack.json", "--quiet")
    answer = estimate(model="llama-3-8b", gpus=8, tokens="10B", calibration="our-stack.json")

    assert any("our-stack.json" in row.source for row in answer.evidence)
