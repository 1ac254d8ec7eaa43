"""The manifest for Kubernetes, held against the published schemas of its two objects."""

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

PUBLISHED = json.loads((Path(__file__).parent / "published/kubernetes-1.37.json").read_text(encoding="utf-8"))
KINDS = {"Job": "io.k8s.api.batch.v1.Job", "Service": "io.k8s.api.core.v1.Service"}


def faults(document: dict[str, Any]) -> list[str]:
    schema = {"$ref": f"#/$defs/{KINDS[document['kind']]}", "$defs": PUBLISHED["$defs"]}
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


def manifest(*arguments: Any, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    service, job = yaml.safe_load_all(recipe("kubernetes", *arguments, **given))
    assert faults(service) == []
    assert faults(job) == []
    return service, job


def test_the_published_schema_sees_a_misspelt_key() -> None:
    _, job = manifest()
    job["spec"]["completionsMode"] = "Indexed"

    assert faults(job) == ["Additional properties are not allowed ('completionsMode' was unexpected)"]


def test_a_job_starts_one_pod_per_node_once_and_the_pods_find_each_other_by_the_service() -> None:
    service, job = manifest(nodes=3)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]

    assert (spec["completionMode"], spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (
        "Indexed",
        3,
        3,
        0,
    )
    assert pod["restartPolicy"] == "Never"
    assert service["spec"]["clusterIP"] == "None"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_a_pod_gets_its_gpus_on_nodes_with_that_gpu_and_shared_memory_for_nccl() -> None:
    _, job = manifest(ranks=4)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert container["image"] == "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}
    assert container["volumeMounts"][0] == {"name": "shared-memory", "mountPath": "/dev/shm"}
    assert pod["volumes"][0] == {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3", "H100-80GB-HBM3"]}
    ]


def test_a_namespace_is_that_of_both_objects_and_of_every_command() -> None:
    text = recipe("kubernetes", namespace="ml")

    assert [document["metadata"]["namespace"] for document in yaml.safe_load_all(text)] == ["ml", "ml"]
    assert text.count("kubectl logs -n ml ") == 2


def test_a_namespace_that_yaml_would_take_for_a_number_stays_a_text() -> None:
    service, _ = manifest(namespace="007")

    assert service["metadata"]["namespace"] == "007"


def test_the_script_has_nothing_that_the_cluster_would_expand() -> None:
    _, job = manifest()

    assert "$(" not in job["spec"]["template"]["spec"]["containers"][0]["args"][0]


def test_on_cpus_no_gpu_is_asked_for() -> None:
    _, job = manifest(Options(device="cpu"), ranks=2)

    assert "resources" not in job["spec"]["template"]["spec"]["containers"][0]


def test_a_gpu_that_is_not_nvidias_is_refused() -> None:
    with pytest.raises(UsageError, match="--gpu: the probe does not measure AMD Instinct MI300X 192GB"):
        recipe("kubernetes", gpu="mi300x-192gb")
