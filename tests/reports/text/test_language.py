from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

from planner.answer.plan import MEMORY_ITEMS, METRICS, STEP_ITEMS
from planner.errors import UsageError
from planner.evidence import EvidenceKind
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS
from planner.training.recipe import ACT_CKPT
from reports.text.language import LANGUAGES, Span, split_spans, strong, words_for
from reports.text.strings import en, zh

ROOT = Path(__file__).parents[3] / "reports"
SOURCES = [path for path in ROOT.rglob("*") if path.suffix in (".py", ".j2") and "strings" not in path.parts]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_both_languages_say_the_same_things():
    assert set(en.TEXT) == set(zh.TEXT)
    assert set(en.LADDERS) == set(zh.LADDERS)


def test_a_sentence_has_the_same_blanks_in_both_languages():
    differing = {key: placeholders(zh.TEXT[key]) ^ placeholders(en.TEXT[key]) for key in en.TEXT}

    assert {key: names for key, names in differing.items() if names - may_differ(key)} == {}


def may_differ(key: str) -> set[str]:
    return {"verb"} if key.startswith("headline") else set()


NOT_CHINESE = re.compile(r"[A-Za-z]{3,}")
MAY_STAY = {
    "html.lang", "range.joint", "range.dates", "less_than", "plus", "percent", "at_least", "none", "nothing",
    "tree.indent",
}  # fmt: skip
NAMES = re.compile(
    r"\b(CPU|DeepEP|SCI|FLOP|FP8|BF16|FP16|TF32|FP32|MXFP8|NVFP4|GPUs?|MFU|HFU|PUE|HFU|JSON|CSV|PDF|DP|TP|PP|CP|EP|VP|ZeRO|FSDP|LoRA|QLoRA|DoRA|QDoRA|DPO|"
    r"CUDA|CO₂e|mpplan|claims|price|first|second|all|dropout|logits|q|k|v|PCIe|GiB|TFLOP|nat|numerics|gpus|NaN|BERT-Large|ResNet|LSTM|SGD|Adam|GPT|PyTorch|Transformer|Goodput|estimate|FILE|s)\b|--[\w-]+|\{\w*\}"
)


def test_chinese_sentences_hold_no_english_beyond_names():
    english = {key: NOT_CHINESE.findall(NAMES.sub("", zh.TEXT[key])) for key in set(zh.TEXT) - MAY_STAY}

    assert {key: words for key, words in english.items() if words not in ([], ["all", "to"])} == {}


def used_keys() -> set[str]:
    """Keys that the code asks for literally, as `words("key"`, `w('key')`, `words.spans("key"` and so on."""
    calls = re.compile(r"""\bw(?:ords)?(?:\.(?:spans|count|has))?\(\s*f?["']([^"'{}]+)["']""")
    return {key for path in SOURCES for key in calls.findall(path.read_text(encoding="utf-8"))}


def test_every_key_that_the_code_asks_for_exists():
    stems = {key.rsplit(".", 1)[0] for key in en.TEXT}  # `trust.gaps` of a count, `part.` of a joined name

    assert sorted(key for key in used_keys() if key not in en.TEXT and key.rstrip(".") not in stems) == []


def strings_of_the_code() -> str:
    parts = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        parts.append(text if path.suffix == ".j2" else " ".join(_literals(ast.parse(text))))
    return "\n".join(parts)


def _literals(tree: ast.Module) -> list[str]:
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_no_sentence_is_left_over():
    """A key is used when the code names it, or builds it from its group and its last word."""
    code = strings_of_the_code()
    groups = {"driver", "metric", "input", "given", "axis", "ckpt", "shape", "step", "memory", "energy", "precision",
              "evidence", "cost", "verdict", "glossary", "method", "reading", "column", "table",
              "part", "redact", "owned", "owned_item", "unit", "providers", "whatif", "tile", "verb", "trust",
              "price_rows",
              "runs", "own_runs", "nodes", "learned_figure", "compare", "times", "log_lines", "log_steps",
                  "steps_of_training", "pairs_of_runs", "runs_each", "tensor", "mixture", "compression",
                  "starts", "stands", "gpu_count", "duration"}  # fmt: skip
    left = [key for key in en.TEXT if key not in code and key.split(".")[0] not in groups]

    assert left == []


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("precision", (*PRECISIONS, *EXTRA_PRECISIONS)),
        ("step", STEP_ITEMS),
        ("memory", MEMORY_ITEMS),
        ("metric", METRICS),
        ("evidence", tuple(kind.value for kind in EvidenceKind)),
    ],
)
def test_every_noun_of_the_planner_has_a_word(lang, group, names):
    words = words_for(lang)

    assert [name for name in names if not words.has(f"{group}.{name}")] == []


def test_an_unknown_name_is_shown_as_it_is():
    assert words_for("zh").name("step", "something_new") == "something new"


def test_an_unknown_language_is_a_usage_error():
    with pytest.raises(UsageError, match="no language `fr`"):
        words_for("fr")


RANGE = {"low": 1_980_000, "mid": 2_313_400, "high": 2_710_000, "at_least": False}


@pytest.mark.parametrize(
    ("low", "mid", "high", "told"),
    [
        (1.76, 7.03, 28.94, "$7.03 (1.76–28.94)"),
        (12.1, 28.9, 61.4, "$29 (12–61)"),
        (7.1, 7.1, 7.1, "$7.10"),
        (7.0, 7.0, 7.0, "$7"),
        (0.021, 0.04, 0.068, "$0.04 (0.02–0.07)"),
        (0.7e6, 1.28e6, 3e6, "$1.3 million (0.7–3.0)"),
    ],
)
def test_dollars_have_cents_or_none_and_never_one_decimal(low, mid, high, told):
    figure = words_for("en").figure("money", {"low": low, "mid": mid, "high": high})

    assert figure is not None
    assert figure.full == told


def test_money_reads_as_english_and_as_chinese_write_it():
    english, chinese = (words_for(lang).figure("money", RANGE) for lang in LANGUAGES)

    assert english is not None
    assert chinese is not None
    assert (english.text, english.full, english.high) == ("$2.31 million", "$2.31 million (1.98–2.71)", "$2.71 million")
    assert (chinese.text, chinese.full, chinese.high) == ("231 万美元", "231 万美元（198–271）", "271 万美元")


@pytest.mark.parametrize(
    ("quantity", "value", "english", "chinese"),
    [
        ("tokens", 1.4e12, "1.4T tokens", "1.4 万亿词元"),
        ("tokens", 3e8, "300M tokens", "3 亿词元"),
        ("params", 70e9, "70B", "70B"),
        ("days", 0.5, "12 hours", "12 小时"),
        ("days", 0.01, "14.4 minutes", "14.4 分钟"),
        ("days", 0.097 / 1440, "5.82 seconds", "5.82 秒"),
        ("energy", 0.5, "500 kWh", "500 千瓦时"),
        ("energy", 1200, "1.2 GWh", "1.2 吉瓦时"),
        ("carbon", 0.25, "250 kg CO₂e", "250 千克 CO₂e"),
        ("unit_price", 3.5, "$3.50", "3.50 美元"),
        ("percent", 0.314, "31%", "31%"),
        ("percent", 0.004, "0.4%", "0.4%"),
        ("gpu_hours", 366_000, "366,000 GPU-hours", "36.6 万 GPU 小时"),
    ],
)
def test_quantities_have_the_units_of_each_language(quantity, value, english, chinese):
    assert words_for("en").value(quantity, value) == english
    assert words_for("zh").value(quantity, value) == chinese


def test_a_lower_bound_is_marked_wherever_it_is_written():
    figure = words_for("en").figure("money", RANGE | {"at_least": True})

    assert figure is not None
    assert (figure.text, figure.bare, figure.high) == ("≥ $2.31 million", "≥ 2.31", "≥ $2.71 million")


def test_a_cost_that_rounds_to_zero_cents_is_not_said_to_be_nothing():
    english, chinese = (
        words_for(lang).figure("money", dict.fromkeys(("low", "mid", "high"), 0.0)) for lang in LANGUAGES
    )

    assert english is not None
    assert chinese is not None
    assert (english.full, english.high, english.bare) == ("<$0.01", "<$0.01", "<0.01")
    assert chinese.full == "<0.01 美元"


def test_a_range_across_zero_is_written_in_words():
    figure = words_for("en").figure("percent", {"low": -0.02, "mid": 0.01, "high": 0.05})

    assert figure is not None
    assert figure.span == "−2 to 5"


def test_parts_too_small_for_their_table_are_said_to_be_less():
    words = words_for("en")

    assert [words.fixed(size, words.ladder("gib")[0], 1) for size in (12.34, 0.04, 0)] == ["12.3", "<0.1", "0.0"]


def test_a_sentence_is_cut_at_its_figures_and_ranges():
    assert split_spans(f"a {strong('b')}\x04 (c)\x03 d") == (
        Span(text="a "),
        Span(text="b", strong=True),
        Span(text=" (c)", span=True),
        Span(text=" d"),
    )


def test_a_probability_is_told_no_closer_than_draws_tell_it():
    words = words_for("en")

    assert [words.chance(ratio) for ratio in (0.0, 0.0099, 0.01, 0.834, 0.99, 0.996, 1.0)] == [
        "less than 1%", "less than 1%", "1%", "83%", "99%", "more than 99%", "more than 99%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("days", "english", "chinese"),
    [
        (1 / 24, "1 hour", "1 小时"),
        (0.331, "7.94 hours", "7.94 小时"),
        (1.0, "1 day", "1 天"),
        (0.99999, "1 day", "1 天"),
        (14.94, "14.9 days", "14.9 天"),
        (1400.2, "1,400 days", "1,400 天"),
        (1 / 1440, "1 minute", "1 分钟"),
        (0.001, "1.44 minutes", "1.44 分钟"),
        (1e-5, "0.864 seconds", "0.864 秒"),
        (1 / 86400, "1 second", "1 秒"),
        (0.0005, "43.2 seconds", "43.2 秒"),
    ],
)
def test_a_time_is_told_in_the_largest_unit_that_it_fills(days, english, chinese):
    assert [words_for(lang).duration(days) for lang in LANGUAGES] == [english, chinese]


@pytest.mark.parametrize(
    "term",
    [
        "product_rate_ratio", "attention_rate_ratio", "attention_generation_ratio", "example_length_ratio",
        "adapter_passes", "kernels_per_adapter", "magnitude_passes",
    ],
)  # fmt: skip
def test_what_calibration_learns_of_kernels_and_what_fine_tuning_adds_has_plain_words(term):
    for lang in ("en", "zh"):
        assert words_for(lang).has(f"driver.{term}")


@pytest.mark.parametrize("mode", ACT_CKPT)
def test_every_way_to_checkpoint_has_its_words(mode):
    for lang in LANGUAGES:
        assert words_for(lang).has(f"ckpt.{mode}")


@pytest.mark.parametrize(
    ("key", "number", "english", "chinese"),
    [
        ("starts", 1, "started once", "启动 1 次"), ("starts", 2, "started twice", "启动 2 次"),
        ("starts", 3, "started 3 times", "启动 3 次"), ("times", 2, "twice", "2 次"),
        ("times", 12, "12 times", "12 次"),
        ("gpu_count", 2, "2 GPUs", None),
    ],
)  # fmt: skip
def test_a_count_is_told_as_a_native_writes_it(key, number, english, chinese):
    assert words_for("en").count(key, number) == english
    assert chinese is None or words_for("zh").count(key, number) == chinese
