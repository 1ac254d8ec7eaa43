"""The tables of docs/launching.md."""

from __future__ import annotations

from tools.launching.page import START, with_tables


def test_what_stands_before_the_mark_is_kept_and_the_rest_is_of_the_code():
    page = with_tables(f"# Mine\n\n{START}old")

    assert page.startswith(f"# Mine\n\n{START}\n## Megatron-LM")
    assert "| tp, with sequence parallelism | `--tensor-model-parallel-size`, `--sequence-parallel` |" in page
    assert "- it has no ZeRO stage 1" in page
    assert "old" not in page.split(START)[1].splitlines()
