from collections import Counter

import pytest

from planner.models.images.catalogue import load_image_models
from tools.images.models import ALIASES, COLUMNS, packed, written


def test_shapes_stand_one_after_the_other_with_their_number():
    assert packed(Counter({(3, 64, 12544.0): 1, (64, 64, 3136.5): 3})) == "3 64 12544 1; 64 64 3136.5 3"


def test_numbers_are_short_and_whole_ones_exact():
    row = {"id": "resnet50", "params": 25557032, "saved_16": 111162431.4, "products": Counter({(1.0, 10): 2})}

    assert written(row) == {"id": "resnet50", "params": "25557032", "saved_16": "1.11162e8", "products": "1 10 2"}


def test_the_other_names_are_of_models_that_are_there():
    assert [name for name in ALIASES if name not in load_image_models()] == []
    assert len(set(COLUMNS)) == len(COLUMNS)


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224"])
def test_a_model_is_recorded_as_it_stands_in_the_catalogue(name):
    pytest.importorskip("timm")  # in an environment of its own
    from planner.models.images import catalogue
    from planner.rows import read_rows
    from tools.images.trace import trace

    (row,) = [row for row in read_rows(catalogue.PATH) if row.text("id") == name]
    recorded = written(trace(name))

    assert {key: row.cell(key) for key in recorded} == recorded
