"""Kinds of tasks: those that `mpplan numerics` trains, each of one kind."""

from __future__ import annotations

from planner.safety.tasks import KIND_OF_TASK, LANGUAGE, VISION, is_of, plan_kind, suits
from probes.numerics.tasks import TASKS


def test_every_task_that_can_be_trained_has_a_kind():
    assert set(KIND_OF_TASK) == {task.id for task in TASKS}


def test_text_is_like_a_language_model_and_digits_like_a_model_that_sees_images():
    assert plan_kind(sees_images=False) == LANGUAGE
    assert plan_kind(sees_images=True) == VISION
    assert suits("masked-lm", LANGUAGE)
    assert not suits("digits-cnn", LANGUAGE)
    assert suits("digits-vit", VISION)


def test_the_users_own_task_may_stand_for_any_plan_but_is_surely_of_no_kind():
    assert suits("own", LANGUAGE)
    assert suits("own", VISION)
    assert not is_of("own", LANGUAGE)
    assert not is_of("own", VISION)
    assert not is_of(None, LANGUAGE)
