"""Every format: recognised by its content alone, never failing on anything else, and honest about its doubts."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError, MpplanError, UsageError
from planner.imported.formats import FORMATS, format_of
from planner.imported.formats.base import ImportFormat
from planner.imported.reading import ImportContext
from planner.imported.source import SourceFile
from planner.records.measurement import KINDS
from tests.planner.imported.readings import SAMPLES, context_of, sample, text_file
from tests.planner.imported.traces import of_products
from tests.planner.nccl_output import output

NCCL = output("all_reduce", 2, 8, lambda size: 3e-5 + size / 2e10).encode()
BY_FORMAT: dict[str, tuple[SourceFile, ...]] = {
    "nccl-tests": (SourceFile(name="nccl.txt", content=NCCL),),
    "nvidia-smi": (sample("nvidia-smi.csv"),),
    "dcgm": (sample("dcgmi-dmon.txt"), sample("dcgm-exporter.prom"), sample("prometheus.json")),
    "zeus": (sample("zeus.csv"), sample("zeus.json")),
    "codecarbon": (sample("emissions.csv"),),
    "torch-trace": (SourceFile(name="trace.json", content=of_products().written()),),
}
EVERY = [(form, file) for form in FORMATS for file in BY_FORMAT[form.name]]
STRANGERS = [*(file for _, file in EVERY), sample("megatron.log"), *map(text_file, ("", "{}", "[1]", "\n,,\n#\n"))]
NAMED = [f"{form.name}-{file.name}" for form, file in EVERY]


def test_every_format_has_a_name_of_its_own_and_a_sample() -> None:
    assert [form.name for form in FORMATS] == list(BY_FORMAT)
    assert all(form.what and form.gives for form in FORMATS)


@pytest.mark.parametrize(("form", "file"), EVERY, ids=NAMED)
def test_a_file_is_recognised_by_its_own_format_and_by_no_other(form: ImportFormat, file: SourceFile) -> None:
    assert [other.name for other in FORMATS if other.recognises(file.head)] == [form.name]
    assert format_of(file) is form
    assert format_of(file, form.name) is form


@pytest.mark.parametrize(("form", "file"), EVERY, ids=NAMED)
def test_what_is_read_are_points_of_known_kinds_with_doubts_and_a_spread(form: ImportFormat, file: SourceFile) -> None:
    read = form.read(file, context_of("megatron.log", utc_offset_s=3600.0))

    assert read.points
    assert len({point.name for point in read.points}) == len(read.points)
    assert all(point.kind in KINDS and (point.time.median_s or 0) > 0 for point in read.points)
    assert read.doubts
    assert all(doubt == doubt.strip() and not doubt.endswith(".") for doubt in read.doubts)
    for point in read.points:
        spread = point.power_sd_ratio if point.kind == "training" else point.sd_ratio
        assert spread == 0.0 if form.name == "nccl-tests" else spread is not None and spread >= 0.1


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("file", STRANGERS, ids=lambda file: file.name)
def test_a_file_of_another_tool_is_refused_and_breaks_nothing(form: ImportFormat, file: SourceFile) -> None:
    if file in BY_FORMAT[form.name]:
        return
    with pytest.raises(MpplanError) as caught:
        form.read(file, context_of("megatron.log"))
    assert isinstance(caught.value, InputFileError)
    assert str(caught.value).startswith(f"{file.name}:")


@pytest.mark.parametrize("form", [form for form in FORMATS if form.name in ("nvidia-smi", "dcgm")],
                         ids=lambda form: form.name)  # fmt: skip
def test_power_alone_asks_for_the_steps(form: ImportFormat) -> None:
    with pytest.raises(UsageError, match="does not say which steps ran"):
        form.read(BY_FORMAT[form.name][0], ImportContext())


def test_an_unknown_format_is_a_usage_error_with_the_near_one() -> None:
    with pytest.raises(UsageError, match="--as") as caught:
        format_of(text_file("x"), "nvidiasmi")
    assert "`nvidia-smi`" in str(caught.value.hint)


def test_what_no_tool_wrote_is_refused_with_the_formats() -> None:
    with pytest.raises(InputFileError, match=r"^notes\.txt:1: ") as caught:
        format_of(text_file("hello", "notes.txt"))
    assert "torch-trace" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("file", "where"),
    [
        (sample("megatron.log"), "`--steps` together with a power log, or see `mpplan compare`"),
        (sample("steps.csv"), "`--steps` together with a power log"),
        (text_file('{"schema":"mpplan.probe/3","run_id":"a"}\n'), "a record already: `mpplan check` judges it"),
    ],
    ids=["log", "table", "record"],
)
def test_what_is_read_elsewhere_is_said_to_be(file: SourceFile, where: str) -> None:
    with pytest.raises(InputFileError) as caught:
        format_of(file)

    assert where in str(caught.value.hint)


def test_the_samples_are_all_told_of() -> None:
    readme = (SAMPLES / "README.md").read_text(encoding="utf-8")

    assert [
        file.name for file in SAMPLES.iterdir() if file.name != "README.md" and f"`{file.name}`" not in readme
    ] == []
