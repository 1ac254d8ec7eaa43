"""Every framework of `mpplan export --launch`, over a grid of real plans: its own settings, and what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mpplan import estimate
from mpplan.api.document import to_document
from planner.errors import UsageError
from reports.launch import FRAMEWORKS, find_framework, launch_file
from reports.launch.planned_run import planned_run
from tests.reports.launch.grid import GRID, documents, files
from tests.reports.launch.recorded import SCHEMAS, recorded, refusals, settings

ROOT = Path(__file__).parents[2]
NAMES = [framework.name for framework in FRAMEWORKS]


@pytest.fixture(scope="module")
def written() -> dict[str, dict[str, str]]:
    """Files of the grid by framework and plan."""
    made: dict[str, dict[str, str]] = {name: {} for name in NAMES}
    for name, framework, text, _ in files():
        made[framework][name] = text
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_framework_takes_every_setting_that_is_written_for_it(written, name):
    assert len(written[name]) > 100
    assert {plan: faults for plan, text in written[name].items() if (faults := refusals(name, text))} == {}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("megatron", "--bf16", "--bf61"),
        ("megatron", "--train-iters ", "--train-iters x"),
        ("megatron", "--normalization RMSNorm", "--normalization RmsNorm"),
        ("torchtitan", "tensor_parallel_degree", "tensor_parallel_size"),
        ("torchtitan", 'mode = "', 'mode = "every-'),
        ("deepspeed", '"stage"', '"level"'),
        ("deepspeed", '"train_batch_size"', '"train_batch"'),
        ("accelerate", "num_processes", "num_procs"),
        ("accelerate", 'distributed_type: "', 'distributed_type: "NO_'),
        ("accelerate", "fsdp_version: 2", 'fsdp_version: "two"'),
        ("axolotl", "sequence_len", "seq_len"),
        ("axolotl", "auto_wrap_policy", "wrap_policy"),
        ("skypilot", "use_spot", "spot"),
        ("skypilot", "num_nodes: 2", 'num_nodes: "2"'),
    ],
)
def test_a_planted_mistake_is_seen(written, name, right, wrong):
    text = written[name]["dense-fsdp-bf16"]

    assert right in text
    assert refusals(name, text) == []
    assert len(refusals(name, text.replace(right, wrong))) == 1


def test_the_ranks_of_experts_divide_the_gpus_of_a_stage():
    seen: set[tuple[str, bool]] = set()
    for name, framework, text, plan in files():
        if framework not in EXPERT_GRIDS:
            continue
        given = {
            key: value[0] if isinstance(value, list) and value else value for key, value in settings(framework, text)
        }
        whole, split, stages, tensor = (int(given.get(key) or 1) for key in EXPERT_GRIDS[framework])

        assert plan["gpus"] % (whole * split * stages) == 0, (name, framework)
        if whole > 1 and tensor > 1:
            seen.add((framework, split == tensor))
    assert len(seen) == 2 * len(EXPERT_GRIDS)  # experts that tensor parallelism splits, and whole ones beside it


EXPERT_GRIDS = {
    "megatron": ("--expert-model-parallel-size", "--expert-tensor-parallel-size", "--pipeline-model-parallel-size",
                 "--tensor-model-parallel-size"),
    "torchtitan": ("parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree",
                   "parallelism.pipeline_parallel_degree", "parallelism.tensor_parallel_degree"),
}  # fmt: skip
"""Names of the sizes: expert parallel, tensor parallel in an expert, pipeline and tensor parallel.

Megatron: `initialize_model_parallel` of megatron/core/parallel_state.py; torchtitan: `ParallelDims.build_mesh`."""


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=NAMES)
def test_what_the_page_says_a_framework_takes_is_what_its_files_hold(written, framework):
    used = {key for text in written[framework.name].values() for key, _ in settings(framework.name, text)}

    assert {key for taken in framework.takes for key in taken.where} == used


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=NAMES)
def test_every_rule_holds_for_a_plan_of_the_grid_and_not_for_all(framework):
    runs = [
        planned_run(document, precision=plan["precision"], gpu=None, view="plans")
        for _, document in documents()
        for plan in document["plans"]
        if plan["fits"]
    ]
    rules = (*framework.refuses, *framework.leaves_out)

    assert [rule.what for rule in rules if rule.what.endswith(".")] == []
    assert [rule.what for rule in rules if not any(map(rule.applies, runs))] == []
    assert [rule.what for rule in framework.refuses if all(map(rule.applies, runs))] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_settings_say_of_which_release_they_are(name):
    document = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))

    assert re.fullmatch(r"\d{4}-\d\d-\d\d", document["date"])
    assert document["source"] == find_framework(name).source
    release = "v0.19.0" if name == "megatron" else document["release"]
    assert release in find_framework(name).title
    assert len(recorded(name)) > 30


@pytest.mark.parametrize("name", NAMES)
def test_every_file_names_its_plan_and_what_it_leaves_out(written, name):
    text = written[name]["dense-fsdp-bf16"]

    for part in (
        "llama-3-8b",
        "16 x h100-sxm5-80gb on 2 nodes",
        "bf16 (policy bf16-fsdp)",
        "mpplan.estimate/2",
        "predicted to take",
    ):
        assert part in text
    assert "Not in this file:" in text


def test_accelerate_itself_reads_its_files(written, tmp_path):
    pytest.importorskip("accelerate")
    from tools.launching.parsers import refused

    for name, text in written["accelerate"].items():
        gpus = int(re.findall(r"^num_processes: (\d+)$", text, flags=re.MULTILINE)[0])
        (tmp_path / f"{name}.gpus{gpus}.yaml").write_text(text, encoding="utf-8")

    assert refused("accelerate", tmp_path) == []


def test_an_unknown_framework_is_refused_with_the_nearest_and_all():
    with pytest.raises(UsageError, match="unknown framework `megatorn`") as refused:
        find_framework("megatorn")

    assert refused.value.hint == f"did you mean `megatron`? All: {', '.join(NAMES)}"


def test_the_page_says_what_the_code_does():
    from tools.launching.page import PAGE, with_tables

    page = PAGE.read_text(encoding="utf-8")

    assert page == with_tables(page)
    assert [name for name in NAMES if f"`{name}`" not in page] == []


def test_the_help_lists_every_framework(capsys: Any):
    from mpplan.app import main

    main(("export", "--help"))
    shown = " ".join(capsys.readouterr().out.split())

    assert "megatron, torchtitan, deepspeed, accelerate, axolotl or skypilot" in shown
    assert NAMES == ["megatron", "torchtitan", "deepspeed", "accelerate", "axolotl", "skypilot"]


def test_a_plan_is_chosen_by_precision_gpu_and_view():
    document = json.loads(json.dumps(to_document(estimate(**GRID["dense"]))))

    assert "fp16 (policy fp16)" in launch_file(document, "megatron", precision="fp16").text
    assert "view same deadline" in launch_file(document, "megatron", view="same_deadline").text
    with pytest.raises(UsageError, match="the answer has no plan of `int8`"):
        launch_file(document, "megatron", precision="int8")
    with pytest.raises(UsageError, match="the answer has no plan of `a100-sxm4-80gb`"):
        launch_file(document, "megatron", gpu="a100-sxm4-80gb")
