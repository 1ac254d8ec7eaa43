from dataclasses import replace

import pytest

from planner.validation.runs import PublishedRun, Rejected, parse_run
from planner.validation.setup import Prepared, _prepare, prepare, prepare_run
from reports.text.messages import word

BERT = {
    "id": "b", "model": "BERT-Large", "family": "bert", "precision": "fp16", "gpu": "v100-sxm2-32gb", "n_gpus": "8",
    "seq_len": "512", "global_batch_seqs": "4096", "micro_batch": "8", "tp": "1", "pp": "1",
    "framework": "PyTorch (NGC)", "metric": "samples_per_s", "method": "pretrain",
}  # fmt: skip


def prepared(**cells: str) -> Prepared:
    run = parse_run(BERT | cells)
    assert isinstance(run, PublishedRun), run
    ready = prepare_run(run)
    assert isinstance(ready, Prepared), ready
    return ready


def reason(**cells: str) -> str:
    run = parse_run(BERT | cells)
    assert isinstance(run, PublishedRun), run
    refused = prepare_run(run)
    assert isinstance(refused, Rejected), refused
    return word(refused.reason)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"gpu": "tpu-v4"}, "gpu: tpu-v4 is not a GPU"),
        ({"gpu": "h900"}, "unknown GPU `h900`"),
        ({"precision": ""}, "precision: blank"),
        ({"precision": "int4"}, "precision: unknown `int4`"),
        ({"precision": "bf16"}, "does not support BF16 matrix multiplication"),
        ({"seq_len": ""}, "seq_len: blank"),
        ({"n_gpus": ""}, "n_gpus: blank"),
        ({"global_batch_seqs": "", "micro_batch": ""}, "batch: neither"),
        ({"metric": "gpu_hours"}, "tokens_total: blank"),
        ({"method": "distill"}, "method: unknown `distill`"),
        ({"optimizer": "sgdd"}, "unknown optimizer `sgdd`"),
        ({"power_limit_w": "50"}, "power_limit_w: 50 is below the 150 W that NVIDIA V100 SXM2 32GB takes at least"),
    ],
)
def test_a_row_that_lacks_what_is_needed_is_refused_with_the_reason(cells, expected):
    assert expected in reason(**cells)


def texts(ready: Prepared) -> list[str]:
    return [default.text for default in ready.filled]


def test_what_is_filled_in_is_listed():
    ready = prepared(gpus_per_node="", framework="", act_ckpt="")

    assert "gpus_per_node: 8" in texts(ready)
    assert "act_ckpt: the least that fits" in texts(ready)
    assert "stack: typical" in texts(ready)


def test_runs_of_one_layout_share_it_and_none_keeps_the_layouts_that_were_searched():
    first, second = prepared(), prepared(global_batch_seqs="8192", id="c")
    searched = prepared(framework="Megatron-LM", tp="", pp="")

    assert first.layouts.at(0) != second.layouts.at(0)
    assert prepared(id="d").layouts is first.layouts
    assert [len(layouts) for layouts in (first.layouts, searched.layouts)] == [1, 1]
    assert searched.layouts.tp.base is None


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


def test_optimizer_offload_fused_loss_and_update_in_backward_of_the_row_are_used():
    plain = prepared().recipe
    stated = prepared(optimizer="adamw-8bit", offload="optimizer", fused_loss="y", in_backward="yes").recipe

    assert (plain.optimizer.id, plain.offload, plain.chunked_loss, plain.update_in_backward) == (
        "lamb", "none", False, False
    )  # fmt: skip
    assert (stated.optimizer.id, stated.offload, stated.chunked_loss, stated.update_in_backward) == (
        "adamw-8bit", "optimizer", True, True
    )  # fmt: skip
    refused = prepared(fused_loss="n", in_backward="no", offload="none").recipe
    assert (refused.chunked_loss, refused.update_in_backward, refused.offload) == (False, False, "none")


@pytest.mark.parametrize(("framework", "fused_loss", "chunked"), [
    ("torchtune", "", True), ("torchtune", "n", False), ("torchtitan", "", False), ("torchtitan", "y", True),
])  # fmt: skip
def test_a_loss_is_chunked_where_the_row_says_so_or_else_the_framework_does(framework, fused_loss, chunked):
    cells = {"gpu": "a100-sxm4-80gb", "model": "Llama3.1-8B", "family": "dense", "precision": "bf16"}

    assert prepared(framework=framework, fused_loss=fused_loss, **cells).recipe.chunked_loss is chunked


@pytest.mark.parametrize(("framework", "balances"), [("nanotron", True), ("torchtitan", False)])
def test_nanotron_cuts_its_stages_by_cost(framework, balances):
    assert prepared(framework=framework).recipe.balances_stages is balances


def test_an_encoder_in_eager_pytorch_trains_with_dropout_and_unfused_attention():
    # Hugging Face's BERT: attention_probs_dropout_prob 0.1; no fused attention before transformers 4.43 (2024)
    plain = prepared(framework="PyTorch", gpu="a100-sxm4-40gb").recipe
    stated = prepared(framework="PyTorch", gpu="a100-sxm4-40gb", attention="sdpa").recipe

    assert (plain.attention, plain.dropout) == ("naive", True)
    assert stated.attention == "flash"


def test_the_power_limit_and_network_of_the_row_are_used():
    ready = prepared(power_limit_w="150", network="4x100Gb Omni-Path per node", gpus_per_node="4")

    assert ready.cluster.power_limit_w == 150
    assert ready.cluster.nic_bytes_per_s == 12.5e9


def test_the_batch_follows_from_micro_batches_where_it_is_not_given():
    ready = prepared(global_batch_seqs="", micro_batch="8", grad_accum="4")

    assert ready.recipe.global_batch == 8 * 8 * 4


def test_a_row_that_could_not_be_read_stays_rejected():
    refused = Rejected(id="x", reason="metric: blank")

    assert prepare([refused]) == [refused]


@pytest.mark.parametrize(
    ("batch", "evaluated"),
    [
        ("4096", 4096),  # 8 ranks x 8 sequences x 64
        ("4090", 4096),  # 511.25 a rank, in the nearest even split of 64 micro-batches of 8
    ],
)
def test_an_uneven_batch_is_evaluated_even_and_its_scale_kept(batch, evaluated):
    ready = prepared(global_batch_seqs=batch)

    assert ready.recipe.global_batch == evaluated
    assert ready.batch_scale == pytest.approx(float(batch) / evaluated)


def test_where_it_matters_the_length_of_the_run_is_its_tokens_and_else_one_step():
    assert prepared(framework="TensorFlow 1 (NGC)").tokens == 4096 * 512
    assert prepared(metric="gpu_hours", tokens_total="1e11").tokens == 1e11


def test_a_part_that_was_limited_by_an_unknown_amount_is_taken_at_three_quarters():
    ready = prepared(gpu="b200-sxm-180gb-power-limited")

    assert ready.cluster.power_limit_w == 750  # of 1000 W
    assert "power_limit_w: 750" in texts(ready)


def test_a_family_of_gpus_is_refused_with_its_parts_and_a_short_name_of_one_part_is_not():
    told = reason(gpu="h100")

    assert told.startswith("GPU `h100` matches several models; say which one: `h100-pcie-80gb`, `h100-sxm5-80gb`")
    assert prepared(gpu="H100 SXM").cluster.gpu.id == "h100-sxm5-80gb"


def test_runs_that_differ_in_labels_alone_are_set_up_once_and_keep_their_labels(monkeypatch):
    first = prepared().run
    repeated, odd = replace(first, id="again", lineage="other"), replace(first, id="odd", n_gpus=None)
    made = []
    monkeypatch.setattr(
        "planner.validation.setup._prepare", lambda run, rows: made.append(run.id) or _prepare(run, rows)
    )

    ready = prepare([first, repeated, odd, replace(odd, id="odd-too")])

    assert made == [first.id, "odd"]
    assert [item.id if isinstance(item, Rejected) else item.run.id for item in ready] == [
        first.id, "again", "odd", "odd-too",
    ]  # fmt: skip
    assert ready[1].run.lineage == "other"


@pytest.mark.parametrize(("model", "optimizer"), [("resnet-50", "sgd-momentum"), ("vit-b-16", "adamw")])
def test_a_vision_model_has_the_optimizer_of_its_kind_as_in_a_plan(model, optimizer):
    cells = {"id": "x", "metric": "samples_per_s", "gpu": "l40s", "model": model, "precision": "fp16", "n_gpus": "8"}
    (ready,) = prepare([parse_run(cells | {"micro_batch": "64"})])

    assert isinstance(ready, Prepared)
    assert ready.recipe.optimizer.id == optimizer
