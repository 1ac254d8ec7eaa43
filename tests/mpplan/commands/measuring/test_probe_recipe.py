"""`mpplan probe --recipe`: a job file is written, and nothing is measured."""

from __future__ import annotations

import pytest

SLURM = ("probe", "--recipe", "slurm", "--partition", "gpu")


def test_the_job_file_goes_to_stdout_and_how_to_start_it_to_stderr(run) -> None:
    result = run(*SLURM, "--ranks", "4", "--nnodes", "2")

    assert result.code == 0
    assert result.out.startswith("#!/bin/bash\n# Measures 2 nodes of 4 GPUs with mpplan")
    assert result.err == (
        "start it with `sbatch FILE`; the record comes back as mpplan-probe-<job id>.jsonl in the directory of that "
        "call\n"
    )


def test_with_o_it_is_a_file_and_no_record_is_kept(run, home) -> None:
    result = run(*SLURM, "-o", "probe.sbatch")

    assert (result.code, result.out) == (0, "")
    assert (home / "probe.sbatch").read_text().startswith("#!/bin/bash\n")
    assert "wrote probe.sbatch, for 1 node of 8 GPUs\nstart it with `sbatch probe.sbatch`" in result.err
    assert not (home.parent / "home" / "mpplan").exists()


def test_what_the_probe_is_asked_goes_into_the_job(run) -> None:
    result = run(
        *SLURM, "-q", "--suite", "thorough", "--precision", "bf16, FP8", "--workload", "overlap", "--budget", "1h",
        "--seed", "3", "--verify", "--time", "4:00:00",
    )  # fmt: skip

    asked = "-m mpplan probe --suite thorough --precision bf16,fp8 --workload overlap --budget 3600s --verify --seed 3"
    assert asked in result.out
    assert "#SBATCH --time=4:00:00\n" in result.out
    assert result.err == ""


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (("--recipe", "slurm"), "a recipe for slurm needs a partition", "`sinfo -s` lists them"),
        (("--recipe", "pbs"), "--recipe: unknown launcher `pbs`", "use one of slurm, skypilot, kubernetes"),
        ((*SLURM[1:], "--account", "a\nb"), "--account: `a b` does not fit into a job file", "letters, digits"),
        ((*SLURM[1:], "--image", "a"), "slurm does not take --image", "`--partition`"),
        ((*SLURM[1:], "--resume"), "--recipe measures nothing here, so --resume has no effect", "leave it out"),
        ((*SLURM[1:], "--json"), "--recipe measures nothing here, so --json has no effect", "leave it out"),
        ((*SLURM[1:], "--suite", "huge"), "--suite: unknown suite `huge`", "one of quick"),
        ((*SLURM[1:], "--device", "tpu"), "--device: unknown device `tpu`", "`gpu` or `cpu`"),
        ((*SLURM[1:], "--precision", "bf17"), "unknown precision `bf17`", "one of"),
        ((*SLURM[1:], "--budget", "soon"), "--budget: `soon` is not a duration", "90min"),
        ((*SLURM[1:], "-o", "no/such/place"), "cannot write `no/such/place`", "choose another path"),
        (("--partition", "gpu"), "--partition only applies to a job file", "`--recipe slurm`"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(run, arguments, error, hint) -> None:
    result = run("probe", *arguments)

    assert result.code == 2
    assert result.out == ""
    assert f"error: {error}" in result.err
    assert hint in result.err


def test_a_default_of_the_configuration_that_a_job_cannot_take_is_no_mistake(run, home) -> None:
    (home / "mpplan.toml").write_text("[probe]\nthreads = 4\n")

    assert run(*SLURM, "-q").code == 0
