# ruff: noqa: E501 - a script, a row or a sentence stays on one line
"""The page in a real Chromium: accessible, whole at every width, live sliders, whole downloads, silent, printable."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import reports
from reports.document.facts import Facts
from reports.document.redact import redacted
from reports.page.build import checked
from reports.page.whatif import base_of, knobs_of, outcome
from reports.text.language import words_for
from tests.reports import sample
from tests.reports.conftest import read_recorded
from tests.reports.extras import EXTRAS

pytestmark = pytest.mark.browser

WIDTHS = (1440, 768, 360, 320)


def wide(document):
    """With FP32 requested, whose changes have four digits, a name that breaks nowhere, and two short links in a row."""
    name = "a-model-of-" + "W" * 120
    values = {"precision": "fp32", "model": name, "price": 3.49}
    given = {key: {"value": value, "source": "flag"} for key, value in values.items()}
    return document | {"question": document["question"] | given, "model": document["model"] | {"name": name}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports as files, each written once: `pages(name, lang)` gives the path of one."""
    folder, recorded = tmp_path_factory.mktemp("pages"), read_recorded()
    documents = {
        "plan": recorded,
        "everything": recorded | EXTRAS,
        "three GPUs": sample.several_gpus_document(),
        "targets": sample.targets_document(),
        "does not fit": sample.unsupported_document(),
        "without prices": redacted(checked(recorded), ["prices"]),
        "wide": wide(recorded),
    }

    def written(name: str, lang: str = "en") -> Path:
        path = folder / f"{name.replace(' ', '-')}-{lang}.html"
        if path.exists():
            return path
        if name == "comparison":
            page = reports.render_comparison(recorded, sample.document(), "html", lang=lang)
        else:
            page = reports.render(documents[name], "html", lang=lang)
        path.write_text(str(page), encoding="utf-8")
        return path

    return written


NAMES = ("plan", "everything", "three GPUs", "targets", "does not fit", "without prices", "wide", "comparison")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_axe_finds_nothing_and_nothing_is_refused_or_asked_for(browser, pages, name, lang):
    page = browser.page(pages(name, lang))
    if lang == "en":  # the colours are the same in every language, and nothing else depends on the scheme
        assert page.axe(colours=True) == []
        page.look(scheme="dark")
        assert page.axe(colours=True) == []
    for width in (1440, 390) if lang == "en" else (1440,):
        page.look(width=width)
        assert page.axe(colours=False) == []
    assert page.requests() == []
    assert page.complaints() == []
    page.close()


def test_axe_would_have_found_something(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<html><body><img src='data:,'><p style='color:#ccc;background:#fff'>pale</p></body></html>")
    page = browser.page(path)

    assert {line.split(":")[0] for line in page.axe()} >= {"image-alt", "color-contrast", "html-has-lang"}
    page.close()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUTSIDE = """[...document.querySelectorAll('main *, header *, footer *')]
  .filter((e) => !e.closest('.scroll, svg, .skip') && e.getClientRects().length)
  .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))"""
CUT = """[...document.querySelectorAll('svg text')]
  .filter((e) => e.getClientRects().length && !e.closest('details:not([open])'))
  .filter((e) => { const b = e.getBoundingClientRect(), s = e.closest('figure').getBoundingClientRect();
    return b.width && (b.right > s.right + 1.5 || b.left < s.left - 1.5); })
  .map((e) => e.textContent)"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_nothing_runs_out_of_the_page_at_any_width(browser, pages, name, lang):
    page = browser.page(pages(name, lang))
    for width in WIDTHS:
        page.look(width=width)
        assert (width, page.run(OVERFLOW), page.run(OUTSIDE)) == (width, 0, [])
        assert (width, page.run(CUT)) == (width, [])
    page.close()


OVERLAP = """[...document.querySelectorAll('svg')].flatMap((svg) => {
  const all = [...svg.querySelectorAll(':scope text')].filter((e) => e.getClientRects().length && e.getBoundingClientRect().width)
    .map((e) => [e.textContent, e.getBoundingClientRect()]);
  return all.flatMap(([s, a], i) => all.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
    .map(([t]) => s + ' | ' + t));
})"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_labels_of_charts_do_not_run_into_each_other(browser, pages, name, lang):
    page = browser.page(pages(name, lang))
    for width in WIDTHS:
        page.look(width=width)
        assert (width, page.run(OVERLAP)) == (width, [])
    page.close()


def test_the_first_screen_holds_the_answer_the_tiles_and_the_chart(browser, pages):
    page = browser.page(pages("plan"), width=1440, height=900)
    bottom = page.run("document.querySelector('.pair').getBoundingClientRect().bottom")

    assert bottom <= 900
    page.close()


def test_all_text_follows_the_size_that_a_reader_sets(browser, pages):
    page = browser.page(pages("plan"), width=1280)
    page.run("document.documentElement.style.fontSize = '200%'")

    assert page.run(
        "[...document.querySelectorAll('main p')].every((p) => parseFloat(getComputedStyle(p).fontSize) >= 24)"
    )
    assert (page.run(OVERFLOW), page.run(OUTSIDE)) == (0, [])
    page.close()


def test_the_page_is_whole_without_a_script(browser, pages):
    path = pages("plan")
    page = browser.page(path, script=False)
    shown = page.send("DOM.getDocument", depth=0)["root"]["nodeId"]
    html = page.send("DOM.getOuterHTML", nodeId=shown)["outerHTML"]
    hidden = re.findall(r'<section id="([^"]+)" data-script="" hidden=""', html)

    assert hidden == ["whatif", "download"]
    assert "<h1>FP8 trains" in html
    assert "<button" not in re.sub(r"<section id=\"(?:whatif|download)\".*?</section>", "", html, flags=re.DOTALL)
    page.close()


MOVE = "(() => {{ const s = document.getElementById('s-{name}'); s.value = {value}; s.dispatchEvent(new Event('input')); return Number(s.value); }})()"
ROWS = "Object.fromEntries([...document.querySelectorAll('[data-row]')].map((r) => [r.dataset.row, r.querySelector('[data-{where}]').textContent]))"


def told(document, lang, knobs_wanted):
    """What Python says the page must show."""
    words, facts = words_for(lang), Facts(checked(document))
    assert facts.answer is not None
    plan = knobs_of(facts, facts.answer)
    assert plan is not None
    figures = asdict(outcome(base_of(facts.answer), plan, replace(plan, **knobs_wanted)))
    kinds = {"cost_usd": "money", "days": "days", "gpu_hours": "plain", "energy_mwh": "energy", "carbon_t": "carbon",
             "bill_usd": "money"}  # fmt: skip
    shown = {}
    for name, kind in kinds.items():
        low, mid, high = figures[name]
        figure = words.figure(kind, {"low": low, "mid": mid, "high": high})
        shown[name] = figure.full if figure and mid else words("none")
    return shown


@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize(
    "wanted",
    [
        {"price": 2.0},
        {"tokens": 3e12, "goodput": 0.8},
        {"pue": 1.1, "grid": 0.05, "electricity": 0.12},
        {"price": 7.5, "runs": 4.0, "pue": 1.6, "tokens": 2.5e11, "goodput": 0.99, "grid": 0.9, "electricity": 0.3},
    ],
    ids=["a price", "a longer run", "a greener site", "everything"],
)
def test_the_sliders_show_what_python_computes(browser, pages, recorded, lang, wanted):
    page = browser.page(pages("plan", lang))
    before = page.run(ROWS.format(where="plan"))
    moved = {name: page.run(MOVE.format(name=name, value=value)) for name, value in wanted.items()}

    assert page.run(ROWS.format(where="now")) == told(recorded, lang, moved)
    assert page.run(ROWS.format(where="plan")) == before == told(recorded, lang, {})
    page.close()


def test_a_moved_slider_says_so_and_one_click_brings_the_plan_back(browser, pages):
    page = browser.page(pages("plan"))
    assert page.run("document.getElementById('moved').textContent") == "This is the plan."
    assert page.run("document.getElementById('reset').hidden")

    page.run(MOVE.format(name="price", value=5))
    cost = page.run(ROWS.format(where="now"))["cost_usd"]
    assert page.run("document.getElementById('moved').textContent") == f"This is no longer the plan. Cost: {cost}."
    assert page.run("document.getElementById('s-price').getAttribute('aria-valuetext')") == "$5.00"

    page.run("document.getElementById('reset').click()")
    assert page.run("document.getElementById('moved').textContent") == "This is the plan."
    assert page.run(ROWS.format(where="now")) == page.run(ROWS.format(where="plan"))
    assert page.run("location.hash") == "#whatif"
    page.close()


def test_the_state_lives_in_the_link(browser, pages):
    path = pages("plan")
    first = browser.page(path)
    first.run(MOVE.format(name="price", value=5))
    first.run(MOVE.format(name="runs", value=3))
    address, shown = first.run("location.href"), first.run(ROWS.format(where="now"))
    first.close()
    assert urllib.parse.urlsplit(address).fragment == "whatif?price=5&runs=3"

    second = browser.page(path)
    second.open(address)
    second.wait_for("document.getElementById('moved').textContent.startsWith('This is no longer the plan.')")
    assert second.run(ROWS.format(where="now")) == shown
    assert second.complaints() == []
    second.close()


@pytest.mark.parametrize(
    "fragment",
    ["whatif?price=NaN&pue=-3&nonsense=1&tokens=1e400", "whatif?price=%3Cscript%3E", "%", "whatif?__proto__=1"],
)
def test_a_broken_link_changes_nothing_beyond_the_span_of_a_slider(browser, pages, fragment):
    path = pages("plan")
    page = browser.page(path)
    page.run("window.addEventListener('hashchange', () => { window.heard = true; }); true")  # after the page's own
    page.open(f"{path.as_uri()}#{fragment}")
    page.wait_for("window.heard === true")
    values = page.run("[...document.querySelectorAll('#sliders input')].map((i) => [+i.min, +i.value, +i.max])")

    assert all(low <= value <= high for low, value, high in values)
    assert page.run("document.querySelectorAll('script').length") == 3
    page.close()


def test_a_slider_moves_with_the_keyboard(browser, pages):
    page = browser.page(pages("plan"))
    before = page.run("document.getElementById('s-price').focus(), document.getElementById('s-price').value")
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)

    assert float(page.run("document.getElementById('s-price').value")) > float(before)
    assert page.run("document.getElementById('moved').textContent").startswith("This is no longer the plan. Cost: $")
    page.close()


CATCH = """window.caught = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.caught.push(text)); return '#'; };
HTMLAnchorElement.prototype.click = function () { window.named = (window.named || []).concat(this.download); }; true"""


def test_downloads_are_the_document_and_its_csv(browser, pages, recorded):
    page = browser.page(pages("plan"))
    page.run(CATCH)
    for number, name in enumerate(("get-json", "get-csv"), start=1):
        page.run(f"document.getElementById('{name}').click()")
        page.wait_for(f"window.caught.length === {number}")
    as_json, as_csv = page.run("window.caught")

    asked = [row for row in recorded["savings"] if "fp8" in (row["from"], row["to"])]
    assert json.loads(as_json) == recorded | {"savings": asked}
    assert as_csv == reports.render(recorded, "csv")
    assert page.run("window.named") == ["plan.json", "plan.csv"]
    page.close()


COLUMN = "[...document.querySelectorAll('#answer tbody tr')].map((r) => r.cells[{n}].firstChild.textContent.trim())"


def test_a_table_is_sorted_by_number_and_back(browser, pages):
    page = browser.page(pages("plan"))
    press = "document.querySelectorAll('#answer thead button')[2].click()"
    first = page.run(COLUMN.format(n=0))
    page.run(press)
    assert page.run("document.querySelector('#answer [aria-sort]').getAttribute('aria-sort')") == "ascending"
    rising = page.run(COLUMN.format(n=2))
    assert len(rising) == 5
    assert rising == sorted(rising, key=float)
    page.run(press)
    assert page.run(COLUMN.format(n=2)) == rising[::-1]
    page.run(press)
    assert page.run(COLUMN.format(n=0)) == first
    assert page.run("document.querySelector('#answer [aria-sort]')") is None
    page.close()


PRESSED = """[...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter((e) => e.getClientRects().length)
  .filter((e) => !e.closest('details:not([open])') || e.tagName === 'SUMMARY').map((e) => [...document.querySelectorAll('*')].indexOf(e))"""


def test_everything_that_can_be_pressed_is_reached_by_tab(browser, pages):
    page = browser.page(pages("plan"))
    wanted = set(page.run(PRESSED))
    reached = set()
    for _ in range(len(wanted) + 3):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(page.run("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))

    assert wanted - reached == set()
    page.close()


STOPS = """[...document.querySelectorAll('.scroll')]
  .map((e) => [e.tabIndex, e.scrollWidth > e.clientWidth ? 0 : -1])"""


def test_a_table_is_a_stop_of_the_tab_key_only_where_it_is_wider_than_its_place(browser, pages):
    page = browser.page(pages("plan"))
    page.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    for width, any_scrolls in ((1440, False), (360, True), (1440, False)):
        page.look(width=width)
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        stops = page.run(STOPS)
        assert len(stops) > 15
        assert [index for index, _ in stops] == [wanted for _, wanted in stops]
        assert any(index == 0 for index, _ in stops) == any_scrolls
    page.close()


def test_a_moved_slider_is_told_once(browser, pages):
    """A slider's own value is in its `aria-valuetext`; the output beside it would be read a second time."""
    page = browser.page(pages("plan"))
    live = [
        (node["role"]["value"], value["value"]["value"])
        for node in page.send("Accessibility.getFullAXTree")["nodes"]
        for value in node.get("properties", ())
        if value["name"] == "live" and value["value"]["value"] != "off"
    ]

    assert live == [("status", "polite")]
    page.close()


@pytest.mark.parametrize("name", ["plan", "everything"])
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_it_prints_on_pages_that_are_neither_empty_nor_cut(browser, pages, tmp_path, name, lang):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext: run tests/browser_setup.sh")
    page = browser.page(pages(name, lang))
    path = tmp_path / "page.pdf"
    path.write_bytes(page.pdf())
    headings = page.run(
        "[...document.querySelectorAll('h2')].filter((h) => !h.closest('[data-script]')).map((h) => h.textContent)"
    )
    page.close()
    layout = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, text=True, check=True).stdout
    sheets = re.findall(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', layout, re.DOTALL)

    assert 3 <= len(sheets) <= 40
    for number, (width, height, content) in enumerate(sheets):
        boxes = [[float(v) for v in box] for box in re.findall(
            r'xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)"', content)]  # fmt: skip
        assert len(boxes) >= 10 or number == len(sheets) - 1
        assert all(left >= 0 and top >= 0 and right <= float(width) and bottom <= float(height)
                   for left, top, right, bottom in boxes), number  # fmt: skip
    text = re.sub(r"\s", "", re.sub(r"<[^>]+>", "", layout))
    for heading in headings:
        assert re.sub(r"\s", "", heading).replace("&", "&amp;") in text


def test_what_is_folded_on_the_screen_is_open_on_paper(browser, pages, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext: run tests/browser_setup.sh")
    page = browser.page(pages("plan"))
    path = tmp_path / "page.pdf"
    path.write_bytes(page.pdf())
    page.close()
    text = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout

    assert re.search(r"memory-bound operations\s+\d\.\d+", text)
    assert "What if" not in text


def test_a_folded_table_has_its_name_on_paper(browser, pages, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext: run tests/browser_setup.sh")
    page = browser.page(pages("plan"))
    folded = page.run("[...document.querySelectorAll('summary')].map((e) => e.textContent)")
    path = tmp_path / "page.pdf"
    path.write_bytes(page.pdf())
    page.close()
    text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True, check=True).stdout

    assert folded
    assert [name for name in folded if " ".join(name.split()) not in " ".join(text.split())] == []


PAPER = """((size) => ({
  small: ['.note', '.trust', '.legend', '.cap', 'figcaption', 'summary', 'td'].map(size).filter((px) => px > size('.lead')),
  ticks: size('.tick text') - size('.row .label'),
  cut: Math.max(...[...document.querySelectorAll('.tile')].map((e) => e.getBoundingClientRect().right))
    - document.querySelector('main').getBoundingClientRect().right,
}))((where) => parseFloat(getComputedStyle(document.querySelector(where)).fontSize))"""


def test_on_paper_no_small_print_is_larger_than_the_text_and_no_border_is_cut(browser, pages):
    page = browser.page(pages("plan"))
    page.look(width=688, media="print")
    paper = page.run(PAPER)
    page.close()

    assert paper["small"] == []
    assert paper["ticks"] <= 0
    assert paper["cut"] <= -1  # what ends at the edge of the paper's text area loses its right border


SCROLLED = """[...document.querySelectorAll('#views .scroll')].filter((e) => e.scrollWidth > e.clientWidth + 40).map((e) => {
  e.scrollLeft = 1e4;
  const head = e.querySelector('tbody th').getBoundingClientRect(), place = e.getBoundingClientRect();
  return [Math.round(head.left - place.left), getComputedStyle(e.querySelector('tbody th')).backgroundColor,
    getComputedStyle(e).backgroundImage.split('gradient').length - 1];
})"""


def test_a_table_that_scrolls_keeps_the_names_of_its_rows_and_shows_that_it_goes_on(browser, pages):
    page = browser.page(pages("plan"), width=360)
    tables = page.run(SCROLLED)
    page.close()

    assert tables
    for left, ground, shades in tables:
        assert left == 0
        assert ground not in ("rgba(0, 0, 0, 0)", "transparent")  # figures pass below the names
        assert shades == 2


def test_a_legend_keeps_its_colours_where_the_reader_sets_all_others(browser, pages):
    page = browser.page(pages("plan"))
    colour = "getComputedStyle(document.querySelector('.legend .swatch')).backgroundColor"
    own = page.run(colour)
    page.send("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    forced = page.run(colour)
    page.close()

    assert forced == own


def test_a_chart_is_named_by_its_caption_and_described_without_a_tooltip(browser, pages):
    page = browser.page(pages("plan"))
    page.send("Accessibility.enable")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    images = [node for node in nodes if not node["ignored"] and node["role"]["value"] == "image"]
    captions = page.run("[...document.querySelectorAll('figcaption')].map((e) => e.textContent)")
    tooltips = page.run("document.querySelectorAll('svg[role=img] > title').length")
    page.close()

    assert [node["name"]["value"] for node in images] == captions
    assert all(len(node["description"]["value"]) > 20 for node in images)
    assert tooltips == 0


def test_a_pdf_is_made_by_the_browser_that_is_there(browser, recorded):
    pdf = reports.render(recorded, "pdf")

    assert isinstance(pdf, bytes)
    assert pdf.startswith(b"%PDF-")


BLANK_BYTES = 30_000
"""An empty screen takes 6,000 as a PNG, one of the page 70,000 and more."""


@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots_for_a_human_are_not_blank(browser, pages, tmp_path, lang, scheme):
    page = browser.page(pages("plan", lang), scheme=scheme)
    for width in WIDTHS[:3]:
        page.look(width=width, scheme=scheme)
        for down in (0.0, 0.5, 1.0):
            page.run(f"scrollTo(0, {down} * document.documentElement.scrollHeight)")
            path = tmp_path / f"{lang}-{scheme}-{width}-{down}.png"
            page.picture(path)
            assert path.stat().st_size > BLANK_BYTES
    page.close()
