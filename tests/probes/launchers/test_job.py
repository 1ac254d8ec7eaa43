"""What a user asks for becomes a job, or an error that says what is missing."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from probes.launchers import launcher_by_name
from probes.launchers.job import arguments, make_job
from probes.launchers.settings import SETTING_BY_NAME, SETTINGS
from probes.record.options import Options

GPU_PROBE = Options(device="cuda")


def test_the_probe_on_the_nodes_is_asked_what_the_user_asked() -> None:
    probe = Options(
        suite="quick", device="cpu", precisions=("BF16", "fp32"), workloads=("memory_ops",), budget_s=300.0,
        verify=True, seed=7,
    )  # fmt: skip

    assert arguments(probe) == (
        "--suite", "quick", "--device", "cpu", "--precision", "bf16,fp32", "--workload", "memory_ops",
        "--budget", "300s", "--verify", "--seed", "7",
    )  # fmt: skip


@pytest.mark.parametrize("probe", [Options(precisions=("$(reboot)",)), Options(workloads=("gemm; reboot",))])
def test_only_known_precisions_and_workloads_reach_a_job_file(probe: Options) -> None:
    with pytest.raises(UsageError, match=r"unknown (precision|workload)"):
        arguments(probe)


@pytest.mark.parametrize(
    ("name", "given", "error", "hint"),
    [
        ("slurm", {}, "a recipe for slurm needs a partition", "`sinfo -s`"),
        ("skypilot", {}, "a recipe for skypilot needs a GPU", "`--gpu ID`"),
        ("kubernetes", {}, "a recipe for kubernetes needs a container image", "`--image IMAGE`"),
        ("slurm", {"partition": "a", "image": "b"}, "slurm does not take --image", "`--partition`"),
        ("slurm", {"partition": "a", "gpu": "l4"}, "slurm does not take --gpu", "`--partition`"),
        ("skypilot", {"gpu": "l4", "qos": "b"}, "skypilot does not take --qos", "`--gpu`"),
        ("skypilot", {"gpu": "h100"}, "GPU `h100` matches several models", "h100-sxm5-80gb"),
    ],
)
def test_what_is_missing_or_has_no_use_is_said(name: str, given: dict[str, str], error: str, hint: str) -> None:
    with pytest.raises(UsageError, match=error) as refused:
        make_job(launcher_by_name(name), GPU_PROBE, given=given)
    assert hint in str(refused.value.hint)


def test_a_gpu_does_not_go_with_cpus() -> None:
    with pytest.raises(UsageError, match="--gpu cannot be combined with --device cpu"):
        make_job(launcher_by_name("skypilot"), Options(device="cpu"), given={"gpu": "l4"})


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_counts_out_of_reason_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="--nnodes: expected 1 to 100,000"):
        make_job(launcher_by_name("slurm"), GPU_PROBE, nodes=count, given={"partition": "a"})
    with pytest.raises(UsageError, match="--ranks: expected 1 to 1,024"):
        make_job(launcher_by_name("slurm"), GPU_PROBE, ranks=count, given={"partition": "a"})


def test_an_unknown_launcher_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="--recipe: unknown launcher `pbs`") as refused:
        launcher_by_name("pbs")
    assert refused.value.hint == "use one of slurm, skypilot, kubernetes"


@pytest.mark.parametrize(("text", "minutes"), [("7", "7"), ("7:30", "7.5"), ("0:07:59", "7.98333"), ("0-0:7", "7")])
def test_a_job_that_would_end_before_its_probe_is_refused(text: str, minutes: str) -> None:
    settings = {"partition": "gpu", "time": text}

    with pytest.raises(
        UsageError, match=f"would end after {minutes} minutes, but the probe may measure for 8"
    ) as error:
        make_job(launcher_by_name("slurm"), Options(device="cuda"), ranks=1, given=settings)
    assert error.value.hint == "`--time 28` leaves room for starting it, too; or give the probe less time with --budget"


@pytest.mark.parametrize("text", ["0", "8", "0:08:00", "1-0", "1-12:30", "2:00:00"])
def test_a_job_that_has_the_time_of_its_probe_or_no_limit_is_written(text: str) -> None:
    job = make_job(launcher_by_name("slurm"), Options(device="cuda"), ranks=1, given={"partition": "gpu", "time": text})

    assert job.settings["time"] == text


UNSAFE = ("a b", "a\nb", "a\n", "a'b", 'a"b', "a$(id)", "a`id`", "a;b", "a#b", "a\\b", "-a", "", "a\u2028b", "ä")


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting.name != "gpu"], ids=lambda s: s.name)
@pytest.mark.parametrize("text", UNSAFE)
def test_no_setting_lets_in_what_means_something_in_a_shell_or_in_yaml(setting, text: str) -> None:
    with pytest.raises(UsageError, match=f"{setting.flag}: .* does not fit into a job file"):
        setting.read(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("partition", "gpu,gpu-long_2"), ("account", "proj.12"), ("qos", "high"),
        ("time", "45"), ("time", "1:30:00"), ("time", "1-12"), ("time", "2-00:00:00"),
        ("image", "localhost:5000/team/torch@sha256:0123abcd"), ("namespace", "ml-team-2"),
    ],
)  # fmt: skip
def test_usual_values_are_let_in(name: str, text: str) -> None:
    assert SETTING_BY_NAME[name].read(text) == text
