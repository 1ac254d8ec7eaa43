"""By which names others know the models of the catalogue."""

from __future__ import annotations

from planner.models.catalogue import load_models
from planner.models.published_names import PublishedNames, load_published_names, published_names


def test_names_are_of_models_in_the_catalogue_and_have_an_owner() -> None:
    names = load_published_names()

    assert set(names) <= set(load_models())
    assert len(names) > 100
    assert [model for model, known in names.items() if (known.hugging_face or "").count("/") != 1] == []
    assert [known for known in names.values() if (known.torchtitan is None) != (known.torchtitan_flavor is None)] == []


def test_a_model_has_its_repository_and_its_size() -> None:
    assert published_names("llama-3-8b") == PublishedNames(
        hugging_face="meta-llama/Meta-Llama-3-8B", torchtitan="llama3", torchtitan_flavor="8B"
    )
    assert published_names("qwen2.5-7b").torchtitan is None


def test_a_model_that_nobody_knows_has_none() -> None:
    assert published_names("7B") == PublishedNames()
