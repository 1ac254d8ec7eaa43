"""The check of a document agrees with `jsonschema` about what agrees with its schema."""

from __future__ import annotations

import copy
import json
import random

import pytest
from jsonschema import Draft202012Validator

from mpplan.ui.schema import check_schema, file_of
from planner.errors import InputFileError
from tests.reports import extras, sample

ESTIMATE = "mpplan.estimate/2"
ANSWER = json.loads(json.dumps(sample.document() | extras.EXTRAS))
STRANGE = (None, "x", -1, 1.5, True, [], {}, [1], {"low": 1}, 10**20)


def opened(schema):
    """The schema as a reader takes it: keys that a later version adds are ignored."""
    if isinstance(schema, list):
        return [opened(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: opened(inner) for key, inner in schema.items() if (key, inner) != ("additionalProperties", False)}


VALIDATOR = Draft202012Validator(opened(json.loads(file_of(ESTIMATE).read_text(encoding="utf-8"))))


def damaged(seed):
    """The answer with one value replaced or one key removed, anywhere."""
    choice = random.Random(seed)
    document = copy.deepcopy(ANSWER)
    inner = document
    while True:
        places = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        place = choice.choice(places)
        value = inner[place]
        if not isinstance(value, dict | list) or not value or choice.random() < 0.15:
            break
        inner = value
    if choice.random() < 0.3 and isinstance(inner, dict):
        del inner[place]
    else:
        inner[place] = choice.choice(STRANGE)
    return document


def accepted(document):
    try:
        check_schema(copy.deepcopy(document), ESTIMATE, "plan.json")
    except InputFileError:
        return False
    return True


@pytest.mark.parametrize("group", range(2))
def test_verdicts_on_damaged_answers_are_those_of_jsonschema(group):
    documents = [damaged(seed) for seed in range(group * 50, group * 50 + 50)]
    verdicts = [accepted(document) for document in documents]

    assert verdicts == [VALIDATOR.is_valid(document) for document in documents]
    assert 0 < sum(verdicts) < len(verdicts)


def test_a_value_is_quoted_in_one_short_line():
    with pytest.raises(InputFileError) as caught:
        check_schema(ANSWER | {"mpplan": {}, "created_at": ""} | {"plans": "x" * 500 + "\n\x1b[31m"}, ESTIMATE, "p")

    assert len(str(caught.value.message)) < 120
    assert "\x1b" not in str(caught.value.message)
