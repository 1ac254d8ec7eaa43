from __future__ import annotations

from reports.page.build import build
from reports.view import RangeChart, Table
from reports.view.shorter import shorter
from tests.reports import sample


def test_a_view_of_one_gpu_stays_as_it_is(recorded):
    view = build(recorded)

    assert shorter(view) is view


def test_of_several_gpus_the_leading_one_keeps_its_tables_and_sources():
    document = sample.several_gpus_document()
    leading = build(document).data["whatif"]["gpu"]
    other = next(plan["gpu"] for plan in document["plans"] if plan["gpu"] != leading)
    source = document["evidence"][0]
    document["evidence"] += [source | {"gpu": gpu, "what": f"the rate of {gpu}"} for gpu in (leading, other)]
    view = build(document)
    short = {section.id: section for section in shorter(view).sections}

    assert [type(block) for block in short["gpus"].blocks[:-1]] == [RangeChart, Table]
    assert len(short["gpus"].blocks) < len(next(s for s in view.sections if s.id == "gpus").blocks) + 1
    told = {row.cells[0].text for block in short["sources"].blocks if isinstance(block, Table) for row in block.rows}
    assert f"the rate of {leading}" in told
    assert f"the rate of {other}" not in told
    assert {name: short[name] for name in short if name not in ("gpus", "sources")} == {
        section.id: section for section in view.sections if section.id not in ("gpus", "sources")
    }
