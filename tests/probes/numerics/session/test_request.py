"""What a run that resumes another one must agree with: device, software and flags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.errors import UsageError

pytest.importorskip("torch")

from probes.device.device import open_device
from probes.numerics.session.request import begun_on, must_agree
from probes.record.provenance import Provenance, provenance

WHERE = provenance(open_device("cpu"))


def head_of(where: Provenance = WHERE, **asked: object) -> dict[str, Any]:
    """The part that holds a request, as a run writes it."""
    software = {"torch": where.software.torch_version, "threads": where.device.threads}
    return {"device_name": where.device.name, "software": software, "begun_on": begun_on(where), "asked": asked}


def test_the_same_request_on_the_same_device_goes_on():
    must_agree(head_of(margin=0.02, tasks=["copy"]), {"margin": 0.02, "tasks": None}, WHERE)


def test_a_flag_that_differs_is_named_with_both_values():
    with pytest.raises(UsageError, match=r"--tasks: the record was started with `copy,sort`, not `copy`"):
        must_agree(head_of(**{"--tasks": ["copy", "sort"]}), {"--tasks": ["copy"]}, WHERE)


def test_another_torch_is_refused():
    older = replace(WHERE, software=replace(WHERE.software, torch_version="1.0"))
    with pytest.raises(UsageError, match=r"torch_version `1\.0`"):
        must_agree(head_of(older), {}, WHERE)


def test_another_number_of_cpu_threads_is_refused():
    assert WHERE.device.threads is not None
    more = replace(WHERE, device=replace(WHERE.device, threads=WHERE.device.threads + 1))
    with pytest.raises(UsageError, match="threads") as error:
        must_agree(head_of(more), {}, WHERE)

    assert f"--threads {WHERE.device.threads + 1}" in str(error.value.hint)
