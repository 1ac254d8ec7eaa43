import re

import pytest

from planner.errors import UsageError
from planner.models.catalogue import find_model, load_models, model_named
from planner.rows import CATALOG, compact, read_rows

MODELS = tuple(load_models().values())


def test_the_counted_parameters_are_those_that_the_publisher_states():
    for model in MODELS:
        assert model.params_published is not None, model.name
        assert model.params_total / model.params_published == pytest.approx(1, abs=0.015), model.name


def test_every_shape_is_possible_and_has_a_source_and_a_year():
    for model in MODELS:
        assert model.heads % model.kv_heads == 0, model.name
        assert model.top_k <= model.experts, model.name
        assert bool(model.experts) == bool(model.expert_ffn) == bool(model.top_k), model.name
        assert model.ffn_hidden > 0 or model.experts > 0, model.name
        assert (model.dense_layers == 0 and model.moe_every == 1) or model.ffn_hidden > 0, model.name
        assert model.evidence is not None, model.name
        assert len(model.evidence.source) > 10, model.name
        assert re.fullmatch(r"20\d\d", model.evidence.date or ""), model.name


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("llama-3.1-8b", 8.030e9, 8.030e9),
        ("llama-3.1-70b", 70.55e9, 70.55e9),
        ("llama-3.1-405b", 405.9e9, 405.9e9),
        ("mixtral-8x7b", 46.7e9, 12.9e9),  # arXiv 2401.04088
        ("mixtral-8x22b", 140.6e9, 39.1e9),
        ("deepseek-v3", 671.0e9, 37e9),  # arXiv 2412.19437
        ("deepseek-v2", 236e9, 21e9),  # arXiv 2405.04434
        ("qwen3-235b-a22b", 235e9, 22e9),
        ("qwen3-30b-a3b", 30.5e9, 3.3e9),
        ("qwen2-57b-a14b", 57.4e9, 14.2e9),
        ("llama-4-maverick", 400e9, 17e9),
        ("nemotron-3-nano-30b-a3b", 31.6e9, 3.6e9),  # arXiv 2512.20848: 3.6B active with the embeddings
        ("granite-4.0-h-small", 32.2e9, 9e9),
        ("qwen3-coder-480b-a35b", 480e9, 35e9),
        ("qwen3.5-397b-a17b", 397e9, 17e9),
        ("ernie-4.5-300b-a47b", 300e9, 47e9),
        ("ling-mini-2.0", 16.26e9, 1.43e9),
        ("hunyuan-a13b", 80e9, 13e9),
    ],
)
def test_total_and_active_parameters_as_published(name, total, active):
    model = load_models()[name]

    assert model.params_total == pytest.approx(total, rel=0.005)
    assert model.params_active == pytest.approx(active, rel=0.03)


def test_the_matrix_parameters_of_llama_leave_out_the_input_embedding():
    model = find_model("llama-3.1-8b")

    # 32 layers of (4096*4096*2 + 4096*1024*2 + 3*4096*14336), and the output layer of 4096 x 128256
    assert model.matrix_params_active == 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128_256


def test_the_issue_s_models_are_all_there():
    wanted = (
        "GPT-3 175B; GPT-NeoX-20B; BLOOM-176B; OPT-175B; LLaMA-7B; LLaMA-65B; Llama 2 70B; Llama 3 8B; Llama 3.1 405B; "
        "Llama 3.2 1B; Llama 3.3 70B; Mistral 7B; Mixtral 8x7B; Mixtral 8x22B; Qwen2.5-0.5B; Qwen2.5-72B; Qwen3-32B; "
        "Qwen3-235B-A22B; DeepSeek-V2; DeepSeek-V3; Nemotron-4 340B; MPT-1B; MPT-30B; OLMo 2 32B; BERT-Large"
    )
    for name in wanted.split("; "):
        assert find_model(name).params_total > 1e8


def test_thirteen_is_not_one_point_three():
    assert find_model("gpt-3-13b").params_total > 12e9
    assert find_model("OPT 1.3B").params_total < 2e9


@pytest.mark.parametrize("name", ["Llama 3.1 70B", "llama-3-1-70b", "llama3.1-70b", "meta-llama/Llama-3.1-70B"])
def test_names_are_insensitive_to_case_punctuation_and_owner(name):
    assert find_model(name).name == "llama-3.1-70b"


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("google/gemma-3-12b-it", "gemma-3-12b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("allenai/Olmo-3-7B-Think", "olmo-3-7b"),
        ("inclusionAI/Ling-mini-base-2.0", "ling-mini-2.0"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),  # a row's own name counts first
    ],
)
def test_a_version_that_was_trained_further_has_the_shape_of_the_model(name, id_):
    assert find_model(name).name == id_


@pytest.mark.parametrize("name", ["instruct", "-it", "llama-instruct", "gemma-3-12b-italian", "qwen2.5-7b-instruct-x"])
def test_a_word_at_the_end_makes_no_model_of_an_unknown_name(name):
    assert model_named(name) is None


def test_no_two_models_share_a_name():
    rows = read_rows(CATALOG / "models.csv")
    names = [compact(name) for row in rows for name in (row.text("id"), *row.words("aliases"))]

    assert len(names) == len(set(names))


def test_published_batches():
    batches = {name: load_models()[name].global_batch_tokens for name in ("deepseek-v3", "gpt-3-175b", "llama-2-70b")}

    assert batches == {"deepseek-v3": 15360 * 4096, "gpt-3-175b": 3.2e6, "llama-2-70b": 4e6}
    assert all(1e5 <= model.global_batch_tokens <= 1e8 for model in MODELS if model.global_batch_tokens)


def test_an_unknown_model_gets_near_names():
    with pytest.raises(UsageError) as caught:
        find_model("llama-3.1-71b")

    assert caught.value.message == "unknown model `llama-3.1-71b`"
    assert "`llama-3.1-70b`" in (caught.value.hint or "")
