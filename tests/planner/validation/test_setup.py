import pytest

from planner.validation.runs import PublishedRun, Rejected, parse_run
from planner.validation.setup import Prepared, network_bytes_per_s, prepare, prepare_run
from reports.text.messages import word

BERT = {
    "id": "b", "model": "BERT-Large", "family": "bert", "precision": "fp16", "gpu": "v100-sxm2-32gb", "n_gpus": "8",
    "seq_len": "512", "global_batch_seqs": "4096", "micro_batch": "8", "tp": "1", "pp": "1",
    "framework": "PyTorch (NGC)", "metric": "samples_per_s", "method": "pretrain",
}  # fmt: skip


def prepared(**cells: str) -> Prepared:
    run = parse_run(BERT | cells)
    assert isinstance(run, PublishedRun), run
    found = prepare_run(run)
    assert isinstance(found, Prepared), found
    return found


def reason(**cells: str) -> str:
    run = parse_run(BERT | cells)
    assert isinstance(run, PublishedRun), run
    found = prepare_run(run)
    assert isinstance(found, Rejected), found
    return word(found.reason)


@pytest.mark.parametrize(
    ("text", "node", "gb_per_s"),
    [
        ("8x200Gb HDR IB per DGX A100 (Selene)", 8, 25.0),
        ("4x100Gb Omni-Path per node", 4, 12.5),
        ("4x100Gb Omni-Path per node", 8, 6.25),
        ("Jean Zay V100: 4 GPUs/node, 4x100Gb Omni-Path", 4, 12.5),
        ("400 Gb/s RDMA per GPU", 8, 50.0),
        ("400Gb/s CX-7 per GPU", 8, 50.0),
        ("1600 Gb/s RoCE per node", 8, 25.0),
        ("8x50GB/s IB", 8, 50.0),
        ("Slingshot-11, 4x200Gb per node", 8, 12.5),
        ("HDR IB (Selene)", 8, 25.0),
    ],
)
def test_a_network_s_words_become_a_rate_per_gpu(text, node, gb_per_s):
    assert network_bytes_per_s(text, node) == pytest.approx(gb_per_s * 1e9)


def test_words_without_a_rate_say_nothing():
    assert network_bytes_per_s("NVL72", 4) is None
    assert network_bytes_per_s("", 8) is None


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"gpu": "tpu-v4"}, "gpu: tpu-v4 is not a GPU"),
        ({"gpu": "h900"}, "unknown GPU `h900`"),
        ({"precision": ""}, "precision: blank"),
        ({"precision": "int4"}, "precision: unknown `int4`"),
        ({"precision": "bf16"}, "no BF16 matrix path"),
        ({"seq_len": ""}, "seq_len: blank"),
        ({"n_gpus": ""}, "n_gpus: blank"),
        ({"global_batch_seqs": "", "micro_batch": ""}, "batch: neither"),
        ({"metric": "gpu_hours"}, "tokens_total: blank"),
        ({"method": "distill"}, "method: unknown `distill`"),
    ],
)
def test_a_row_that_lacks_what_is_needed_is_refused_with_the_reason(cells, expected):
    assert expected in reason(**cells)


def test_what_is_filled_in_is_listed():
    found = prepared(gpus_per_node="", framework="", act_ckpt="")

    assert "gpus_per_node: 8" in found.filled
    assert "act_ckpt: the least that fits" in found.filled
    assert "stack: tuned" in found.filled


def test_bert_s_sequences_are_binned_in_pytorch_and_padded_in_tensorflow():
    # half of Wikipedia's tokens at 512 are padding (arXiv 2107.02027); bins of 64 keep a part of it
    binned, padded = prepared(), prepared(framework="TensorFlow 1 (NGC)")

    assert binned.recipe.seq_len == 282
    assert binned.nominal_ratio == pytest.approx(512 / 282)
    assert padded.recipe.seq_len == 512
    assert padded.nominal_ratio == 1.0


def test_fine_tuning_an_encoder_leaves_out_its_vocabulary_layer():
    assert prepared(method="sft").recipe.model.head_ratio < 0.001
    assert prepared().recipe.model.head_ratio == 0.15


def test_compile_decides_between_eager_and_compiled_but_not_a_tuned_stack():
    assert prepared(compile="y").recipe.stack == "fsdp-compile"
    assert prepared(compile="n").recipe.stack == "eager"
    assert prepared(compile="n", framework="Megatron-Bridge 26.04").recipe.stack == "tuned"


def test_megatron_lm_means_megatron_core_from_hopper_on():
    old = prepared(framework="Megatron-LM", gpu="v100-sxm2-32gb")
    new = prepared(framework="Megatron-LM", gpu="h100-sxm5-80gb", precision="bf16")

    assert (old.recipe.attention, old.framework.id) == ("naive", "megatron")
    assert (new.recipe.stack, new.recipe.attention) == ("tuned", "flash")


def test_a_gpu_before_ampere_has_no_fused_attention_unless_it_is_said():
    assert prepared(framework="nanotron").recipe.attention == "naive"
    assert prepared(framework="nanotron", attention="flash").recipe.attention == "flash"


def test_the_power_limit_and_network_of_the_row_are_used():
    found = prepared(power_limit_w="150", network="4x100Gb Omni-Path per node", gpus_per_node="4")

    assert found.cluster.power_limit_w == 150
    assert found.cluster.nic_bytes_per_s == 12.5e9


def test_the_batch_follows_from_micro_batches_where_it_is_not_given():
    found = prepared(global_batch_seqs="", micro_batch="8", grad_accum="4")

    assert found.recipe.global_batch == 8 * 8 * 4


def test_a_row_that_could_not_be_read_stays_rejected():
    refused = Rejected(id="x", reason="metric: blank")

    assert prepare([refused]) == [refused]
