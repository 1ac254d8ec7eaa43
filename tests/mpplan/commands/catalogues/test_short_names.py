"""Short names in the commands that show the catalogues."""

import pytest


@pytest.mark.parametrize(
    ("command", "full", "note"),
    [
        (("gpus", "h100"), "h100-sxm5-80gb", "`h100` is taken to mean h100-sxm5-80gb"),
        (("models", "llama-3"), "llama-3-8b", "`llama-3` is taken to mean llama-3-8b"),
        (("prices", "show", "H100"), "h100-sxm5-80gb", "`H100` is taken to mean h100-sxm5-80gb"),
    ],
)
def test_a_short_name_shows_the_usual_row_as_a_plan_takes_it_and_says_so(run, command, full, note):
    short, whole = run(*command), run(*command[:-1], full)

    assert (short.code, short.out) == (0, whole.out)
    assert note in " ".join(short.err.split())
    assert note not in " ".join(whole.err.split())


def test_a_full_name_needs_no_note(run):
    assert run("models", "gpt-3").err == ""
