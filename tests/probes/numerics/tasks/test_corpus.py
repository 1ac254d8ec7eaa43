"""The text that is on every machine."""

from __future__ import annotations

import platform

import numpy as np

from probes.numerics.tasks.corpus import VOCABULARY, described, library_text, library_tokens


def test_the_text_is_python_source_and_the_held_out_part_is_none_of_the_rest():
    text = library_text()
    train, held = library_tokens()

    assert b"def " in text
    assert len(text) > 1_000_000
    assert 0.04 < len(held) / (len(held) + len(train)) < 0.06
    assert max(train.max(), held.max()) < VOCABULARY
    windows = {bytes(row.astype(np.uint8)) for row in held.reshape(-1, 1000)}
    whole = bytes(train.astype(np.uint8))
    assert sum(window in whole for window in windows) == 0


def test_the_text_is_named_so_that_two_answers_can_be_told_apart():
    assert platform.python_version() in str(described()["text"])
    assert len(str(described()["sha256"])) == 16
