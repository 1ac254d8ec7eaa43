import json

from planner.models.catalogue import load_models


def test_the_list_has_one_line_per_model_with_source_and_year(run):
    result = run("models")

    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert len(lines) == 1 + len(load_models())
    line = next(line for line in lines if line.startswith("deepseek-v3 "))
    assert line.split()[:9] == ["deepseek-v3", "671", "37.55", "61", "7168", "128", "128", "2048", "256/8"]
    assert "2412.19437" in line


def test_one_model_is_shown_in_full(run):
    result = run("models", "Llama 3.1 405B")

    assert result.code == 0
    assert "405.9B" in result.out
    assert "128 heads of 128, 8 key/value heads" in result.out
    assert "16.8M tokens" in result.out


def test_what_a_model_has_not_or_nobody_published_is_no_blank(run):
    shown = {line.split("  ")[0]: line for line in run("models", "mixtral-8x7b").out.splitlines()}

    assert shown["feed-forward"].endswith("experts only, gated")
    assert shown["published batch"].endswith("not known")


def test_the_document_has_the_counts(run):
    document = json.loads(run("models", "llama-3-8b", "--json").out)

    assert document["schema"] == "mpplan.models/1"
    (model,) = document["models"]
    assert model["params_total"] == 8_030_261_248  # as the published weights
    assert model["evidence"]["source"]


def test_an_unknown_model_exits_2_with_a_hint(run):
    result = run("models", "llama-9-70b")

    assert (result.code, result.out) == (2, "")
    assert "hint: did you mean `" in result.err


def test_models_that_see_images_have_a_list_of_their_own(run):
    result = run("models", "--images")
    line = next(line for line in result.out.splitlines() if line.startswith("resnet50 "))

    assert len(result.out.splitlines()) > 600
    assert line.split()[:4] == ["resnet50", "25.56", "224", "8.178"]
    assert "4.09" not in line  # multiply-adds are two operations


def test_a_model_that_sees_images_is_shown_with_what_it_is(run):
    shown, document = run("models", "vit-b-16"), json.loads(run("models", "vit-b-16", "--json").out)

    assert "86.57M in 152 tensors" in shown.out
    assert "vision model, mostly linear layers and attention" in shown.out
    assert document["models"][0]["flop_per_image"] == 35127656448.0
