"""Lines of a log as they are streamed: ends, colours, ranks, stamps."""

from __future__ import annotations

import io

import pytest

from planner.errors import InputFileError
from planner.runlog import lines as module
from planner.runlog.lines import LONGEST_LINE, LogLine, lines_of, log_texts, stamp_of


def read(content: bytes) -> list[LogLine]:
    return list(lines_of(log_texts(io.BytesIO(content), "run.log")))


def test_a_bar_that_is_written_over_is_one_line_in_several_states():
    assert [(line.number, line.text) for line in read(b"a\r b\r\nc\n\nd")] == [(1, "a"), (1, " b"), (2, "c"), (4, "d")]


def test_only_the_last_line_can_lack_its_end():
    assert [line.whole for line in read(b"a\nb")] == [True, False]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_where_a_piece_ends_makes_no_difference(size, monkeypatch):
    content = "é\r\nzwei\rdrei\n\x1b[31mvier\x1b[0m\n".encode()
    whole = read(content)
    monkeypatch.setattr(module, "CHUNK_BYTES", size)

    assert read(content) == whole
    assert [line.text for line in whole] == ["é", "zwei", "drei", "vier"]


def test_of_a_long_line_the_beginning_is_kept_once():
    lines = read(b"x" * 3_000_000 + b"\nnext\n")

    assert [(line.number, len(line.text)) for line in lines] == [(1, LONGEST_LINE), (2, 4)]


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [("[rank3]: a", 3, "a"), ("[default12]:b", 12, "b"), (" 7: c", 7, "c"), ("task/0 [default1]:d", 1, "d"),
     ("2026-01-01 10:00:00 e", None, "2026-01-01 10:00:00 e")],
)  # fmt: skip
def test_the_rank_before_a_line_is_told_and_taken_off(text, rank, message):
    (line,) = read(text.encode())

    assert (line.rank, line.text) == (rank, message)


def test_the_rank_in_a_node_tells_processes_of_a_node_apart():
    lines = read(b"0: [rank1]: a\n1: [rank1]: b\n1: [rank0]:c\n0: [rank1]: d\n")

    assert [line.text for line in lines] == ["a", "b", "c", "d"]
    assert len({line.rank for line in lines}) == 3
    assert lines[0].rank == lines[3].rank


def test_bytes_that_are_no_text_are_refused_or_replaced():
    assert read(b"caf\xe9\n")[0].text == "caf�"
    with pytest.raises(InputFileError, match="binary"):
        read(b"a\n\0\n")


def test_a_stamp_counts_at_the_beginning_alone():
    stamp = stamp_of("[NeMo I 2025-03-07 22:35:22 model_checkpoint:497] saved")

    assert stamp is not None
    assert stamp.iso() == "2025-03-07T22:35:22"
    assert stamp_of("loaded the checkpoint of the run from 2025-03-07 22:35:22") is None
    assert stamp_of("step 20") is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_log_in_utf_16_as_a_shell_of_windows_writes_it_is_read(encoding):
    text = "\r\n".join(f"line {number} é" for number in range(100_000))

    assert [line.text for line in read(text.encode(encoding))] == text.split("\r\n")
