"""The forms of a report: golden text, whole data, and a page that holds everything and lets nothing in."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from copy import deepcopy
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import pytest

import reports
from mpplan.api.answer import estimate
from mpplan.api.document import to_document
from planner.errors import UsageError
from planner.question.asked import InputValue
from reports.formats import FORMATS, pdf
from reports.formats.csv import head_of, paths_of
from reports.formats.html import closer, embedded, short, with_code
from reports.formats.markdown import escaped
from reports.formats.terminal import pad
from reports.page.build import checked
from reports.text.clean import clean_tree
from reports.text.language import words_for
from reports.text.width import columns_of, wrapped
from reports.view.page_data import packed
from tests.reports import sample
from tests.reports.conftest import HERE, QUESTIONS
from tests.reports.extras import EXTRAS
from tests.reports.node import in_node
from tests.reports.packed import read, unpacked
from tests.reports.record import GOLDEN, golden

LIMIT_BYTES = 150_000


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_text_is_the_golden_one(recorded, name):
    expected = (HERE / "golden" / name).read_text(encoding="utf-8")

    assert golden(recorded, name) == expected, "if it is meant: python -m tests.reports.record, then look at the diff"


def test_every_form_is_a_file_of_the_folder():
    files = {path.stem for path in (Path(reports.__file__).parent / "formats").glob("*.py")} - {"__init__"}

    assert files == set(FORMATS)


def test_an_unknown_form_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="unknown `docx`") as caught:
        reports.render(sample.document(), "docx")

    assert "html, markdown" in (caught.value.hint or "")


# terminal


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_no_line_is_longer_than_the_terminal(ask, width, lang, name):
    text = str(reports.render(ask(name), "terminal", width=width, lang=lang, color=False))

    assert [line for line in text.splitlines() if columns_of(line) > width] == []


def test_the_whole_answer_has_the_bill_the_memory_and_the_step_and_leaves_no_row_out(recorded):
    asked = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    text = str(reports.render(recorded, "terminal", width=120, color=False))

    for caption in ("Bill for FP8", "Peak memory of one GPU by item", "Time of one step by item",
                    "Energy by item, and its carbon", "Layouts of FP8: the chosen one and alternatives"):  # fmt: skip
        assert caption in text
    rows = text.split("Peak memory of one GPU by item")[1].split("\n\n")[0].splitlines()
    assert len(rows) > len(asked["memory_gib"])


def test_without_colour_there_is_no_escape_sequence(recorded):
    assert "\x1b" not in str(reports.render(recorded, "terminal", color=False))


def test_colour_only_adds_escape_sequences(recorded):
    plain = str(reports.render(recorded, "terminal", width=80, color=False))
    coloured = str(reports.render(recorded, "terminal", width=80, color=True))

    cost = next(row for row in recorded["plans"] if row["precision"] == "fp8")["cost_usd"]["mid"]
    assert f"\x1b[1m${cost / 1e6:.1f} million\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_no_color_is_honoured(recorded, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b" not in str(reports.render(recorded, "terminal"))


def test_the_terminal_form_loads_neither_rich_nor_jinja2_nor_pandas(recorded):
    program = (
        "import json, sys, reports; reports.render(json.load(sys.stdin), 'terminal');"
        "print(sorted({'rich', 'jinja2', 'pandas', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(recorded), capture_output=True, text=True,
                          check=True, cwd=HERE.parents[1])  # fmt: skip

    assert done.stdout.strip() in ("[]", "['numpy']")


def test_wide_characters_take_two_columns():
    assert columns_of("显存 80") == 7
    assert pad("显存", 6, right=True) == "  显存"
    assert wrapped("时长的区间主要来自：方程", 12) == ["时长的区间主", "要来自：方程"]
    assert all(columns_of(line) <= 10 for line in wrapped("各精度在相同 GPU 上如何运行，以及为何", 10))


# Markdown


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", "[click](javascript:alert(1))", "| cell | cell |", "**bold** _it_ `code`", "![i](x)",
     "<!-- hidden -->", "~~gone~~", "&lt;b&gt;", "# title"],
)  # fmt: skip
def test_markdown_shows_text_as_it_is(text):
    shown = escaped(text)

    assert not re.search(r"(?<!\\)[`*_\[\]<>#|~!]", shown)


def test_a_markdown_table_has_the_same_cells_in_every_row(recorded):
    text = str(reports.render(recorded, "markdown"))
    for block in re.split(r"\n\n", text):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1, rows[:2]


# CSV and JSON


def test_the_csv_has_a_row_per_view_gpu_and_precision_with_the_document_s_numbers(recorded):
    table = csv.DictReader(io.StringIO(str(reports.render(recorded, "csv"))))
    rows = [row for row in table if row["view"] != "curve"]
    plans = recorded["plans"] + recorded["same_deadline"]

    assert len(rows) == len(plans) == 10
    for row, plan in zip(rows, plans, strict=True):
        assert row["precision"] == plan["precision"]
        if not plan["fits"]:  # strict FP32 is not done in thirty days on any number of GPUs
            assert (row["cost_usd_high"], row["tp"]) == ("", "")
            continue
        assert float(row["cost_usd_high"]) == plan["cost_usd"]["high"]
        for end in ("low", "mid", "high"):
            assert float(row[f"memory_gib_total_{end}"]) == plan["memory_gib"]["total"][end]
        assert int(row["tp"]) == plan["layout"]["tp"]


def test_the_csv_has_what_the_building_draws_on_average_and_at_its_peak(recorded):
    row = next(csv.DictReader(io.StringIO(str(reports.render(recorded, "csv")))))
    plan = recorded["plans"][0]

    assert float(row["mean_power_mw_mid"]) == pytest.approx(plan["mean_power_mw"]["mid"])
    assert float(row["mean_power_mw_high"]) < float(row["peak_power_mw"]) == pytest.approx(plan["peak_power_mw"])


def test_the_csv_has_the_energy_by_item_and_every_figure_of_carbon_that_the_answer_has(recorded):
    plan = recorded["plans"][1]
    plan |= {"carbon_market_tco2e": 0.0, "embodied_tco2e": {"low": 0.2, "mid": 0.5, "high": 0.9, "at_least": False}}

    row = list(csv.DictReader(io.StringIO(str(reports.render(recorded, "csv")))))[1]

    items = [float(row[f"energy_items_mwh_{name}"]) for name in ("gpu", "host", "network", "pue_overhead")]
    assert sum(items) == pytest.approx(float(row["energy_mwh_mid"]))
    assert float(row["sci_kg_per_run_high"]) == plan["sci_kg_per_run"]["high"]
    assert (row["carbon_market_tco2e"], row["embodied_tco2e_low"]) == ("0", "0.2")
    assert not any(name.startswith("carbon_with_embodied") for name in row)  # which was not asked for


def test_the_curve_has_a_row_per_number_of_gpus_in_the_csv():
    rows = list(csv.DictReader(io.StringIO(str(reports.render(sample.targets_document(), "csv")))))
    curve = [row for row in rows if row["view"] == "curve"]

    assert [(row["precision"], row["gpus"]) for row in curve] == [
        ("fp8", "128"), ("fp8", "256"), ("fp8", "512"), ("fp8", "1024"), ("fp8", "2048"),
    ]  # fmt: skip
    assert [row["chosen"] for row in curve] == ["false", "false", "true", "false", "false"]
    assert [row["knee"] for row in curve] == ["false", "false", "false", "true", "false"]
    assert (curve[0]["cost_usd_mid"], curve[0]["in_time"], curve[0]["in_budget"]) == ("810000", "false", "true")
    assert (rows[0]["probability_deadline"], rows[0]["memory_risk"]) == ("0.83", "0.021")


def test_a_left_out_precision_has_a_row_with_its_reason():
    rows = list(csv.DictReader(io.StringIO(str(reports.render(sample.unsupported_document(), "csv")))))

    assert {row["precision"]: row["why_not"] for row in rows if row["fits"] == "false"} == {
        "fp32": "does not fit because the leanest of 120 layouts needs 150.6 GiB per GPU, "
        "71.4 GiB more than the 79.2 GiB available to a process on one A100 SXM4 80 GB",
        "fp8": "NVIDIA A100 SXM4 80GB (Ampere) does not support FP8 matrix multiplication in hardware",
    }


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-2+3", "@sum", "\t=1"])
def test_a_spreadsheet_finds_no_formula_in_a_text(text):
    document = sample.document()
    document["plans"][0]["policy"] = text
    row = next(csv.DictReader(io.StringIO(str(reports.render(document, "csv")))))

    assert row["policy"].startswith("'")


def test_the_json_form_is_the_document(recorded):
    assert json.loads(str(reports.render(recorded, "json"))) == recorded


# HTML


class Reader(HTMLParser):
    """What a page refers to, and whether its elements are closed in order."""

    VOID = frozenset({"meta", "link", "img", "input", "br", "hr"})
    ENDED_BY = MappingProxyType({
        "li": ("li",), "td": ("td", "th"), "th": ("td", "th"), "tr": ("td", "th", "tr"),
        "tbody": ("td", "th", "tr", "thead"), "/ul": ("li",), "/table": ("td", "th", "tr", "thead", "tbody"),
        "dd": ("dt",), "/div": ("dd",),
    })  # fmt: skip
    """What a start tag (or `/` end tag) closes by itself where it is open (HTML standard, 13.1.2.4, optional tags)."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.addresses: list[tuple[str, str]] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.feed(page)

    def _end_open(self, tag):
        while self.open and self.open[-1] in self.ENDED_BY.get(tag, ()):
            self.open.pop()

    def handle_starttag(self, tag, attrs):
        self._end_open(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "action", "srcset", "data", "poster", "xlink:href"):
                self.addresses.append((tag, value or ""))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        self._end_open(f"/{tag}")
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)


PAGES = {
    "plain": sample.document,
    "does not fit": sample.unsupported_document,
    "three GPUs": sample.several_gpus_document,
    "targets": sample.targets_document,
    "everything": lambda: sample.document() | EXTRAS,
}


@pytest.mark.parametrize("name", list(PAGES))
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_the_page_is_well_formed_and_every_place_in_it_is_unique(name, lang):
    page = Reader(str(reports.render(PAGES[name](), "html", lang=lang)))

    assert page.crossed == []
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert [where for tag, where in page.addresses if where.startswith("#") and where[1:] not in page.ids] == []


@pytest.mark.parametrize("name", list(PAGES))
def test_nothing_in_the_page_is_fetched(name):
    text = str(reports.render(PAGES[name](), "html"))
    page = Reader(text)

    used = [(tag, where) for tag, where in page.addresses if tag != "a"]
    assert set(used) <= {("use", "#whisker"), ("use", "#break")}
    assert len(used) == text.count("<use ")
    assert {where.split(":")[0] for tag, where in page.addresses if not where.startswith("#")} <= {"https", "http"}
    assert "@import" not in text


def test_the_page_has_no_inline_style_or_handler():
    page = Reader(str(reports.render(sample.document() | EXTRAS, "html")))

    assert [name for name in page.attributes if name == "style" or name.startswith("on")] == []


def test_the_policy_lets_in_this_style_and_this_script_only():
    page = str(reports.render(sample.document(), "html"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style, script = (
        re.search(r"<style>(.*?)</style>", page, re.DOTALL),
        re.search(r"<script>(.*?)</script>", page, re.DOTALL),
    )
    assert policy
    assert style
    assert script
    hashes = [base64.b64encode(hashlib.sha256(tag[1].encode()).digest()).decode() for tag in (style, script)]

    assert policy[1].replace("&#39;", "'") == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize("name", ["fp8", "bf16 on A100, which has no FP8", "mixture of experts", "LoRA"])
def test_the_page_of_one_plan_is_at_most_150_kb(ask, lang, name):
    assert len(str(reports.render(ask(name), "html", lang=lang)).encode()) <= LIMIT_BYTES


@pytest.fixture(scope="module")
def two_gpus():
    return to_document(estimate(params="70B", gpu="b200,h100", deadline="30d", as_of="2026-11-20"))


@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_the_page_of_two_gpus_is_at_most_150_kb_with_every_plan_to_download(two_gpus, lang):
    page = str(reports.render(two_gpus, "html", lang=lang))
    head, _, tail = unpacked(page)
    held = head | tail

    assert len(page.encode()) <= LIMIT_BYTES
    for view in ("plans", "same_deadline"):
        days = [plan["duration_days"]["mid"] for plan in two_gpus[view] if plan["fits"]]
        assert [plan["duration_days"]["mid"] for plan in held[view] if plan["fits"]] == pytest.approx(days, rel=1e-6)
    asked = [plan["products"] for plan in held["plans"] if plan["precision"] == "bf16"]
    assert len(asked) == 2
    assert all(asked)


@pytest.fixture(scope="module")
def five_gpus():
    gpus = "h100,a100,b200,h200,mi300x"
    return to_document(estimate(params="70B", gpu=gpus, deadline="60d", as_of="2026-11-20"))


@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_the_page_of_five_gpus_is_at_most_150_kb_with_the_asked_precision_of_each_to_download(five_gpus, lang):
    page = str(reports.render(five_gpus, "html", lang=lang))
    head, _, tail = unpacked(page)
    held = head | tail

    assert len(page.encode()) <= LIMIT_BYTES
    gpus = {plan["gpu"] for plan in five_gpus["plans"]}
    assert len(gpus) == 5
    assert {plan["gpu"] for plan in held["plans"] if plan["precision"] == "bf16"} == gpus
    assert held["evidence"] == clean_tree(five_gpus["evidence"])
    bills = {(plan["gpu"], plan["precision"]): plan["cost_lines"] for plan in five_gpus["plans"]}
    for plan in held["plans"]:
        assert [line["usd"]["mid"] for line in plan["cost_lines"]] == [
            line["usd"]["mid"] for line in bills[plan["gpu"], plan["precision"]]
        ]
    assert len(str(reports.render(held, "html", lang=lang)).encode()) <= LIMIT_BYTES


@pytest.fixture(scope="module")
def twenty_gpus(five_gpus):
    """Each of the five GPUs four times, under other names and with sources of its own."""
    document = deepcopy(five_gpus)
    for view in ("plans", "same_deadline", "savings", "curve", "evidence"):
        rows = [row for row in five_gpus[view] if row.get("gpu")]
        for number in range(1, 4):
            copies = [deepcopy(row) | {"gpu": f"{row['gpu']}-{number}"} for row in rows]
            document[view] += [row | {"what": f"{row['what']} ({number})"} if "what" in row else row for row in copies]
    return document


@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_the_page_of_twenty_gpus_is_at_most_150_kb_and_says_what_it_leaves_out(twenty_gpus, lang):
    page = str(reports.render(twenty_gpus, "html", lang=lang))
    words = words_for(lang)
    head, _, tail = unpacked(page)

    assert len({plan["gpu"] for plan in twenty_gpus["plans"]}) == 20
    assert len(page.encode()) <= LIMIT_BYTES
    assert page.count(str(with_code(words("note.shorter")))) == 2
    assert str(with_code(words("download.lead_shortened"))) in page
    side_by_side = re.search(r'<section id="gpus".*?</section>', page, re.DOTALL)
    assert side_by_side
    assert side_by_side[0].count("<tr") == 21  # with its head
    assert {plan["gpu"] for plan in (head | tail)["plans"]} >= {twenty_gpus["plans"][0]["gpu"]}


def test_data_are_called_shortened_where_they_are(recorded, five_gpus):
    words = words_for("en")
    whole, less = words("download.lead"), str(with_code(words("download.lead_shortened")))

    for document, told, other in ((recorded, whole, less), (five_gpus, less, whole)):
        page = str(reports.render(document, "html"))
        assert told in page
        assert other not in page


def test_the_same_document_gives_the_same_bytes(recorded):
    assert reports.render(recorded, "html") == reports.render(json.loads(json.dumps(recorded)), "html")


def test_the_page_holds_the_document_with_the_savings_of_what_was_asked_and_its_csv(recorded):
    page = str(reports.render(recorded, "html"))
    head, columns, tail = unpacked(page)

    asked = [row for row in recorded["savings"] if "fp8" in (row["from"], row["to"])]
    assert len(asked) < len(recorded["savings"])
    assert list((head | tail).items()) == list((recorded | {"savings": asked}).items())
    assert ",".join(head_of(path) for path in columns) == str(reports.render(recorded, "csv")).splitlines()[0]


def test_the_page_writes_the_csv_as_python_does(recorded):
    documents = [recorded, sample.targets_document(), sample.unsupported_document(), sample.document() | EXTRAS]
    documents[3]["plans"][0] |= {"policy": '=cmd("a", 1)', "why_not": "two\nlines"}
    checked_ones = [checked(document) for document in documents]
    theirs = in_node([[paths_of(document), document] for document in checked_ones], "table(...one)")

    assert theirs == [reports.render(document, "csv") for document in documents]


def test_numbers_of_the_chart_are_those_of_the_table(recorded):
    page = str(reports.render(recorded, "html"))
    plan = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    low, mid, high = (f"{plan['cost_usd'][key] / 1e6:.1f}" for key in ("low", "mid", "high"))
    for text in (f"${mid} million ({low}–{high})", f"{mid} <i>({low}–{high})</i>"):
        assert text in page


EVIL = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"'><svg onload=alert(1)>", "{{ 7*7 }}",
    "]]><!--", "a\u202eb\u2066c", "\x1b[2J", "javascript:alert(1)", "</style><style>*{display:none}</style>", "`x` | y",
)  # fmt: skip


@cache
def attributes_of_a_clean_page(lang: str) -> set[str]:
    return Reader(str(reports.render(sample.document(), "html", lang=lang))).attributes


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_nothing_that_a_user_writes_gets_out_of_its_place(evil, lang):
    question = sample.answer().question | {
        "model": InputValue(value=evil, source="flag"), "note": InputValue(value=[evil], source=evil, note=evil),
    }  # fmt: skip
    document = sample.document(question=question, command=("mpplan", evil), warnings=(evil,))
    document["model"]["name"] = evil
    document["assumptions"] = [{"id": evil, "text": evil, "change_with": evil}]
    document["gaps"] = [{"what": evil, "why": evil, "effect": evil}]
    document["unsupported"] = [{"precision": evil, "gpu": sample.GPU, "reason": evil}]
    document["plans"][-1] |= {"policy": evil}
    document["plans"][-1]["cost_lines"][0] |= {"label": evil, "id": evil, "unit": evil}
    for row in document["evidence"]:
        row |= {"what": evil, "source": evil, "used_in": [*row["used_in"], evil]}
    page = str(reports.render(document, "html", title=evil, lang=lang))
    read = Reader(page)

    assert (page.count("<script"), page.count("</script"), page.count("<style")) == (3, 3, 1)
    assert not re.search(r"<(img|svg onload|iframe)", page)
    assert read.crossed == read.open == []
    assert read.attributes <= attributes_of_a_clean_page(lang) | {"lang", "class", "colspan"}
    assert all(where.startswith(("#", "https://")) for _, where in read.addresses)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page)
    assert "{{ 7*7 }}" in page if evil == "{{ 7*7 }}" else True
    for fmt in ("terminal", "markdown", "csv"):
        assert not re.search(
            "[\u202a-\u202e\u2066-\u2069\x1b]", str(reports.render(document, fmt, title=evil, lang=lang))
        )


def test_a_script_element_cannot_be_ended_from_inside():
    text = embedded({"a": "</script><!--", "b": "\u2028&"})

    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--", "b": "\u2028&"}


def test_packed_data_is_the_same_every_time_and_comes_out_whole():
    value = {"a": [1.5, "ü", None]}

    assert packed(value) == packed(value)
    assert read(packed(value)) == value


def test_code_between_backticks_is_marked_and_escaped():
    assert str(with_code("run `mpplan <x>` now")) == "run <code>mpplan &lt;x&gt;</code> now"
    assert str(with_code("a ` b <i>")) == "a ` b &lt;i&gt;"


def test_a_flag_is_code_so_that_no_line_ends_after_its_hyphens():
    assert str(with_code("give --price-like, or `a --b`")) == ("give <code>--price-like</code>, or <code>a --b</code>")
    assert str(with_code("用--price给出 -- a--b")) == "用<code>--price</code>给出 -- a--b"


def test_lines_below_another_stand_indented_in_the_page_and_in_markdown():
    document = sample.document()
    plan = document["plans"][-1]
    line = {
        "id": "a",
        "usd": plan["cost_usd"],
        "quantity": None,
        "unit": "",
        "unit_price_usd": None,
        "evidence_ids": [],
    }
    plan["cost_lines"] = [line | {"label": "outer", "children": [line | {"label": "inner"}]}]

    page = str(reports.render(document, "html"))

    assert re.search("<th[^>]*>outer<td", page)
    assert re.search("<th[^>]*>&nbsp;&nbsp;&nbsp;inner<td", page)
    assert "\n| &nbsp;&nbsp;&nbsp;inner |" in reports.render(document, "markdown")


def test_every_part_of_a_comparison_is_linked_once_and_its_data_are_called_what_they_are(recorded):
    page = str(reports.render_comparison(recorded, sample.document(), "html"))
    places = re.findall(r'<li><a href="(#[a-z]+)">([^<]+)</a>', page)

    assert len({name for _, name in places}) == len(places) == 4
    assert words_for("en")("compare.download") in page
    assert re.search(r"Made by mpplan \S+ on \d{4}-\d\d-\d\d \d\d:\d\d<", page)


def test_attributes_hold_short_numbers():
    assert (short(33.333333333), short(20.0), short(1.23405e6)) == ("33.3333", "20", "1.23405e+06")


# colours


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, ground: str) -> float:
    bright, dark = sorted((_luminance(colour), _luminance(ground)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def schemes() -> dict[str, dict[str, str]]:
    css = (Path(reports.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root\{([^}]*)\}", css)
    palettes = [dict(re.findall(r"--([\w-]+):(#[0-9a-fA-F]{3,6})", block)) for block in blocks]
    light, dark, printed = palettes
    return {"light": light, "dark": dark, "print": light | printed}  # dark is for screens alone


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_has_contrast_of_at_least_4_5_and_marks_of_3(scheme):
    colours = schemes()[scheme]
    for ground in ("paper", "card", "tint"):
        for text in ("ink", "soft", "accent", "good", "bad"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for number in range(8):
        assert contrast(colours[f"c{number}"], colours["paper"]) >= 3, number
        assert contrast(colours["on"], colours[f"c{number}"]) >= 4.5, number  # the letter in the segment
    assert contrast(colours["bar"], colours["paper"]) >= 3


# PDF


def test_without_a_browser_the_hint_says_what_to_do(monkeypatch):
    monkeypatch.setenv("MPPLAN_BROWSER", "no-such-browser")

    with pytest.raises(UsageError, match="no browser was found") as caught:
        reports.render(sample.document(), "pdf")
    assert "MPPLAN_BROWSER" in (caught.value.hint or "")


def test_a_browser_that_fails_is_named(monkeypatch):
    monkeypatch.setattr(pdf, "browser", lambda: "false")

    with pytest.raises(UsageError, match="`false` could not print the page"):
        reports.render(sample.document(), "pdf")


@pytest.mark.parametrize(
    ("line", "shorter"),
    [
        ("const a = (x, y) => { one.open = x; };", "const a=(x,y)=>{one.open=x;};"),
        ("const text = ' a = b, ' + \"it's (c)\" + d;", "const text=' a = b, ' + \"it's (c)\" + d;"),
        ("return a - -b + +c in d;", "return a - -b + +c in d;"),
        ("return /a = b, c/.test(x) ? 1 : 2;", "return /a = b, c/.test(x) ? 1 : 2;"),
        ("x = text.replace(/[, ]/g, '');", "x = text.replace(/[, ]/g, '');"),
    ],
)
def test_the_script_loses_spaces_that_part_nothing(line, shorter):
    assert closer(line) == shorter


@pytest.mark.parametrize("width", [60, 100])
def test_no_line_is_wider_than_the_terminal_where_a_gpu_has_another_precision(five_gpus, width):
    document = json.loads(json.dumps(five_gpus))
    document["question"]["precision"]["value"] = "fp8"  # which the A100 lacks
    text = str(reports.render(document, "terminal", width=width))

    assert "has no" in text
    assert max(columns_of(line) for line in text.splitlines()) <= width
