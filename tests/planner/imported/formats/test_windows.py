"""What Zeus and CodeCarbon metered as a whole."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.imported.formats.codecarbon import BY_MEAN
from planner.imported.formats.zeus import NO_ENERGY
from tests.planner.imported.readings import context_of, reading, sample, text_file


def test_windows_of_zeus_are_points_by_their_name() -> None:
    read = reading(sample("zeus.csv"), context_of(model="llama-3.1-8b", precision="bf16"))

    step, epoch = read.points
    assert (step.setup.role, step.sampling.samples, step.communication.world) == ("step", 8, 2)
    assert step.power.mean_w == pytest.approx((1200.0 + 1240.0) / 2 / 2.0, rel=0.002)  # J of both over GPUs and seconds
    assert (epoch.setup.role, epoch.power.mean_w) == ("epoch", pytest.approx((10400.0 + 10750.0) / 2 / 17.5))
    assert read.date == "2026-11-20T09:00:00+00:00"


def test_measurements_of_zeus_as_json_are_windows_without_a_name() -> None:
    (point,) = reading(sample("zeus.json")).points

    assert (point.sampling.samples, point.time.median_s, point.power.mean_w) == (6, 2.0, 610.0)
    assert point.setup.role == ""


def test_windows_shorter_than_the_counter_are_left_out() -> None:
    read = reading(text_file("start_time,window_name,elapsed_time,gpu0_energy\n1,step,0.01,0.0\n2,step,1.0,500.0\n"))

    assert (read.points[0].power.mean_w, read.doubts[-1]) == (500.0, NO_ENERGY)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "start_time,window_name,elapsed_time,gpu0_energy\n1,step,0,5\n",
            "f:2: elapsed_time: expected a number above 0",
        ),
        ("start_time,window_name,elapsed_time,gpu0_energy\n1,step,1,nan\n", "f:2: gpu0_energy"),
        ("start_time,window_name,elapsed_time,gpu0_energy\n1,step,1\n", "f:2: expected 4 cells"),
        ("start_time,window_name,gpu0_energy\n1,step,5\n", "f:1: elapsed_time: expected a column"),
        ("start_time,window_name,elapsed_time,cpu_energy\n1,step,1,1\n", "f:1: gpu0_energy: expected a column"),
        ("start_time,window_name,elapsed_time,gpu0_energy\n1,step,1,0\n", "f:1: expected windows with GPU energy"),
        ('{"time": 1, "gpu_energy": {}}', "f:1: gpu_energy"),
        ('{"time": -1, "gpu_energy": {"0": 1}}', "f:1: elapsed_time"),
        ('{"time": 1, "gpu_energy": {"0": 1}}\n{"time": 1, "gpu_energy": 3}', "f:2: gpu_energy"),
        ("start_time,window_name,elapsed_time,gpu0_energy\n" + "".join(f"1,w{n},1,1\n" for n in range(51)), "50 names"),
    ],
)
def test_a_damaged_file_of_zeus_is_refused_with_its_line(text: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        reading(text_file(text, "f"), form="zeus")
    assert what in str(caught.value)


def test_runs_of_codecarbon_give_the_mean_power_of_a_gpu() -> None:
    read = reading(sample("emissions.csv"))

    first, second = read.points
    assert first.power.mean_w == pytest.approx(9.2 * 3.6e6 / 3600.0 / 16)  # kWh of 16 GPUs in an hour: 575 W
    assert (second.time.median_s, second.setup.role, second.communication.world) == (7200.0, "run", 16)
    assert (read.tool_version, read.device_name) == ("3.3.2", "NVIDIA H100 80GB HBM3")


def test_codecarbon_s_energy_is_that_of_the_boards_and_not_of_the_building() -> None:
    text = sample("emissions.csv").text
    building = text.replace(",9.2,", ",11.5,").replace(",N,1,0", ",N,1.25,0", 1)  # kWh times the PUE that was set
    unnamed = "\n".join(line.rsplit(",", 2)[0] for line in text.splitlines())  # a version without the column

    for read in (reading(text_file(building)), reading(text_file(unnamed))):
        assert read.points[0].power.mean_w == pytest.approx(575.0)


def test_with_the_steps_a_run_of_codecarbon_has_the_energy_of_a_step() -> None:
    read = reading(sample("emissions.csv"), context_of("hf_trainer.log"))

    assert read.points[0].setup.role == "step"
    assert read.points[0].energy.j_per_iteration == pytest.approx(575.0 * 2.0)
    assert BY_MEAN in read.doubts


def test_what_codecarbon_says_of_the_place_and_the_project_stays_in_its_file() -> None:
    assert not [
        word for word in ("France", "FRA", "5b0fa12a", "EPYC") if word in repr(reading(sample("emissions.csv")))
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("emissions-cpu.csv", "", "", "runs with GPU energy, found 0"),  # a real run without a GPU
        ("emissions.csv", ",9.2,", ",nan,", "emissions.csv:2: gpu_energy"),
        ("emissions.csv", ",3600.0,", ",0.0,", "emissions.csv:2: duration: expected a number above 0"),
        ("emissions.csv", ",N,1,0", ",N,0,0", "emissions.csv:2: pue: expected a number above 0"),
        ("emissions.csv", "EPYC 9654,16,", "EPYC 9654,1.5,", "gpu_count: expected a whole number"),
        ("emissions.csv", "machine,0.0", "machine", "emissions.csv:2: expected 38 cells, found 37"),
        ("emissions.csv", "9654,16,16 x NVIDIA H100", "9654,16,16 x NVIDIA A100", "one kind of GPU"),
    ],
)
def test_a_file_of_codecarbon_that_says_nothing_of_gpus_is_refused(file: str, old: str, new: str, what: str) -> None:
    text = sample(file).text.replace(old, new, 1)

    with pytest.raises(InputFileError) as caught:
        reading(text_file(text, file))
    assert what in str(caught.value)
