"""A calibration written and read back: the same predictions, and a clear error for any other file."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from mpplan.api.document import worded
from planner.calibration.document import (
    read_calibration,
    shipped_digest,
    to_calibration_document,
)
from planner.calibration.learn import learn
from planner.errors import InputFileError, UsageError
from planner.models.images.catalogue import IMAGE_MODELS
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Draws
from planner.training.policies import default_policy
from planner.validation.predict import predict_prepared, run_rates
from reports.text.messages import word
from tests.planner.build import recipe, shape
from tests.planner.calibration.own_runs import observation, team

MIXTURE = shape(experts=8, top_k=2, expert_ffn=512)


@pytest.fixture(scope="module")
def calibration():
    return learn(team([0.8, 0.82, 0.79]), shipped_parameters(), "runs.csv")


@pytest.fixture(scope="module")
def document(calibration):
    return json.loads(json.dumps(worded(to_calibration_document(calibration, source="runs.csv", version="0.9"))))


def read(tmp_path, document):
    path = tmp_path / "our-stack.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return read_calibration(path, shipped_parameters())


def test_a_calibration_read_back_predicts_as_the_one_that_was_written(tmp_path, calibration, document):
    back = read(tmp_path, document).parameters
    row = observation(id="unseen", n_gpus="64").prepared

    before, after = (
        predict_prepared(row, Draws(count=401, seed=1), rates=run_rates(row, parameters))
        for parameters in (calibration.parameters, back)
    )

    assert after.mid == pytest.approx(before.mid, rel=1e-4)
    assert after.low == pytest.approx(before.low, rel=1e-3)
    assert after.high == pytest.approx(before.high, rel=1e-3)


def test_it_says_what_it_was_made_from_and_where_it_holds(tmp_path, document):
    back = read(tmp_path, document)

    facts = back.facts
    assert (facts.name, facts.runs, facts.source, facts.gpus) == ("our-stack.json", 3, "runs.csv", ("h100-sxm5-80gb",))
    assert facts.width_ratio["time"] < 1.0
    assert {fact.words.key.partition(".")[0] for fact in facts.learned} == {"learned"}
    assert "framework_ratio.eager" in back.terms
    assert back.parameters.rows["framework_ratio.eager"].source.startswith(
        "our-stack.json: learned from 3 own runs of runs.csv"
    )


def test_rows_and_what_was_learned_are_in_the_document(document):
    assert document["schema"] == "mpplan.calibration/1"
    assert [row["id"] for row in document["rows"]] == ["run-0", "run-1", "run-2"]
    first = document["learned"][0]
    assert set(first) == {"term", "label", "unit", "before", "after", "bounded", "words", "words_message"}
    assert first["words_message"]["key"].startswith("learned.")
    assert document["width_ratio"]["time"] < 1.0
    assert document["shipped_parameters"] == shipped_digest()


def damaged(document, *path, value):
    changed = deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("posterior",), None),
        (("posterior", "ids"), []),
        (("posterior", "ids", 0), "nonsense"),
        (("posterior", "values", 0), "x"),
        (("posterior", "values", 0), -1.0),
        (("posterior", "values", 0), float("nan")),
        (("posterior", "factor", 3), [1.0]),
        (("posterior", "factor", 3, 1), float("inf")),
        (("posterior", "own_sd"), {}),
        (("posterior", "own_sd", "model_error_ratio"), 1e9),
        (("runs",), "three"),
        (("runs",), 0),
        (("gpus",), 7),
        (("learned", 0, "words_message", "key"), "hint.write_document_again"),
        (("learned", 0), "more"),
        (("width_ratio",), [1]),
        (("width_ratio", "time"), float("nan")),
        (("learned", 0, "before", "mid"), float("inf")),
    ],
)
def test_a_damaged_calibration_is_refused_with_the_name_of_its_file(tmp_path, document, path, value):
    with pytest.raises(InputFileError, match=r"our-stack\.json: posterior: expected"):
        read(tmp_path, damaged(document, *path, value=value))


def test_a_calibration_of_another_version_is_refused_with_what_to_run(tmp_path, document):
    with pytest.raises(InputFileError, match=r"made by mpplan 0\.9 with other parameters") as error:
        read(tmp_path, document | {"shipped_parameters": "0" * 16})

    assert error.value.hint == "run `mpplan calibrate` again on the runs it was made from (runs.csv)"


@pytest.mark.parametrize("content", ["", "[]", "{}", "id,metric\n", '{"schema": "mpplan.estimate/2"}', "[" * 100_000])
def test_another_file_is_refused(tmp_path, content):
    with pytest.raises(InputFileError, match=r"our-stack\.json"):
        read(tmp_path, content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*none\.json"):
        read_calibration(tmp_path / "none.json", shipped_parameters())


def test_what_the_runs_say_in_all_is_in_words_and_figures(document):
    (total,) = document["total"]

    assert total["figure"] == "time"
    assert 1.2 < total["measured_ratio"] < 1.3
    assert 1.1 < total["learned_ratio"] < total["measured_ratio"]
    assert total["words"].startswith("overall, your runs take 2")
    assert "more time than most teams'; with this calibration, plans of such runs take" in total["words"]


def test_only_what_changed_by_a_percent_is_called_learned_when_read_back(tmp_path, document):
    shipped = shipped_parameters()
    back = read(tmp_path, document).parameters

    for name in shipped.joint.ids:
        old, new = shipped.rows[name], back.rows[name]
        apart = max(abs(new.value / old.value - 1.0), abs(new.log_sd / old.log_sd - 1.0) if old.log_sd else 0.0)
        assert new.learned == (apart >= 0.01), name
        assert new.learned == (new.source != old.source)


def test_one_of_another_version_says_so(tmp_path, document):
    back = read(tmp_path, document)

    (warning,) = back.of_other_version("1.0")
    assert dict(warning.values)["first"] == "0.9"
    assert dict(warning.values)["newest"] == "1.0"
    assert back.of_other_version("0.9") == ()


def test_rows_that_contradict_very_many_name_a_few(calibration):
    row = replace(calibration.rows[0], conflicts_with=("a", "b"), conflicts=1000)

    (told, *_) = worded(to_calibration_document(replace(calibration, rows=(row,)), source="runs.csv", version="0.9"))[
        "rows"
    ]

    assert told["conflict"] == "disagrees with a, b and 998 more for the same configuration"


def test_a_plan_unlike_the_runs_says_in_what(tmp_path, document):
    back = read(tmp_path, document)

    assert (back.stacks, back.mixtures, back.images) == (("eager",), (False,), (False,))
    assert back.unlike(["h100-sxm5-80gb"], "eager", shape()) == ()
    told = [word(message) for message in back.unlike(["h100-sxm5-80gb"], "typical", MIXTURE)]
    assert "learned from runs with --stack eager, but this plan uses --stack typical" in told[0]
    assert told[1].startswith("the calibration was learned from dense models")
    told_of = ("stacks", "mixtures", "images", "adapters", "precisions", "most_nodes")
    older = read(tmp_path, {name: value for name, value in document.items() if name not in told_of})
    assert older.unlike(["h100-sxm5-80gb"], "typical", MIXTURE) == ()
    assert older.unlike_work(replace(recipe(), method="lora"), 64) == ()


def test_every_stack_of_the_runs_is_named(tmp_path, document):
    back = read(tmp_path, {**document, "stacks": ["eager", "tuned"]})

    (told,) = back.unlike(["h100-sxm5-80gb"], "typical", shape())
    assert "learned from runs with --stack eager and --stack tuned, but this plan uses --stack typical" in word(told)
    assert back.unlike(["h100-sxm5-80gb"], "tuned", shape()) == ()


@pytest.mark.parametrize(
    ("runs", "precision", "method", "nodes", "keys"),
    [
        ({}, "bf16", "pretrain", 1, []),
        ({}, "fp16", "sft", 1, []),
        ({}, "bf16", "pretrain", 64, ["nodes"]),
        ({"n_gpus": "16"}, "bf16", "pretrain", 64, []),
        ({}, "fp8", "pretrain", 1, ["precision"]),
        ({"precision": "fp8", "framework": "Megatron-LM"}, "bf16", "pretrain", 1, ["precision"]),
        ({}, "bf16", "lora", 1, ["whole"]),
        ({"method": "lora"}, "bf16", "pretrain", 64, ["adapters", "nodes"]),
        ({"method": "lora"}, "bf16", "qlora", 1, []),
    ],
)
def test_a_plan_of_other_work_than_the_runs_says_in_what(tmp_path, runs, precision, method, nodes, keys):
    """Rows of LoRA on one node once changed a pre-training plan on 64 nodes without a word."""
    learned = learn([observation(0.8, **runs)], shipped_parameters(), "runs.csv")
    back = read(tmp_path, worded(to_calibration_document(learned, source="runs.csv", version="0.9")))
    planned = replace(recipe(), method=method, policy=default_policy(precision))

    told = back.unlike_work(planned, nodes)

    assert [message.key for message in told] == [f"warning.calibration_{key}" for key in keys]
    assert all("{" not in word(message, lang) for message in told for lang in ("en", "zh"))


def test_runs_of_vision_models_and_plans_of_language_models_are_told_apart(tmp_path, document):
    """What a ResNet's convolutions and memory taught once changed a plan for Llama without a word."""
    resnet = IMAGE_MODELS.find("resnet-50")
    runs = [
        observation(0.8, model="resnet-50", family="", metric="samples_per_s", framework="PyTorch", precision="fp16")
    ]
    learned = learn(runs, shipped_parameters(), "runs.csv")
    images = read(tmp_path, worded(to_calibration_document(learned, source="runs.csv", version="0.9")))

    def keys(calibration, model):
        return [message.key for message in calibration.unlike(["h100-sxm5-80gb"], "eager", model)]

    assert keys(images, resnet) == []
    assert keys(images, MIXTURE) == ["warning.calibration_images"]
    assert keys(read(tmp_path, document), resnet) == ["warning.calibration_language"]
