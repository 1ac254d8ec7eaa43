from __future__ import annotations

import json
import re

import pytest

from reports.explain.text import LEAST, WIDTH, figure, to_json, to_text
from reports.explain.walk import explain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (903_550.4180756813, "903,550"),
        (27.56233086871127, "27.5623"),
        (0.0221003606, "0.0221004"),
        (0.0008944326, "0.000894433"),
        (384.0, "384"),
        (1_411_074_129_920.0, "1,411,074,129,920"),
        (1.0000021, "1.0000021"),
        (1.0, "1"),
        (2e-6, "2.00000e-06"),
        (0.0, "0"),
        (None, "unknown"),
    ],
)
def test_numbers_have_six_digits_so_that_a_line_can_be_checked(value, text):
    assert figure(value) == text


def test_the_tree_shows_the_arithmetic_the_inputs_and_the_sources(recorded):
    text = to_text(explain(recorded, "cost"))
    lines = text.splitlines()
    plan = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    hours, days, gpus = plan["gpu_hours"], plan["duration_days"]["mid"], plan["gpus"]
    spread = " to ".join(f"{hours[end]:,.3f}".rstrip("0") for end in ("low", "high"))

    assert lines[0] == "FP8 on H100 SXM5 80\u00a0GB"
    assert re.search(r"= gpu-hours × price(, to the cent)? = [\d,]+(\.\d+)? × 3\.49", text)
    assert f"GPU-hours ({spread}) = GPUs × days × 24 = {gpus} × {days:.6g} × 24" in text
    assert "(derived: the fewest whole nodes that meet the target" in text
    assert "Sources" in lines
    assert text.endswith("\n")


@pytest.mark.parametrize("width", [60, 80, WIDTH])
def test_remarks_and_sources_are_wrapped_between_words(recorded, width):
    explanation = explain(recorded, "cost")
    tree, sources = to_text(explanation, width).split("\nSources\n")

    assert max(len(row["what"]) for row in explanation.sources) > 5 * WIDTH
    texts = [line for line in sources.splitlines() if line.startswith("    ") and " " in line.strip()]
    texts += [line for line in tree.splitlines() if " = " not in line and len(line) - len(line.lstrip("│ ")) < 12]
    assert max(map(len, texts)) <= width
    for row in explanation.sources:
        assert " ".join(row["what"].split()) in " ".join(sources.split())


@pytest.mark.parametrize("columns", [40, 60, 200])
@pytest.mark.parametrize("name", ["cost", "energy", "memory"])
def test_lines_fit_a_terminal_and_say_the_same_as_whole_ones(recorded, columns, name):
    whole, fitted = to_text(explain(recorded, name)), to_text(explain(recorded, name), columns)

    for line in fitted.splitlines():
        bare = line.lstrip("│├└─ ")
        deep = len(line) - len(bare) + LEAST > columns
        assert len(line) <= columns or deep or " " not in bare.strip(), line
    assert re.sub(r"[│├└─\s]+", " ", fitted) == re.sub(r"[│├└─\s]+", " ", whole)


def test_each_printed_product_comes_out_to_four_digits(recorded):
    checked = 0
    for name in ("cost", "energy", "carbon", "mfu"):
        for line in to_text(explain(recorded, name)).splitlines():
            if " × " in line and line.count(" = ") >= 2:
                stated = line.split(" = ")[1].split(" ")[0]
                product = 1.0
                for sign, part in _factors(line.split(" = ")[-1]):
                    product = product * part if sign == "×" else product / part
                assert product == pytest.approx(float(stated.replace(",", "")), rel=1e-4), line
                checked += 1

    assert checked > 20


def test_the_products_of_a_small_run_can_be_checked_too(ask):
    text = to_text(explain(ask("LoRA"), "carbon"))
    stated, energy, grid = re.findall(r"^Carbon = ([\d.]+) t .* = ([\d.]+) × ([\d.]+)$", text, re.MULTILINE)[0]

    assert float(stated) < 0.05  # t, where five decimals are too few
    assert float(energy) * float(grid) == pytest.approx(float(stated), rel=1e-5)


def _factors(text: str) -> list[tuple[str, float]]:
    words = text.split(" ")
    return [("×", float(words[0].replace(",", "")))] + [
        (words[n], float(words[n + 1].replace(",", ""))) for n in range(1, len(words) - 1, 2)
    ]


def test_the_json_has_the_tree_and_its_sources(recorded):
    document = json.loads(json.dumps(to_json(explain(recorded, "carbon"))))

    assert (document["schema"], document["figure"], document["precision"]) == ("mpplan.explain/1", "carbon", "fp8")
    assert [child["label"] for child in document["tree"]["children"]] == ["Energy", "Grid factor"]
    assert {"id", "kind", "what", "source", "date"} <= set(document["evidence"][0])


def test_a_lower_bound_is_shown_as_one_in_the_tree_and_in_the_json(recorded):
    plan = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    line = plan["cost_lines"][0]
    for estimate in (plan["cost_usd"], line["usd"], line["unit_price_usd"]):
        estimate["at_least"] = True
    explained = explain(recorded, "cost")
    text, tree = to_text(explained), to_json(explained)["tree"]

    assert f"Cost: {line['label']} ≥ {figure(plan['cost_usd']['mid'], 'USD')} USD" in text
    assert "Price per GPU-hour ≥ 3.49 USD" in text
    assert "\n≥: a lower bound, since something is missing; the gaps of the answer say what\n" in text
    assert (tree["at_least"], [child["at_least"] for child in tree["children"]]) == (True, [False, True])
    assert "≥" not in to_text(explain(recorded, "time"))
