"""Values of flags that several commands share."""

from __future__ import annotations

import pytest

from mpplan.ui.options import names
from planner.errors import UsageError


def test_names_are_separated_by_commas_and_none_is_asked_for_without_the_flag() -> None:
    assert names("bf16, fp8,", "--precision") == ("bf16", "fp8")
    assert names(None, "--precision") == ()


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_a_flag_that_is_given_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--workload: expected a name, found nothing") as caught:
        names(text, "--workload")

    assert "leave --workload out" in str(caught.value.hint)
