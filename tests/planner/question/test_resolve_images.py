import pytest

from planner.errors import UsageError
from planner.question.asked import Ask
from planner.question.question import Question
from planner.question.resolve import resolve


def ask(**texts: str) -> Question:
    return resolve(Ask(texts=texts))


def test_a_name_alone_takes_imagenet_and_the_usual_number_of_passes():
    resnet, vit = ask(model="resnet-50"), ask(model="vit-b-16")

    assert resnet.tokens == 1_281_167 * 90
    assert vit.tokens == 1_281_167 * 300
    assert (resnet.seq_len, resnet.global_batch, resnet.batch_band) == (1, 1024, (820, 1280))
    assert (resnet.optimizer.id, vit.optimizer.id, resnet.stack) == ("sgd-momentum", "adamw", "eager")
    assert resnet.policy.id == "bf16-autocast"
    assert "tokens" not in resnet.inputs
    assert "seq_len" not in resnet.inputs
    for name in ("examples", "epochs", "global_batch", "stack"):
        assert resnet.inputs[name].source == "default"


@pytest.mark.parametrize(("texts", "samples"), [
    ({"samples": "115M"}, 115e6),
    ({"examples": "1.28M", "epochs": "90"}, 1.28e6 * 90),
    ({"examples": "50k"}, 50e3),
    ({"epochs": "0.5"}, 1_281_167 / 2),
])  # fmt: skip
def test_samples_are_given_or_follow_from_the_data_set(texts, samples):
    assert ask(model="resnet-50", **texts).tokens == pytest.approx(samples)


def test_a_larger_image_takes_more_work():
    usual, larger = ask(model="resnet-50"), ask(model="resnet-50", image_size="448")

    assert usual.model.network is not None
    assert larger.model.network is not None
    assert larger.model.network.flop_per_image > 3.9 * usual.model.network.flop_per_image
    assert larger.inputs["image_size"].note is not None


@pytest.mark.parametrize(("texts", "message"), [
    ({"tokens": "1B"}, "--tokens applies only to language models"),
    ({"seq_len": "512"}, "--seq-len applies only to language models"),
    ({"samples": "1M", "examples": "1M"}, "both --samples and --examples"),
    ({"samples": "1M", "epochs": "3"}, "both --samples and --epochs"),
    ({"tp": "2"}, "--tp splits a model"),
    ({"pp": "4"}, "--pp splits a model"),
    ({"zero": "3"}, "--zero"),
    ({"act_ckpt": "full"}, "--act-ckpt"),
    ({"method": "lora"}, "--method"),
    ({"offload": "optimizer"}, "--offload"),
    ({"image_size": "8"}, "--image-size"),
    ({"stack": "hf"}, "--stack: `hf` is only planned for language models"),
    ({"stack": "torchtune"}, "--stack: `torchtune` is only planned for language models"),
    ({"stack": "unsloth"}, "--stack: `unsloth` is only planned for language models"),
    ({"epochs": "0"}, "--epochs"),
    ({"examples": "1e14", "epochs": "1000"}, "1e+17 samples"),
])  # fmt: skip
def test_what_does_not_belong_to_images_is_refused_with_a_hint(texts, message):
    with pytest.raises(UsageError) as caught:
        ask(model="resnet-50", **texts)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(("texts", "instead"), [
    ({"tokens": "1B"}, "--samples"), ({"seq_len": "512"}, "--image-size"), ({"loss": "fused"}, "leave it out"),
])  # fmt: skip
def test_what_takes_the_place_of_an_input_of_language_models_is_told(texts, instead):
    with pytest.raises(UsageError) as caught:
        ask(model="resnet-50", **texts)

    assert instead in str(caught.value.hint)


@pytest.mark.parametrize(("model", "size", "nearest"), [
    ("vit-b-16", 225, 224), ("vit-b-16", 300, 304), ("vit-b-16", 17, 16), ("swin-t", 255, 256),
    ("vit_large_patch14_224", 336 + 1, 336),
])  # fmt: skip
def test_images_of_a_transformer_are_whole_patches(model, size, nearest):
    with pytest.raises(UsageError, match="are not a whole number of the") as caught:
        ask(model=model, image_size=str(size))

    assert f"`--image-size {nearest}`" in str(caught.value.hint)
    assert ask(model=model, image_size=str(nearest)).inputs["image_size"].value == nearest


@pytest.mark.parametrize("model", ["resnet-50", "convnext-t", "efficientnet_b0"])
def test_a_network_without_patches_takes_any_size(model):
    assert ask(model=model, image_size="225").inputs["image_size"].value == 225


def test_an_image_size_that_is_none_is_refused_with_one_that_is():
    with pytest.raises(UsageError, match="at least 16") as caught:
        ask(model="vit-b-16", image_size="0")

    assert caught.value.hint == "for example --image-size 224"


@pytest.mark.parametrize(("texts", "message"), [
    ({"image_size": "224"}, "--image-size applies only to vision models"),
    ({"samples": "1M", "tokens": "1B"}, "both --tokens and --samples"),
    ({"epochs": "3"}, "--epochs was given without --examples"),
])  # fmt: skip
def test_what_belongs_to_images_is_refused_of_language_models(texts, message):
    with pytest.raises(UsageError, match=message):
        ask(model="bert-base", **texts)


def test_the_samples_of_an_encoder_are_sequences():
    bert = ask(model="bert-base", samples="10M", seq_len="128")

    assert bert.tokens == 10e6 * 128
    assert bert.inputs["tokens"].source == "derived"


def test_a_name_that_nobody_has_offers_near_ones_of_both_kinds():
    with pytest.raises(UsageError, match="unknown model") as caught:
        ask(model="resnet5")
    assert "resnet50" in str(caught.value.hint)
