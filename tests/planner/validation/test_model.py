import pytest

from planner.validation.model import CannotPredictError, catalogue_model, model_of
from planner.validation.runs import PublishedRun, parse_run


def run(**cells: str) -> PublishedRun:
    found = parse_run({"id": "x", "gpu": "h100-sxm5-80gb", "metric": "step_time_s", "family": "dense"} | cells)
    assert isinstance(found, PublishedRun)
    return found


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
    found = catalogue_model(name)

    assert found is not None
    assert found.name == expected


def test_a_name_that_the_catalogue_lacks_is_none():
    assert catalogue_model("Nemotron-3-Super-120B-A12B (hybrid Mamba MoE)") is None


def test_the_row_s_own_layers_win_over_the_catalogue_s():
    model = model_of(run(model="Llama3.1-405B proxy-21L", n_layers="21", hidden="16384", n_heads="128"), [])

    assert (model.layers, model.gated_mlp, model.kv_heads) == (21, True, 8)


def test_a_shape_without_catalogue_entry_is_told_gated_from_plain_by_its_parameters():
    # MPT-like: 32 layers of 4096 with two matrices of 16384 are 6.4e9 and an embedding of 50368 rows
    cells = {"model": "our own", "n_layers": "32", "hidden": "4096", "n_heads": "32", "vocab": "50368"}
    plain = model_of(run(**cells, ffn_hidden="16384", params_total="6650000000"), [])
    gated = model_of(run(**cells, ffn_hidden="11008", params_total="6900000000"), [])

    assert not plain.gated_mlp
    assert plain.tied_embeddings
    assert gated.gated_mlp


def test_missing_layers_follow_from_the_parameter_count():
    filled: list[str] = []
    model = model_of(run(model="BLOOM-proto", hidden="14400", n_heads="64", ffn_hidden="57600", vocab="250880",
                         params_total="200000000000"), filled)  # fmt: skip

    assert model.layers == 79  # (200e9 - 250880 x 14400) / (12 x 14400^2)
    assert filled[-1].startswith("n_layers: 79, from 2e+11")


def test_a_run_without_shape_is_refused_with_the_reason():
    with pytest.raises(CannotPredictError, match="shape: n_layers, hidden, n_heads blank"):
        model_of(run(model="Nemotron-H-56B (hybrid Mamba)", params_total="56000000000"), [])


def test_an_unknown_convolutional_network_is_refused():
    with pytest.raises(CannotPredictError, match="no network is called `EfficientNet`"):
        model_of(run(model="EfficientNet", family="cnn"), [])
