"""The curve over numbers of GPUs: three lines in short, a chart with the knee and the targets, a whole table."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.curve import curve, short_curve, spaced
from reports.text.language import words_for
from reports.view import CurveChart, Section, Table
from tests.reports import sample

WORDS = words_for("en")


def section_of(document: dict[str, Any]) -> Section:
    section = curve(Facts(checked(document)), WORDS)
    assert section is not None
    return section


def chart_of(document: dict[str, Any]) -> CurveChart:
    chart = section_of(document).blocks[0]
    assert isinstance(chart, CurveChart)
    return chart


def short_of(document: dict[str, Any]) -> Table | None:
    return short_curve(Facts(checked(document)), WORDS)


def table_of(document: dict[str, Any]) -> Table:
    table = short_of(document)
    assert table is not None
    return table


def test_an_answer_without_a_curve_has_no_such_part():
    facts = Facts(checked(sample.document()))

    assert curve(facts, WORDS) is None
    assert short_curve(facts, WORDS) is None


def test_the_short_curve_is_half_the_plan_and_double():
    table = short_of(sample.targets_document())
    assert table is not None

    assert [row.cells[0].plain for row in table.rows] == ["256", "512 (plan)", "1,024 (knee)"]
    assert [row.strong for row in table.rows] == [False, True, False]
    assert table.notes == ("Beyond 1,024 GPUs (the knee), halving the time again costs markedly more.",)


def marked(document: dict[str, Any], **at: int) -> dict[str, Any]:
    """The document with the plan and the knee at other numbers of GPUs."""
    for point in document["curve"]:
        point |= {name: point["gpus"] == gpus for name, gpus in at.items()}
    return document


def test_the_knee_has_its_line_wherever_it_lies():
    far, near = marked(sample.targets_document(), knee=2048), marked(sample.targets_document(), chosen=2048, knee=256)

    assert [row.cells[0].plain for row in table_of(far).rows] == ["256", "512 (plan)", "1,024", "2,048 (knee)"]
    assert [row.cells[0].plain for row in table_of(near).rows] == ["256 (knee)", "1,024", "2,048 (plan)"]


def test_a_plan_beyond_the_knee_is_said_to_lie_there_with_what_its_last_doubling_costs():
    document = marked(sample.targets_document(), chosen=2048, knee=512)
    hours = marked(sample.targets_document(), chosen=2048, knee=512)
    for point in hours["curve"]:
        point["cost_usd"] = None

    # 1.2 million against 0.94 million dollars, 9 against 15 days; 2,048 x 9 against 1,024 x 15 GPU-days
    assert (
        table_of(document)
        .notes[0]
        .endswith(" The plan lies beyond the knee: it costs 28% more than 1,024 GPUs and takes 40% less time.")
    )
    assert table_of(hours).notes[0].endswith(" it takes 20% more GPU-hours than 1,024 GPUs and 40% less time.")
    assert "The plan" not in table_of(sample.targets_document()).notes[0]


def test_counts_that_a_cap_on_power_does_not_allow_are_marked():
    document = sample.targets_document()
    cap = {"cap_mw": 0.6, "binding": True, "gpus_wanted": 1024, "days_wanted": 15.0}
    document["power_caps"] = [cap | {"gpu": "b200-sxm-180gb", "gpus_allowed": 8}]
    other = short_of(document)
    document["power_caps"] += [cap | {"gpu": sample.GPU, "gpus_allowed": 512}]
    table = short_of(document)
    assert table is not None
    assert other is not None

    assert [row.cells[0].plain for row in table.rows] == ["256", "512 (plan)", "1,024 (knee, above the cap)"]
    assert [row.cells[0].plain for row in other.rows] == ["256", "512 (plan)", "1,024 (knee)"]


def test_beyond_one_gpu_there_is_one():
    document = sample.targets_document()
    for point in document["curve"]:
        if point["knee"]:
            point["gpus"] = 1
            point["chosen"] = True
    table = short_of(document)
    assert table is not None

    assert [note.split(",")[0] for note in table.notes] == ["Beyond 1 GPU (the knee)"]


def test_at_the_end_of_the_curve_two_lines_are_left():
    document = sample.targets_document()
    document["curve"] = document["curve"][:3]
    table = short_of(document)
    assert table is not None

    assert [row.cells[0].plain for row in table.rows] == ["256", "512 (plan)"]
    assert table.notes == ()  # the knee is not among the points


def test_targets_are_columns_only_where_they_were_asked_for():
    document = sample.targets_document()
    for point in document["curve"]:
        point["in_budget"] = None
    table = short_of(document)
    assert table is not None

    assert [column.head for column in table.columns][-1] == "In time ≥80%"
    assert [row.cells[-1].text for row in table.rows] == ["no", "yes", "yes"]


def test_the_heads_of_targets_say_with_which_probability_they_are_met():
    document = sample.targets_document() | {"confidence": 0.955}

    assert [column.head for column in table_of(document).columns][-2:] == [
        "In time ≥95.5%",
        "Within budget ≥95.5%",
    ]


def test_the_whole_table_has_every_point_and_the_batch_where_it_changes():
    table = section_of(sample.targets_document()).blocks[1]
    assert isinstance(table, Table)

    assert [row.cells[0].text for row in table.rows] == ["128", "256", "512", "1,024", "2,048"]
    assert [row.cells[1].text for row in table.rows] == ["1,024", "1,024", "1,024", "1,024", "2,048"]


def test_the_chart_marks_the_plan_the_knee_and_the_targets():
    chart = chart_of(sample.targets_document())
    days, cost = chart.drawing.panels

    # 128 to 2,048 GPUs on a logarithmic axis: 512 is half-way, 1,024 three quarters
    assert days.dot is not None
    assert days.dot[0] == 50
    assert chart.drawing.knee == 75
    # days up to 105 x 1.17 on an axis to 150; dollars up to 1.2 x 1.17 million on one to 1.5 million
    assert days.limit == pytest.approx(30 / 150 * 100)
    assert cost.limit == pytest.approx(1.0 / 1.5 * 100, abs=0.01)
    assert (days.limit_text, cost.limit_text) == ("deadline 30 days", "budget $1 million")
    assert [mark for mark, _ in chart.legend] == ["dot", "knee"]


def test_only_the_lowest_panel_has_the_counts():
    days, cost = chart_of(sample.targets_document()).drawing.panels

    assert days.x_ticks == ()
    assert [tick.label for tick in cost.x_ticks] == ["128", "256", "512", "1,024", "2,048"]


def test_a_target_far_above_the_curve_does_not_squeeze_it():
    document = sample.targets_document()
    document["deadline_days"] = 1000

    assert chart_of(document).drawing.panels[0].limit is None


def test_without_a_price_the_time_is_drawn_alone():
    document = sample.targets_document()
    for point in document["curve"]:
        point["cost_usd"] = None
    panels = chart_of(document).drawing.panels

    assert [panel.label for panel in panels] == ["Time, days"]
    assert panels[0].x_ticks != ()


def test_the_chart_is_told_in_words():
    assert chart_of(sample.targets_document()).description.startswith(
        "256: 53 days, $0.82 million; 512: 27.0 days, $0.85 million; 1,024:"
    )


def test_labels_that_come_first_keep_their_room():
    assert spaced([0, 20, 50, 70, 100], [0, 4, 2]) == [0, 2, 4]
    assert spaced([0, 25, 50, 75, 100], [0, 4]) == [0, 1, 2, 3, 4]
    assert spaced([0, 10], [1]) == [1]


def test_without_a_price_the_chart_is_of_time_alone_and_says_so():
    document = sample.targets_document()
    assert chart_of(document).title == "FP8: time and cost by number of GPUs"
    for point in document["curve"]:
        point["cost_usd"] = None

    assert chart_of(document).title == "FP8: time by number of GPUs"
