from __future__ import annotations

import pytest

from reports.text.language import words_for
from reports.text.typeset import typeset
from reports.text.width import columns_of, wrapped


@pytest.mark.parametrize(
    ("joined", "set_"),
    [
        ("FP32（严格） 省 79%", "FP32（严格）省 79%"),
        ("FP32（严格）\x03 省 \x0279%\x03", "FP32（严格）\x03省 \x0279%\x03"),
        ("从 200 瓦 ，到 700 瓦", "从 200 瓦，到 700 瓦"),
        ("FP8 的GPU 小时", "FP8 的 GPU 小时"),
        ("与 12,288 张 GPU相比", "与 12,288 张 GPU 相比"),
        ("按 \x025.3 吨 CO₂e\x03计", "按 \x025.3 吨 CO₂e \x03计"),
        ("给出 `我的GPU （1）.json`", "给出 `我的GPU （1）.json`"),
        ("用 FP8 训练", "用 FP8 训练"),
        ("14 美元 至 41 美元", "14 美元至 41 美元"),
    ],
)
def test_a_joint_leaves_no_space_beside_a_wide_mark_and_one_before_latin_letters(joined, set_):
    assert typeset(joined) == set_


def test_only_chinese_is_set():
    assert words_for("en").typeset("（a） b") == "（a） b"
    assert words_for("zh")("chart.metric", metric="GPU 小时") == "各精度的 GPU 小时"
    assert words_for("zh")("column.saving", asked="FP8", metric="费用") == "FP8 费用比本行"


@pytest.mark.parametrize("width", range(4, 30))
def test_no_line_ends_in_an_opening_bracket_or_begins_with_a_closing_one(width):
    text = "一张 GPU 平均功率 540 瓦（380–700）；用“方案”与 FP8 矩阵乘法的硬件)、再来"

    for line in wrapped(text, width)[1:]:
        assert line[0] not in "，。；：、）”)"
    for line in wrapped(text, width):
        assert line[-1] not in "（“"


def test_wide_text_is_counted_in_columns():
    assert max(columns_of(line) for line in wrapped("整个训练的能耗与费用", 9)) == 8
