"""The wording of messages: every key has a sentence in each language, filled from the same values."""

from __future__ import annotations

import ast
import json
import re
import string
from functools import lru_cache
from pathlib import Path

import pytest

from planner.errors import Message
from planner.evidence import Gap
from planner.rates.parameters import shipped_parameters
from reports.text.language import LANGUAGES
from reports.text.messages import (
    Sentence,
    as_fields,
    is_message,
    sentence,
    sentences,
    templates,
    with_messages,
    word,
)

ROOT = Path(__file__).parents[3]
EMITTERS = ("planner", "pricing", "mpplan")
"""Packages that make messages."""


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_both_languages_word_the_same_messages():
    assert set(templates("en")) == set(templates("zh"))


def test_a_message_has_the_same_blanks_in_both_languages():
    assert {key: blanks(text) for key, text in templates("zh").items()} == {
        key: blanks(text) for key, text in templates("en").items()
    }


@lru_cache
def calls() -> tuple[ast.Call, ...]:
    files = [path for package in EMITTERS for path in (ROOT / package).rglob("*.py")]
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))


def made(owner: str) -> list[tuple[list[str], set[str] | None]]:
    """Keys that a call of `owner.of` may have, with the names of its values; None where they are not written out."""
    pairs = []
    for call in calls():
        if ast.unparse(call.func) == f"{owner}.of" and call.args:
            keys = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
            names = {keyword.arg for keyword in call.keywords}
            pairs.append(([key for key in keys if isinstance(key, str) and key], None if None in names else names))
    return pairs


@lru_cache
def literals() -> frozenset[str]:
    files = [path for package in EMITTERS for path in (ROOT / package).rglob("*.py")]
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    return frozenset(
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_every_message_that_is_made_has_a_template_for_its_values():
    lacking = []
    for keys, names in made("Message"):
        for key in keys:
            template = templates("en").get(key)
            if template is None or (names is not None and not blanks(template) <= names):
                lacking.append(key)

    assert lacking == []


def test_every_gap_that_is_made_has_its_three_sentences():
    lacking = []
    for keys, names in made("Gap"):
        for text in (text for key in keys for text in (Gap(key=key).what, Gap(key=key).why, Gap(key=key).effect)):
            if text.key not in templates("en") or not blanks(templates("en")[text.key]) <= (names or set()):
                lacking.append(text.key)

    assert lacking == []


def test_no_template_is_left_over():
    gaps = {part.key for keys, _ in made("Gap") for key in keys for part in (Gap(key=key).what, Gap(key=key).why)}
    gaps |= {key.replace(".what", ".effect") for key in gaps}
    declared = {family.narrowed_by for family in shipped_parameters().families.values()}

    assert sorted(key for key in templates("en") if key not in literals() | gaps | declared) == []


def test_what_would_narrow_a_term_is_worded():
    declared = {family.narrowed_by for family in shipped_parameters().families.values()} - {None}

    assert declared - set(templates("en")) == set()


NAMES = re.compile(
    r"`[^`]*`|\{(?:[^{}]|\{[^{}]*\})*\}|--[\w-]+|\b(CPU|GPUs?|GiB|FFN|USD|Alpaca|Hoffmann|Kaplan|Gbit/s|kWh?|CO₂e|SCI|nccl-tests|10[MT]|GFLOP|FLOP|GB|TB|NumPy|PyTorch|PUE|ImageNet-1k|MFU|TFLOP/s|Megatron-LM|DeepSpeed|torchtitan|DeepEP|all-to-all|TensorBoard|W&B|Mamba|Kimi\sDelta\sAttention|chunked|fused|LoRA"
    r"|MiB|FP32|FP16|BF16|ZeRO|AdamW|GPT-3|Llama|Hugging Face|Liger|logits|channels-last|nat|torch|Python"
    r"|PowerShell|UTF-8|mpplan)\b"
)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_probability_that_is_just_missed_shows_the_digit_that_tells_it_apart(lang):
    values = {"gpus": 112, "gpu": "h100", "precision": "bf16", "usd": 2, "over_usd": 1, "confidence": 0.99}
    close = word(Message.of("error.over_budget", **values, likely=0.986, digits=1), lang)

    assert "98.6%" in close
    assert "99.0%" in close
    assert "99%" in word(Message.of("error.over_budget", **values, likely=0.5, digits=0), lang)


def test_carbon_is_written_in_one_way():
    sources = [path for package in (*EMITTERS, "reports") for path in (ROOT / package).rglob("*.py")]
    pages = [*(ROOT / "docs").glob("*.md"), *sources]

    assert [path.name for path in pages if "CO2e" in path.read_text(encoding="utf-8")] == []


def test_a_chinese_template_holds_no_english_beyond_names():
    english = {key: re.findall(r"[A-Za-z]{2,}", NAMES.sub("", text)) for key, text in templates("zh").items()}

    assert {key: words for key, words in english.items() if words} == {}


@pytest.mark.parametrize(
    ("message", "english", "chinese"),
    [
        (Message.of("text.usd", usd=2.094), "$2.09", "2.09 美元"),
        (
            Message.of("assumption.tokens", value=1.4e12, note=""),
            "The run trains on 1.4T tokens.",
            "训练 1.4 万亿词元。",
        ),
        (
            Message.of("assumption.gpu", value="h100-sxm5-80gb", note=""),
            "The GPU is the H100 SXM5 80\u00a0GB.",
            "GPU 为 H100 SXM5 80\u00a0GB。",
        ),
        (
            Message.of("hint.try_ways", ways=(Message.of("hint.without", input="micro_batch", value=2), "x")),
            "try without --micro-batch 2, x",
            "试试：去掉 --micro-batch 2、x",
        ),
        (
            Message.of("price.warning.few_providers", count=1, gpu="l4"),
            "only 1 provider known for L4: the range is at least the typical spread for GPUs with five or more",
            "L4 只有 1 家供应商：区间不小于有五家以上供应商的 GPU 的典型价差",
        ),
        (
            Message.of("price.warning.few_providers_of", count=3, gpu="l4", commitment="spot", known="on-demand"),
            "only 3 providers known with a spot price for L4: the range is at least the typical spread of on-demand "
            "prices for GPUs with five or more providers",
            "L4 的 spot 价格只有 3 家供应商：区间不小于有五家以上供应商的 GPU 的 on-demand 典型价差",
        ),
        (
            Message.of("assumption.deadline", value="30d", note=""),
            "The run must finish within 30 days.",
            "训练须在 30 天内完成。",
        ),
        (Message.of("assumption.deadline", value="…", note=""), "The run must finish within ….", "训练须在 …内完成。"),
        (
            Message.of(
                "price.warning.historic",
                rows=Message.of(
                    "price.of_more_dates",
                    rows=[Message.of("price.of_date", provider=name, date="2025-03-03") for name in ("a", "b")],
                    more=2,
                ),
            ),
            "no price from the last 18 months is known; older ones are used, those of a (2025-03-03), b (2025-03-03) "
            "and 2 more",
            "近 18 个月没有已知价格；使用更早的价格：a（2025-03-03）、b（2025-03-03）等（另有 2 家）",
        ),
        (Message.of("skipped.reasons", reasons=("a: b", "c: d")), "a: b; c: d", "a: b；c: d"),
        (
            Message.of("hint.later_deadline", deadline_days=0.0437),
            "allow --deadline 1.1h: no number of these GPUs is fast enough",
            "放宽到 --deadline 1.1h：这些 GPU 无论多少都不够快",
        ),
        (
            Message.of("warning.years", gpus=992, gpu="a100-sxm4-80gb", years=507 / 365),
            "992 × A100 SXM4 80\u00a0GB would train for 510 days: leave --gpus out and give a --deadline",
            "992 张 A100 SXM4 80\u00a0GB 要训练 510 天：请去掉 --gpus，改用 --deadline",
        ),
        (
            Message.of(
                "error.too_slow",
                gpu="t4",
                precision="bf16",
                deadline_days=1 / 24,
                confidence=0.8,
                fastest_days=0.331,
                gpus=2560,
            ),
            "BF16 training on T4 does not finish in 1 hour with a probability of 80% on any number of GPUs: the "
            "fastest option, 2,560 GPUs, takes 7.94 hours at that probability",
            "无论用多少张 T4，BF16 都无法以 80% 的概率在 1 小时内完成：最快的方案用 2,560 张 GPU，按此概率需 7.94 小时",
        ),
        (
            Message.of(
                "error.too_dear",
                gpu="t4",
                precision="fp16",
                budget_usd=2.0,
                confidence=0.8,
                cheapest_usd=10.0,
                gpus=1,
                cents=0,
                in_time=Message.of("error.within_days", days=1.0),
            ),
            "FP16 training on T4 does not fit a budget of $2 within 1 day with a probability of 80% on any number of "
            "GPUs: the cheapest option, 1 GPU, costs $10 at that probability",
            "无论用多少张 T4，都无法以 80% 的概率用 2 美元在 1 天内完成 FP16 训练："
            "最便宜的方案用 1 张 GPU，按此概率需 10 美元",
        ),
        (
            Message.of(
                "hint.more_gpus",
                more=Message.of("flag.gpus", gpus=8),
                later=Message.of("flag.deadline_days", deadline_days=1234.4),
            ),
            "use `--gpus 8`, or --deadline 1235d",
            "用 `--gpus 8`，或 --deadline 1235d",
        ),
        (
            Message.of(
                "warning.safe_way",
                gpu="t4",
                way=Message.of("hint.with", flags=("--loss fused",)),
                days=2.0,
                time_ratio=0.5,
                risk=0.0,
            ),
            "T4: with --loss fused, the run would take 2 days on the same hardware, 50% of the time planned, and run "
            "out of memory with a probability of less than 1%",
            "T4：加上 --loss fused，在同样的 GPU 上需 2 天（为所选方案时间的 50%），显存不足的概率为 1% 以下",
        ),
        (Message.of("why.too_big", over_gib=1303.12), "1,303.1 GiB too much", "显存超出 1,303.1 GiB"),
        (
            Message.of("why.too_risky", risk=0.236),
            "runs out of memory with a probability of 24%",
            "显存不足的概率为 24%",
        ),
    ],
)
def test_a_message_is_worded_with_the_numbers_and_units_of_each_language(message, english, chinese):
    assert [word(message, lang) for lang in LANGUAGES] == [english, chinese]


def as_json(message: Message) -> dict[str, object]:
    nested = {name: as_json(inner) if isinstance(inner, Message) else inner for name, inner in message.values}
    return {"key": message.key, "values": nested}


def test_a_large_vocabulary_has_a_thousands_separator():
    shape = dict.fromkeys(("params", "layers", "hidden", "heads", "kv_heads"), 1)
    text = word(Message.of("note.shape", **shape, ffn="FFN 4", vocab=50257))

    assert text.endswith("vocabulary 50,257")


def test_the_json_shape_is_worded_alike():
    message = Message.of("gap.price.missing.why", why=Message.of("price.no_row", gpu="l4"))
    document = json.loads(json.dumps(as_json(message)))

    assert is_message(document)
    assert word(document) == word(message) == "the price book has no row for L4"


def test_text_is_given_back_as_it_is():
    assert word("plan.json:1: not JSON") == "plan.json:1: not JSON"


def test_a_field_is_worded_from_its_message_and_not_from_its_english_text():
    document = {"why": "5.0% slower", "why_message": {"key": "why.slower", "values": {"slower_ratio": 0.05}}}

    assert sentence(document, "why", "zh") == Sentence(text="慢 5.0%")


@pytest.mark.parametrize(
    "message",
    [
        {"key": "why.of_tomorrow", "values": {}},
        {"key": "why.slower", "values": {}},
        {"key": "why.slower", "values": {"slower_ratio": "much"}},
        None,
    ],
    ids=["a newer key", "a value missing", "a value of another kind", "an older document"],
)
def test_what_the_tables_cannot_word_is_shown_in_english_and_marked_as_foreign(message):
    document = {"why": "5.0% slower", "why_message": message, "warnings": ["w"], "warnings_message": [message]}

    assert sentence(document, "why", "zh") == Sentence(text="5.0% slower", foreign=True)
    assert sentences(document, "warnings", "zh") == [Sentence(text="w", foreign=True)]
    assert sentence(document, "why", "en") == Sentence(text="5.0% slower")


def test_an_absent_field_is_empty():
    assert sentence({}, "note", "zh") == Sentence(text="")
    assert sentences({}, "warnings", "zh") == []


def test_a_list_of_texts_is_read_with_its_messages_and_written_back_the_same():
    message = {"key": "warning.spot", "values": {}}
    document = {"warnings": ["one", "two"], "warnings_message": [None, message]}

    assert with_messages(document, "warnings") == [("one", None), ("two", message)]
    assert with_messages({"warnings": ["one"]}, "warnings") == [("one", None)]
    assert with_messages({}, "warnings") == []
    assert as_fields("warnings", with_messages(document, "warnings")) == document
    assert as_fields("warnings", []) == {"warnings": []}


@pytest.mark.parametrize(("lang", "today"), [("en", "get today's with"), ("zh", "若按今天的价格规划")])
def test_stale_prices_are_refreshed_only_for_a_plan_of_today(lang, today):
    """`mpplan prices refresh` gets the prices of today, which do not count for an earlier --as-of."""
    text = word(Gap.of("price.stale", as_of="2025-06-01", rows="lambda (2025-02-28)").effect, lang)

    assert "--price" in text
    assert today in text[: text.index("`mpplan prices refresh`")]
