"""The task for SkyPilot, held against its published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from planner.errors import UsageError
from probes.record.options import Options
from tests.probes.launchers.build import recipe

SCHEMA = json.loads((Path(__file__).parent / "published/skypilot-0.14.1.json").read_text(encoding="utf-8"))


def task(*arguments: Any, **given: Any) -> dict[str, Any]:
    document = yaml.safe_load(recipe("skypilot", *arguments, **given))
    jsonschema.validate(document, SCHEMA["task"])
    jsonschema.validate(document["resources"], SCHEMA["resources"])
    return document


def test_a_task_names_its_nodes_its_gpus_and_its_image() -> None:
    asked = task(nodes=2, image="pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime")

    assert asked["name"] == "mpplan-probe"
    assert asked["num_nodes"] == 2
    assert asked["resources"] == {
        "accelerators": "H100:8",
        "image_id": "docker:pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime",
    }
    assert set(asked) == {"name", "num_nodes", "resources", "setup", "run"}


def test_gpus_per_node_are_those_of_the_catalogue_unless_asked_otherwise() -> None:
    assert task(gpu="l4")["resources"]["accelerators"] == "L4:1"
    assert task(gpu="l4", ranks=4)["resources"]["accelerators"] == "L4:4"


def test_on_cpus_a_task_asks_for_a_cpu_per_process() -> None:
    assert task(Options(device="cpu"), ranks=4)["resources"] == {"cpus": "4+"}


def test_a_gpu_without_a_name_in_skypilot_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match="the SkyPilot name of gtx-1080ti-11gb is not known") as refused:
        recipe("skypilot", gpu="gtx-1080ti-11gb")
    assert "h100-sxm5-80gb" in str(refused.value.hint)


def test_skypilot_itself_reads_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # it keeps a folder there
    monkeypatch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
    sky = pytest.importorskip("sky")
    (tmp_path / "probe.yaml").write_text(recipe("skypilot", nodes=2), encoding="utf-8")

    assert sky.Task.from_yaml(str(tmp_path / "probe.yaml")).num_nodes == 2
