"""The worked examples: a page says what its commands print today, and cannot say anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.pages.shell import Result
from tools.pages.write import PAGES, PageError, excerpt, page, said_by, templates

ROOT = Path(__file__).parents[3]
MANY = "one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize("name", templates())
def test_a_worked_example_is_what_its_commands_print(name):
    # a figure moved? `make examples`, and read the page again: a sentence may have to change with it
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == page(templates()[name])


def test_every_page_has_its_template_and_its_place_in_the_site():
    listed = re.findall(r"examples/(\S+)\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    assert sorted(listed) == sorted(templates()) == sorted(path.stem for path in PAGES.glob("*.md"))


@pytest.mark.parametrize("name", templates())
def test_every_plan_of_a_page_names_the_day_of_its_prices(name):
    shown = re.findall(r"^\$ (mpplan estimate .*)$", (PAGES / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert shown
    assert [command for command in shown if "--as-of 20" not in command] == []


@pytest.mark.parametrize(
    ("first", "to", "kept"),
    [
        ("", "", MANY.rstrip()),
        ("", "three", "one\ntwo\n…"),
        ("two", "four", "…\ntwo\nthree\n…"),
        ("four", "", "…\nfour"),
    ],
)
def test_what_is_left_out_of_an_output_is_marked(first, to, kept):
    assert excerpt(MANY, first, to) == kept


def test_a_line_that_is_not_in_the_output_stops_the_page():
    with pytest.raises(PageError, match="begins with `five`"):
        excerpt(MANY, to="five")


def test_a_figure_is_quoted_across_a_line_break():
    result = Result(command="x", code=0, out="about $1.3\nmillion (0.7–3.2)", err="")

    assert said_by(result, r"about \$([\d.]+ million)") == "1.3 million"
    with pytest.raises(PageError, match="not in the output of: x"):
        said_by(result, "(days)")


def written(tmp_path: Path, template: str) -> str:
    path = tmp_path / "a.template.md"
    path.write_text(template, encoding="utf-8")
    return page(path)


def test_a_template_runs_writes_quotes_and_checks(tmp_path):
    text = written(
        tmp_path,
        '{% call file("a.csv") %}\nb,3\n{% endcall %}\n{{ run("cat a.csv") }}\n'
        '{{ holds(said("b,(.)") | int == 3) }}{{ said("b,(.)") }} of them\n',
    )

    assert text == "```csv\nb,3\n```\n```console\n$ cat a.csv\nb,3\n```\n3 of them\n"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ('{{ run("false") }}', "exit code 1 in place of 0 of: false"),
        ('{{ run("true", code=8) }}', "exit code 0 in place of 8"),
        ("{{ holds(2 < 1) }}", "no longer bear out"),
    ],
)
def test_a_page_that_would_not_be_true_is_not_written(tmp_path, template, why):
    with pytest.raises(PageError, match=why):
        written(tmp_path, template)
