"""The model of a question: a file, a folder, a name of the catalogue, a short name."""

from __future__ import annotations

import json

import pytest

from planner.errors import InputFileError, MpplanError, UsageError
from planner.question.asked import Ask
from planner.question.question import Question
from planner.question.resolve import resolve
from planner.question.resolve_model import describe
from reports.text.messages import word
from tests.planner.build import make_question, shape


def ask(**texts: str) -> Question:
    return resolve(Ask(texts=texts))


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip


def test_a_hugging_face_config_is_a_model_by_its_path_or_that_of_its_folder(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")

    assert ask(model=str(path)).model.params_total == pytest.approx(8.03e9, rel=0.001)
    assert ask(model=str(tmp_path)).model == ask(model=str(path)).model


def test_a_folder_without_a_config_is_a_mistake_that_names_the_file(tmp_path):
    with pytest.raises(UsageError, match="no such file") as caught:
        ask(model=str(tmp_path))

    assert "config.json`" in str(caught.value.message)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama3"])
def test_a_name_of_the_catalogue_is_not_taken_for_a_folder_that_is_called_the_same(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 2}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert ask(model=name).model.layers == 32
    assert ask(model=f"./{name}/config.json").model.layers == 2


def test_a_folder_of_weights_counts_before_the_model_without_the_word_at_its_end(tmp_path, monkeypatch):
    name = "Llama-3.1-8B-Base"
    monkeypatch.chdir(tmp_path)
    assert ask(model=name).model.layers == 32
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 2}), encoding="utf-8")

    assert ask(model=name).model.layers == 2


def test_a_short_name_takes_the_usual_model_and_says_so():
    resolved = ask(model="Llama3")

    assert resolved.model.name == "llama-3-8b"
    assert resolved.inputs["model"].source == "derived"
    text = word(resolved.inputs["model"].note)
    assert text.startswith("`Llama3` is taken to mean llama-3-8b, the usual one (there is also llama-3-70b); 8.03B ")


def test_a_full_name_needs_no_explanation():
    assert ask(model="llama-3-8b").inputs["model"].source == "flag"


BROKEN = {
    "no JSON": "not json",
    "truncated": json.dumps(LLAMA)[:60],
    "keys missing": json.dumps({"model_type": "llama"}),
    "unknown architecture": json.dumps(LLAMA | {"model_type": "x"}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_config_is_an_invalid_file(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputFileError) as caught:
        ask(model=str(path))

    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert "config.json" in caught.value.message


def test_a_config_in_no_encoding_is_an_invalid_file_and_a_missing_one_a_mistake(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00{}")
    with pytest.raises(InputFileError, match="expected text in UTF-8"):
        ask(model=str(path))
    with pytest.raises(MpplanError) as caught:
        ask(model=str(tmp_path / "other.json"))

    assert caught.value.exit_code == 2


def test_a_shape_is_described_in_one_line():
    text = word(describe(make_question(model="mixtral-8x7b").model))

    assert "46.7B parameters" in text
    assert "8 experts of 14,336, top 2" in text
    assert "FFN 2,816" in word(describe(shape()))
    assert "\n" not in text
