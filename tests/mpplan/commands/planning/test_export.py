"""`mpplan export`: bills that sum, in forms that finance reads."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpplan
from pricing.exports import cost_csv, focus_csv
from reports.page.build import build
from tests.examples import examples

HALF_CENT = 0.005 + 1e-6
"""The most that rounding to the cent moves an amount, and what binary fractions add."""
SMALL = ("--params", "7B", "--gpus", "8", "--precision", "fp8")


@pytest.fixture(scope="module")
def answered() -> dict[str, str]:
    """The answer of `plan`, once a test has asked for it."""
    return {}


@pytest.fixture
def plan(run, home, answered):
    """A saved answer with own machines and lines beside."""
    if not answered:
        (home / "own.toml").write_text("", encoding="utf-8")
        (home / "beside.toml").write_text("[experiments]\nratio = 0.5\n", encoding="utf-8")
        files = ("--own", "own.toml", "--beside", "beside.toml")
        answered["json"] = run("estimate", *SMALL, *files, "--embodied", "--json", "--quiet").out
    (home / "plan.json").write_text(answered["json"], encoding="utf-8")
    return "plan.json"


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_default_is_every_line_of_every_plan_as_csv(run, plan):
    result = run("export", plan)
    fp8 = [row for row in rows(result.out) if (row["view"], row["precision"]) == ("plans", "fp8")]

    assert (result.code, result.err) == (0, "")
    assert [row["line"] for row in fp8 if row["parent"] == "total"] == ["gpu_owned", "electricity", "experiments"]
    for column in ("usd_low", "usd_mid", "usd_high"):
        assert sum(Decimal(row[column]) for row in fp8 if row["is_leaf"] == "true") == Decimal(fp8[0][column])
    assert float(fp8[0]["embodied_kg_mid"]) > 0
    assert float(fp8[0]["sci_kg_mid"]) > float(fp8[0]["carbon_kg_mid"])


def test_focus_is_the_asked_plan_and_plainly_an_estimate(run, plan):
    bill = rows(run("export", plan, "--format", "focus").out)

    assert {row["x_Precision"] for row in bill} == {"fp8"}
    assert {row["x_IsEstimate"] for row in bill} == {"true"}
    assert {row["ProviderName"] for row in bill} == {"own machines"}
    assert {row["PricingCategory"] for row in bill if row["SkuId"] != "electricity"} == {"Other"}
    assert [row["PricingCategory"] for row in bill if row["SkuId"] == "electricity"] == ["Standard"]


def test_focus_of_another_plan_is_chosen_by_precision_and_view(run, plan):
    bill = rows(run("export", plan, "--format", "focus", "--precision", "bf16", "--view", "same-deadline").out)

    assert {row["x_Precision"] for row in bill} == {"bf16"}


def test_the_answer_may_come_from_stdin_and_go_to_a_file(run, plan, home, monkeypatch):
    class Bytes:
        buffer = io.BytesIO((home / plan).read_bytes())

    monkeypatch.setattr("sys.stdin", Bytes())
    result = run("export", "-", "-o", "bill.csv")

    assert result.err == "wrote bill.csv\n"
    assert rows((home / "bill.csv").read_text(encoding="utf-8"))


def test_a_file_that_ends_in_parquet_is_one(run, plan, home):
    pq = pytest.importorskip("pyarrow.parquet")

    assert run("export", plan, "-o", "bill.parquet").code == 0
    assert pq.read_table(home / "bill.parquet").num_rows > 10


def test_a_gpu_without_a_price_is_named_and_not_left_out_in_silence(run, home):
    small = ("--params", "7B", "--gpus", "8", "--precision", "bf16", "--gpu", "h100-sxm5-80gb,mi300x-192gb")
    (home / "two.json").write_text(run("estimate", *small, "--json", "--quiet").out, encoding="utf-8")

    result, quiet = run("export", "two.json"), run("export", "two.json", "--quiet")

    assert {row["gpu"] for row in rows(result.out)} == {"h100-sxm5-80gb"}
    assert result.err.startswith("warning: not in the bill, since no cost is known: mi300x-192gb")
    assert (result.code, quiet.err) == (0, "")


def test_a_form_that_is_asked_for_may_have_any_ending(run, plan, home):
    assert run("export", plan, "--format", "cost-csv", "-o", "bill.txt").code == 0
    assert (home / "bill.txt").read_text(encoding="utf-8").startswith("view,precision")


def test_a_plan_is_launched_and_what_is_not_in_its_file_is_a_note(run, plan):
    result = run("export", plan, "--launch", "megatron", "--gpu", "h100", "--precision", "BF16")

    assert result.code == 0
    assert result.out.startswith("#!/usr/bin/env bash\n")
    assert "on 1 node" in result.out
    assert result.err.startswith("not in the file: learning rate")


BAD_LAUNCH = {
    "an unknown framework": (("--launch", "megatrn"), "unknown framework `megatrn`", "did you mean `megatron`?"),
    "two kinds of file": (("--launch", "megatron", "--format", "focus"), "two different files", "ask for one"),
    "a GPU that is not there": (("--launch", "megatron", "--gpu", "b200"), "--gpu: the answer has no plan of `b200`",
                                "use one of h100-sxm5-80gb"),
    "a model that it has not": (("--launch", "torchtitan"), "does not include the model", "takes it as it is"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message", "hinted"), BAD_LAUNCH.values(), ids=BAD_LAUNCH)
def test_a_launch_that_cannot_be_says_why_and_what_to_do(run, plan, home, arguments, message, hinted):
    result = run("export", plan, *arguments, "-o", "launch.txt")
    error, hint = result.err.splitlines()

    assert (result.code, result.out) == (2, "")
    assert message in error
    assert hinted in hint
    assert not (home / "launch.txt").exists()


def test_a_plan_that_names_what_nobody_knows_is_an_invalid_file(run, plan, home):
    document = json.loads((home / plan).read_text(encoding="utf-8"))
    for row in document["plans"]:
        row["policy"] = "bf17"
    (home / "wrong.json").write_text(json.dumps(document), encoding="utf-8")
    result = run("export", "wrong.json", "--launch", "megatron")

    assert result.code == 3
    assert re.match(
        r"error: wrong\.json: plans\[\d\]\.policy: expected a name of the catalogue, found `bf17`\n", result.err
    )
    assert "\nhint: write the answer again" in result.err


BAD = {
    "an unknown form": (("--format", "xlsx"), 2, "xlsx", "cost-csv"),
    "an unknown view": (("--format", "focus", "--view", "all"), 2, "--view", "same-deadline"),
    "a precision that is not there": (("--format", "focus", "--precision", "nvfp4"), 2, "nvfp4", "fp8"),
    "a choice where every plan is held": (("--precision", "fp8"), 2, "--precision", "focus"),
    "an ending of another form": (("-o", "bill.xlsx"), 2, "`.xlsx`", ".csv or .parquet"),
    "a place that is not there": (("-o", "none/bill.csv"), 2, "none/bill.csv", ""),
}


@pytest.mark.parametrize(("arguments", "code", "message", "hinted"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_error_line_a_hint_and_its_code(run, plan, arguments, code, message, hinted):
    result = run("export", plan, *arguments)
    error, hint = result.err.splitlines()

    assert (result.code, result.out) == (code, "")
    assert error.startswith("error: ")
    assert message in error
    assert hinted in hint


def test_an_answer_whose_lines_were_tampered_with_is_refused(run, plan, home):
    text = (home / plan).read_text(encoding="utf-8")
    at = text.index('"cost_lines"')
    raised = re.sub(r'("high": )[0-9.]+', r"\g<1>1e12", text[at:], count=1)
    (home / plan).write_text(text[:at] + raised, encoding="utf-8")
    result = run("export", plan)

    assert (result.code, result.out) == (3, "")
    assert "sums to" in result.err


def test_what_is_no_answer_is_refused(run, home):
    (home / "x.json").write_text("{}", encoding="utf-8")

    assert run("export", "x.json").code == 3
    assert run("export", "none.json").code == 2


FILES = {
    "own": "",
    "quote": """
vendor = "Acme"
gpu = "h100-sxm5-80gb"
price_per_gpu_h = 2.13
minimum_term = "20d"
minimum_gpus = 24
setup_fee = 25000
""",
    "tariff": """
period = [{from = 0, to = 7, usd_per_kwh = 0.071}, {from = 7, to = 24, usd_per_kwh = 0.133}]
""",
    "beside": """
experiments = {ratio = 0.5}
failed = {ratio = 0.07}
network = {ratio = 0.1}
hosts = {count = 3, usd_per_h = 0.6}
storage = {usd_per_gb_month = 0.023, checkpoints_kept = 4, months_after = 2}
egress = {usd_per_gb = 0.09, data = "3TB"}
""",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The user's files by the input that names them."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return {name: str(folder / f"{name}.toml") for name in FILES}


PAID = (
    {}, {"price": 2.345}, {"own"}, {"quote"}, {"tariff"}, {"own", "tariff"}, {"quote", "tariff"},
    {"electricity": 0.117}, {"commitment": "spot"}, {"region": "us-east-1"},
)  # fmt: skip
"""How the GPUs and their electricity may be paid: files by their names, or values."""
MACHINES = (
    {"gpus": 8}, {"gpus": 24}, {"gpus": 512, "params": "13B"}, {"gpu": "h100-sxm5-80gb,b200-sxm-180gb", "gpus": 16},
)  # fmt: skip


@st.composite
def questions(draw):
    paid, machines, beside = draw(st.sampled_from(PAID)), draw(st.sampled_from(MACHINES)), draw(st.booleans())
    named = paid if isinstance(paid, set) else set()
    values = {"params": draw(st.sampled_from(("1.3B", "7B")))} | machines | ({} if named else paid)
    values |= {"precision": draw(st.sampled_from(("bf16", "fp8"))), "seed": draw(st.integers(0, 9))}
    return values, named | ({"beside"} if beside else set())


def summed(lines, end="mid"):
    return sum(line["usd"][end] for line in lines)


def check_lines(lines):
    """Each line is its quantity times its price, or the sum of its own lines."""
    for line in lines:
        usd = line["usd"]["mid"]
        if line["quantity"] is not None:
            assert line["quantity"] * line["unit_price_usd"]["mid"] == pytest.approx(usd, abs=HALF_CENT), line["id"]
        if line["children"]:
            assert summed(line["children"]) == pytest.approx(usd, abs=HALF_CENT)
            check_lines(line["children"])


def check_plan(plan):
    """The bill adds up, and its quantities are the plan's own GPU-hours and energy."""
    for end in ("low", "mid", "high"):
        assert summed(plan["cost_lines"], end) == pytest.approx(plan["cost_usd"][end], abs=0.01)
    check_lines(plan["cost_lines"])
    quantities = {line["id"]: line["quantity"] for line in plan["cost_lines"]}
    hours, energy = plan["gpu_hours"]["mid"], plan["energy_mwh"]["mid"]
    assert hours == pytest.approx(plan["gpus"] * plan["duration_days"]["mid"] * 24, rel=1e-8)
    for line in plan["cost_lines"]:
        if line["id"] in ("gpu_rental", "gpu_owned"):  # an owned GPU's hours are those of each of its items
            assert [item["quantity"] for item in line["children"] or [line]] == pytest.approx(
                [hours] * max(1, len(line["children"])), abs=0.001
            )
    assert quantities.get("electricity", energy * 1000) == pytest.approx(energy * 1000, abs=0.001)
    items = [value for name, value in plan["energy_items_mwh"].items() if name != "total"]
    assert sum(items) == pytest.approx(energy, rel=1e-8)


def check_exports(document):
    """Whole cents in CSV and FOCUS: they add up to the cent, and multiply out to one."""
    for row in rows(cost_csv.render(document).decode()):
        if row["quantity"]:
            product = float(row["quantity"]) * float(row["unit_price_usd_mid"])
            assert float(row["usd_mid"]) == pytest.approx(product, abs=0.0101), row["line"]
    bill = rows(focus_csv.render(document).decode())
    for row in bill:
        product = float(row["PricingQuantity"]) * float(row["ListUnitPrice"])
        assert float(row["ListCost"]) == pytest.approx(product, abs=0.0101), row["ChargeDescription"]
    precision = document["question"]["precision"]["value"]
    plans = [plan for plan in document["plans"] if plan["precision"] == precision and plan["fits"]]
    plan = min(plans, key=lambda plan: plan["cost_usd"]["mid"])  # the one of the answer's sentence
    total = sum(Decimal(row["EffectiveCost"]) for row in bill)
    assert abs(total - Decimal(repr(plan["cost_usd"]["mid"]))) <= Decimal("0.0051")


def number(text):
    """The figure that a cell shows."""
    return float(text.split()[0].lstrip("≥$").replace(",", ""))


def check_page(document):
    """Whole dollars (cents below a thousand) on the page and in Markdown: lines add up and multiply out as shown."""
    money = next(section for section in build(document).sections if section.id == "money")
    *lines, total = money.blocks[0].rows
    unit = 0.01 if "." in total.cells[3].text else 1.0
    top = [row for row in lines if not row.cells[0].text.startswith(" ")]
    assert sum(number(row.cells[3].text) for row in top) == pytest.approx(number(total.cells[3].text), abs=unit / 10)
    for row in lines:
        if row.cells[1].text:
            product = number(row.cells[1].text) * number(row.cells[2].text)
            assert number(row.cells[3].text) == pytest.approx(product, abs=1.1 * unit), row.cells[0].text


@examples(21)
@given(asked=questions())
def test_every_bill_multiplies_out_and_adds_up_in_the_document_and_in_every_export(asked, files):
    values, named = asked
    answer = mpplan.estimate(**values, **{name: files[name] for name in named})
    document = json.loads(json.dumps(mpplan.to_document(answer)))
    billed = [plan for plan in document["plans"] + document["same_deadline"] if plan["fits"] and plan["cost_usd"]]

    assert billed
    for plan in billed:
        check_plan(plan)
    for place in document["money"]["elsewhere"]:
        if place["saved_usd"] is not None:
            assert place["usd_here"] - place["usd"] == pytest.approx(place["saved_usd"], abs=HALF_CENT)
    check_exports(document)
    check_page(document)


def test_a_price_that_is_given_leaves_the_cost_the_range_of_the_gpu_hours():
    document = mpplan.to_document(mpplan.estimate(params="7B", gpus=8, price=2.5))

    for plan in document["plans"]:
        for end in ("low", "mid", "high"):
            assert plan["cost_usd"][end] == pytest.approx(2.5 * plan["gpu_hours"][end], abs=0.01)  # whole cents


FORMULA = '=HYPERLINK("http://x","y")'


@pytest.mark.parametrize("form", ["cost-csv", "focus"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_no_text_of_a_bill_is_a_formula_and_its_numbers_are_numbers(run, plan, home, form, sign):
    formula = f"{sign}{FORMULA[1:]}"
    document = json.loads((home / plan).read_text(encoding="utf-8"))
    for line in (line for row in document["plans"] for line in row["cost_lines"]):
        line |= {"label": formula, "id": formula, "unit": formula, "evidence_ids": [formula]}
    for row in document["plans"]:
        row |= {"policy": formula, "gpu": formula}
    for source in document["evidence"][:1]:
        source["id"] = formula
    for price in document["money"]["prices"]:
        price |= {"gpu": formula, "provider": formula, "region": formula}
    (home / plan).write_text(json.dumps(document), encoding="utf-8")
    result = run("export", plan, "--format", form)
    cells = [cell for row in rows(result.out) for cell in row.values()]

    assert result.code == 0, result.err
    assert any(formula in cell for cell in cells)
    assert [cell for cell in cells if cell.startswith(sign)] == []
    amount = "usd_mid" if form == "cost-csv" else "EffectiveCost"
    assert all(Decimal(row[amount]) > 0 for row in rows(result.out))


LONG = ("--model", "llama-3.1-8b", "--tokens", "100B", "--gpus", "64", "--precision", "bf16")
SHORT = ("--params", "10M", "--tokens", "1M", "--gpus", "1", "--precision", "bf16")


@pytest.mark.parametrize(
    ("asked", "limits"),
    [
        (SHORT, ("--beside", "beside.toml")),  # an hour of less than half a cent
        (LONG, ("--price", "0.0001")),
        (LONG, ("--price", "200", "--electricity", "2", "--pue", "5", "--grid", "2000")),
        (LONG, ("--price", "0.5", "--electricity", "0", "--pue", "1", "--grid", "1")),
        (LONG, ("--own", "dear.toml", "--grid", "1", "--embodied")),
        (LONG, ("--own", "cheap.toml", "--electricity", "0", "--grid", "1")),
        (LONG, ("--gpu", "mi355x", "--price", "1", "--pue", "5")),
    ],
    ids=lambda value: " ".join(value[:4]),
)
def test_what_may_be_asked_may_be_exported(run, home, asked, limits):
    (home / "beside.toml").write_text("[egress]\nusd_per_gb = 0.09\ndata = '500GB'\n", encoding="utf-8")
    dear = "[capital]\nserver_usd_per_gpu = 1000000\nlife_years = 0.5\n[use]\nutilisation_ratio = 0.01\n"
    (home / "dear.toml").write_text(dear, encoding="utf-8")
    (home / "cheap.toml").write_text("[capital]\nserver_usd_per_gpu = 100\nlife_years = 20\n", encoding="utf-8")
    answer = run("estimate", *asked, *limits, "--as-of", "2026-11-22", "--json", "--quiet")
    (home / "plan.json").write_text(answer.out, encoding="utf-8")

    exported = run("export", "plan.json", "--format", "cost-csv", "--quiet")

    assert (answer.code, exported.code, exported.err) == (0, 0, "")
