import json

from planner.hardware.catalogue import load_gpus


def test_the_list_has_one_line_per_gpu_with_source_and_date(run):
    result = run("gpus")

    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert len(lines) == 1 + len(load_gpus())
    h200 = next(line for line in lines if line.startswith("h200-sxm-141gb "))
    assert "2026-08-22" in h200
    assert "stas00/ml-engineering@744d01e1" in h200
    assert h200.split()[:6] == ["h200-sxm-141gb", "Hopper", "2024", "140", "4800", "67"]


def test_one_gpu_is_shown_in_full(run):
    result = run("gpus", "H100-SXM")

    assert result.code == 0
    assert "dense peak             fp32 67, tf32 494.5, fp16 989, bf16 989, fp8 1979 TFLOP/s" in result.out
    assert "450 GB/s per direction, 8 GPUs" in result.out
    assert "400 Gbit/s each" in result.out


def test_the_document_carries_units_in_its_keys(run):
    document = json.loads(run("gpus", "--json").out)

    assert document["schema"] == "mpplan.gpus/1"
    assert [row["id"] for row in document["gpus"]] == list(load_gpus())
    h100 = next(row for row in document["gpus"] if row["id"] == "h100-sxm5-80gb")
    assert h100["memory_bytes_per_s"] == 3.35e12
    assert h100["peak_flop_per_s"]["bf16"] == 989e12
    assert h100["evidence"]["kind"] == "datasheet"
    assert "h100-sxm" in h100["aliases"]


def test_an_unknown_gpu_exits_2_with_a_hint(run):
    result = run("gpus", "h101-sxm5-80gb")

    assert (result.code, result.out) == (2, "")
    assert "error: unknown GPU `h101-sxm5-80gb`" in result.err
    assert "`h100-sxm5-80gb`" in result.err
