"""`--redact names`: a word in everything that a user may name, and in no output of a copy without names."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mpplan.app import main
from planner.question.input import flag_of
from planner.question.inputs import INPUTS
from reports import LANGUAGES, render
from reports.document.public import PRIVATE_INPUTS, PRIVATE_VALUES, PUBLIC_INPUTS, PUBLIC_VALUES
from reports.explain.walk import FIGURES
from reports.text.messages import templates
from tests.mpplan.named import PLACES, Names, asked
from tests.reports.packed import unpacked

WORD = "Zqxsecret"
SAID = re.compile(r"zqxsecre(?:t(\d+))?", re.IGNORECASE)
"""The word with the number of its place, or the eight letters of it that are shown of a run's id."""
NEVER_TOLD = {"host", "run id", "runs cells", "runs id"}
"""Places that an answer says nothing of; of a run's id it has eight letters."""
FORMATS = ("html", "markdown", "terminal", "csv", "json")


def run(*arguments: str) -> str:
    """What `mpplan` prints on stdout; it has to succeed."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    assert code == 0, err.getvalue()
    out.flush()
    return out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Saved answers to questions in which everything has a name, with their copies without names."""
    home = tmp_path_factory.mktemp("named")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(home / "home"))
        patch.chdir(home)
        files = {}
        for name, text in asked(home, Names(word=WORD), run).items():
            files[name] = home / f"{name}-{WORD}.json"
            files[name].write_text(text, encoding="utf-8")
            files[f"{name} copy"] = home / f"{name}.json"
            run("report", str(files[name]), "--redact", "names", "-o", str(files[f"{name} copy"]), "--quiet")
        yield files


def read(output: str) -> str:
    """An output with what is packed into it."""
    return output + json.dumps(unpacked(output), ensure_ascii=False) if 'id="packed"' in output else output


def names_in(output: str) -> list[str]:
    return [match[0] for match in SAID.finditer(read(output))]


def test_the_answers_themselves_have_the_names(answers):
    told = {PLACES[int(number)] for path in answers.values() for number in SAID.findall(path.read_text()) if number}

    assert set(PLACES) - told == NEVER_TOLD


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["quoted", "measured", "booked"])
def test_no_report_of_a_copy_without_names_has_one(answers, name, form, lang):
    given = run("report", str(answers[name]), "--redact", "names", "--format", form, "--lang", lang)
    copied = run("report", str(answers[f"{name} copy"]), "--format", form, "--lang", lang)

    assert names_in(given) == []
    assert names_in(copied) == []


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_no_comparison_without_names_has_one(answers, form, lang):
    pair = (str(answers["quoted"]), str(answers["measured"]))

    assert names_in(run("report", *pair, "--redact", "names", "--format", form, "--lang", lang)) == []
    assert names_in(run("report", *pair, "--redact", "names,prices", "--format", form, "--lang", lang)) == []


PRINTER = """#!/bin/sh
for word do
    case $word in
        --print-to-pdf=*) target=${word#*=} ;;
        file://*) page=${word#file://} ;;
    esac
done
{ echo "$@"; cat "$page"; } > "$target"
"""
"""In the place of a browser: the PDF is what it was given, its arguments and the page."""


@pytest.fixture
def printer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser whose PDF can be searched: letters of a real one are numbers of its fonts."""
    program = tmp_path / "browser"
    program.write_text(PRINTER, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("MPPLAN_BROWSER", str(program))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_pdf_of_a_copy_without_names_is_printed_from_a_page_that_has_none(answers, printer, lang):
    pair = (str(answers["quoted"]), str(answers["measured"]))

    assert names_in(run("report", pair[0], "--format", "pdf")) != []
    for given in (pair[:1], pair[1:], pair):
        assert names_in(run("report", *given, "--redact", "names", "--format", "pdf", "--lang", lang)) == []


@pytest.mark.parametrize("figure", FIGURES)
def test_no_explanation_of_a_copy_without_names_has_one(answers, figure):
    for name in ("quoted", "measured", "booked"):
        for extra in ((), ("--json",)):
            assert names_in(run("explain", str(answers[f"{name} copy"]), figure, *extra)) == []


@pytest.mark.parametrize("form", ["cost-csv", "focus"])
def test_no_export_of_a_copy_without_names_has_one(answers, form):
    for name in ("quoted", "measured", "booked"):
        assert names_in(run("export", str(answers[f"{name} copy"]), "--format", form)) == []


def test_no_parquet_of_a_copy_without_names_has_one(answers, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    bill = tmp_path / "bill.parquet"

    for name in ("quoted", "measured", "booked"):
        run("export", str(answers[f"{name} copy"]), "-o", str(bill), "--quiet")
        rows = pq.read_table(bill).to_pylist()
        assert len(rows) > 10
        assert names_in(repr(rows)) == []
        assert SAID.search(bill.read_bytes().decode("latin-1")) is None  # nor do its statistics and metadata


def amounts(value: Any, of_money: bool = False) -> Iterator[float]:
    """Every figure of money in a document that is long enough to be told from another."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from amounts(inner, of_money or "usd" in key)
    elif isinstance(value, list):
        for inner in value:
            yield from amounts(inner, of_money)
    elif of_money and isinstance(value, float) and len(f"{value:.9g}") >= 6:
        yield value


@pytest.mark.parametrize("name", ["quoted", "measured", "booked"])
def test_no_figure_of_money_is_in_a_copy_without_prices(answers, name):
    document = json.loads(answers[name].read_text())
    copy = run("report", str(answers[name]), "--redact", "prices", "--format", "json")

    told = {f"{amount:.9g}" for amount in amounts(document)}
    figures = {f"{float(number):.9g}" for number in re.findall(r"\d+\.\d+(?:e[-+]?\d+)?", copy)}
    assert len(told) > 20
    assert told & figures == set()


def test_a_copy_keeps_its_figures_and_the_package_s_own_sources(answers):
    given, copy = (json.loads(answers[name].read_text()) for name in ("quoted", "quoted copy"))
    figures = ("gpus", "duration_days", "cost_usd", "energy_mwh", "carbon_tco2e", "memory_gib", "step_s", "layout")

    assert [[plan[name] for name in figures] for plan in copy["plans"]] == [
        [plan[name] for name in figures] for plan in given["plans"]
    ]
    assert [row["kind"] for row in copy["evidence"]] == [row["kind"] for row in given["evidence"]]
    assert "NVIDIA H200 SXM 141GB: rates, memory, links and power of the part" in {
        row["what"] for row in copy["evidence"]
    }


def test_a_copy_lacks_no_part_that_nobody_decided_to_leave_out(answers):
    for name in ("quoted", "measured", "booked"):
        given, copy = (json.loads(answers[key].read_text()) for key in (name, f"{name} copy"))
        assert given.keys() - copy.keys() == set()
        assert given["question"].keys() - copy["question"].keys() <= PRIVATE_INPUTS


def test_every_input_of_the_question_is_decided_to_be_public_or_private():
    assert {item.name for item in INPUTS} == PUBLIC_INPUTS | PRIVATE_INPUTS
    assert set() == PUBLIC_INPUTS & PRIVATE_INPUTS


def test_the_page_on_security_says_of_every_private_input_what_becomes_of_it():
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")

    assert [name for name in PRIVATE_INPUTS if f"`{flag_of(name)}`" not in page] == []


def test_every_text_in_a_message_of_an_answer_is_decided_to_be_public_or_private():
    elsewhere = ("error.", "hint.", "skipped.", "claim.")  # claims are the package's own, in no answer
    tables = {key: text for key, text in templates("en").items() if not key.startswith(elsewhere)}
    shown = {name for text in tables.values() for name in re.findall(r"\{(\w+)(?::(?:gpu|flag|driver|and))?\}", text)}

    assert shown - PUBLIC_VALUES - PRIVATE_VALUES - MESSAGES - NUMBERS == set()
    assert set() == PUBLIC_VALUES & PRIVATE_VALUES


MESSAGES = {
    "against", "basis", "batches", "critical", "ffn", "hour", "note", "shape", "text", "used", "usual", "why", "reason",
    "runs", "in_time", "over", "attention", "convention", "flags", "inside", "nearest", "new", "old", "parameters",
    "part", "peak", "time", "way", "whole", "costs",
}  # fmt: skip
"""Values that are messages themselves."""
NUMBERS = {
    "published",
    "cp", "dp", "ep", "experts", "head_dim", "heads", "hidden", "kv_heads", "layers", "layouts", "measured", "nodes",
    "able", "looked", "pp", "planned", "points", "top_k", "tp", "vocab", "global_batch", "count", "members", "counted",
    "pixels", "most", "more", "digits", "near", "before", "after", "machine", "terms",
}  # fmt: skip


# A name that is code: the same answers, with the word replaced in every place

ATTACKS = (
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<!--<script>", "&lt;script&gt;",
    "--><img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "' onmouseover='alert(1)", "]]>{{ 7*7 }}${7*7}",
    "a\u2028alert(1)\u2029", "\\u003cscript>", "javascript:alert(1)",
)  # fmt: skip


class Page(HTMLParser):
    """The elements, attributes and comments of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.comments: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.links |= {str(value) for name, value in attrs if name in ("href", "src")}

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def called(value: Any, name: str) -> Any:
    """A JSON value with another name in place of the word."""
    if isinstance(value, str):
        return SAID.sub(lambda _: name, value)
    if isinstance(value, list):
        return [called(inner, name) for inner in value]
    return {key: called(inner, name) for key, inner in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def harmless_pages(answers):
    """The pages of the same answers with a word in every place."""
    documents = {name: json.loads(answers[name].read_text()) for name in ("quoted", "measured", "booked")}
    return {
        name: Page(str(render(called(document, "plain"), "html", title="plain")))
        for name, document in documents.items()
    }


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", ["quoted", "measured", "booked"])
def test_a_name_that_is_code_is_text_in_the_page(answers, harmless_pages, name, attack):
    document = json.loads(answers[name].read_text())
    page = str(render(called(document, attack), "html", title=attack))
    expected, attacked = harmless_pages[name], Page(page)

    assert attacked.elements == expected.elements
    assert attacked.attributes == expected.attributes
    assert attacked.comments == expected.comments
    assert [link for link in attacked.links if not link.startswith(("#", "https://", "http://", "data:"))] == []
    assert re.findall("[\u2028\u2029]", page) == []
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert isinstance(json.loads(data), dict)
