import pytest

from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError, catalogue_model, model_of
from planner.validation.runs import PublishedRun, parse_run


def run(**cells: str) -> PublishedRun:
    parsed = parse_run({"id": "x", "gpu": "h100-sxm5-80gb", "metric": "step_time_s", "family": "dense"} | cells)
    assert isinstance(parsed, PublishedRun)
    return parsed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama3-8B", "llama-3-8b"),
        ("Llama3-70B LoRA", "llama-3-70b"),
        ("Llama3.1-405B proxy-21L", "llama-3.1-405b"),
        ("Llama2-70B LoRA (MLPerf)", "llama-2-70b"),
        ("GPT-2 124M", "gpt-2-124m"),
        ("BERT-Large fine-tune (SQuAD 1.1, seq 384)", "bert-large"),
        ("Qwen3-235B-A22B", "qwen3-235b-a22b"),
    ],
)
def test_a_model_s_name_is_found_without_its_trailing_words(name, expected):
    model = catalogue_model(name)

    assert model is not None
    assert model.name == expected


def test_a_name_that_the_catalogue_lacks_is_none():
    assert catalogue_model("Nemotron-3-Ultra (hybrid Mamba MoE)") is None


def test_the_row_s_own_layers_win_over_the_catalogue_s():
    model = model_of(run(model="Llama3.1-405B proxy-21L", n_layers="21", hidden="16384", n_heads="128"), Filled())

    assert (model.layers, model.gated_mlp, model.kv_heads) == (21, True, 8)


@pytest.mark.parametrize(
    ("name", "n_layers", "expected"),
    [
        ("Nemotron-H-56B", "", (59, 10, 54)),
        ("Nemotron-H-56B", "118", (59, 10, 54)),  # as its publisher counts, each block alone
        ("Nemotron-H-56B", "24", (12, 2, 11)),
        ("Qwen3-Next-80B-A3B", "48", (48, 12, 36)),
        ("Qwen3-Next-80B-A3B", "8", (8, 2, 6)),
    ],
)
def test_a_hybrid_of_fewer_layers_keeps_its_shares(name, n_layers, expected):
    model = model_of(run(model=name, n_layers=n_layers), Filled())

    assert model.linear is not None
    assert (model.layers, model.attention_layers, model.linear.layers) == expected


def test_a_shape_without_catalogue_entry_is_told_gated_from_plain_by_its_parameters():
    # MPT-like: 32 layers of 4096 with two matrices of 16384 are 6.4e9 and an embedding of 50368 rows
    cells = {"model": "our own", "n_layers": "32", "hidden": "4096", "n_heads": "32", "vocab": "50368"}
    plain = model_of(run(**cells, ffn_hidden="16384", params_total="6650000000"), Filled())
    gated = model_of(run(**cells, ffn_hidden="11008", params_total="6900000000"), Filled())

    assert not plain.gated_mlp
    assert plain.tied_embeddings
    assert gated.gated_mlp


def test_missing_layers_follow_from_the_parameter_count():
    filled = Filled()
    model = model_of(run(model="BLOOM-proto", hidden="14400", n_heads="64", ffn_hidden="57600", vocab="250880",
                         params_total="200000000000"), filled)  # fmt: skip

    assert model.layers == 79  # (200e9 - 250880 x 14400) / (12 x 14400^2)
    assert [default.text for default in filled][-1].startswith("n_layers: 79, from 2e+11")


def test_a_run_without_shape_is_refused_with_the_reason():
    with pytest.raises(CannotPredictError, match="shape: n_layers, hidden, n_heads blank"):
        model_of(run(model="Nemotron-3-Ultra (hybrid Mamba MoE)", params_total="500000000000"), Filled())


def test_an_unknown_convolutional_network_is_refused():
    with pytest.raises(CannotPredictError, match="no network is called `EfficientNet`"):
        model_of(run(model="EfficientNet", family="cnn"), Filled())


def test_an_encoder_predicts_15_percent_of_its_tokens_and_has_512_positions():
    # Devlin et al. (arXiv 1810.04805, section 3.1): 15 % of the word pieces are masked; 512 positions, biases
    cells = {"model": "our own", "n_layers": "24", "hidden": "1024", "n_heads": "16", "vocab": "30522"}
    model = model_of(run(**cells | {"family": "bert"}), Filled())

    assert (model.kind, model.head_ratio, model.learned_positions, model.biases) == ("encoder", 0.15, 512, True)
    # 24 layers of 12 h^2 and their biases and norms, 30 522 + 512 rows of embedding: 335 M of BERT-Large's 340 M
    assert model.params_total == pytest.approx(335e6, rel=0.01)


def test_what_neither_row_nor_catalogue_says_is_filled_in_and_named():
    filled = Filled()
    model = model_of(run(model="our own", n_layers="24", hidden="2048"), filled)

    # heads of 128, a feed-forward of 4 h, GPT-2's vocabulary
    assert (model.heads, model.head_dim, model.ffn_hidden, model.vocab) == (16, 128, 8192, 50257)
    assert (model.kv_heads, model.kind, model.head_ratio, model.context) == (16, "decoder", 1.0, 2048)
    assert model_of(run(model="our own", n_layers="24", hidden="2048", seq_len="512"), Filled()).context == 512
    texts = [default.text for default in filled]
    assert texts[:3] == ["n_heads: 16 of 128", "ffn_hidden: 8192, 4 x hidden", "vocab: 50257"]
    assert texts[3:] == ["feed-forward: plain, by its width"]


def test_half_of_an_encoder_decoder_s_layers_look_at_the_encoder():
    # T5-11B: 24 + 24 layers (Raffel et al., arXiv 1910.10683, section 3.7)
    model = model_of(run(model="our own", family="encdec", n_layers="48", hidden="1024", n_heads="128"), Filled())

    assert (model.kind, model.cross_attention_layers, model.cross_share) == ("encoder-decoder", 24, 0.5)


def test_experts_without_a_stated_choice_are_chosen_in_twos():
    cells = {"model": "our own", "n_layers": "4", "hidden": "1024", "n_heads": "8", "ffn_hidden": "3584"}
    two = model_of(run(**cells, n_experts="8"), Filled())
    stated = model_of(run(**cells, n_experts="8", top_k="1", expert_ffn="512"), Filled())

    assert (two.experts, two.top_k, two.expert_ffn) == (8, 2, 3584)
    assert (stated.top_k, stated.expert_ffn) == (1, 512)


def test_a_proxy_of_a_model_with_dense_layers_keeps_at_least_one_of_experts():
    # DeepSeek-V3 has three dense layers (arXiv 2412.19437, section 4.2)
    assert model_of(run(model="DeepSeek-V3", n_layers="3"), Filled()).dense_layers == 2
    assert model_of(run(model="DeepSeek-V3", n_layers="61"), Filled()).dense_layers == 3


@pytest.mark.parametrize(("name", "network"), [("resnet-50", "resnet50"), ("vit-b-16 (224)", "vit_base_patch16_224")])
def test_a_vision_model_is_found_by_its_name_alone(name, network):
    """The template has no column for the family."""
    model = model_of(run(model=name, family=""), Filled())

    assert (model.name, model.has_network) == (network, True)


def test_a_vision_model_is_not_taken_for_a_row_that_states_another_family():
    with pytest.raises(CannotPredictError, match="not in the catalogue"):
        model_of(run(model="resnet-50"), Filled())
