"""Networks as people type them: all of a flag's text must be understood; a run's row may describe its cluster, too."""

from __future__ import annotations

import csv

import pytest

from planner.errors import UsageError
from planner.hardware.network import Network, describe_network
from planner.hardware.typed_network import is_of_a_server, network_of_words, parse_network, read_typed_network
from planner.rows import CATALOG


@pytest.mark.parametrize(
    ("text", "gb_per_s"),
    [
        ("400Gb/s", 50.0),
        ("400Gbps", 50.0),
        ("400 Gbit/s", 50.0),
        ("50GB/s", 50.0),
        ("8x400Gb/s", 50.0),
        ("3200Gb/s per node", 50.0),
        ("3200Gb/s per  node", 50.0),
        ("3200Gb/s/node", 50.0),
        ("ib-ndr", 50.0),
        ("IB-HDR", 25.0),
        ("roce-100", 12.5),
        ("slingshot", 25.0),
        ("efa-400", 50.0),
        ("efa 3200Gb/s per node", 50.0),
        ("infiniband 400Gb/s", 50.0),
        ("400GbE", 50.0),
        ("100gbe", 12.5),
        ("100 GigE", 12.5),
        ("8x400GbE RoCEv2", 50.0),
        ("400G RoCE", 50.0),
        ("400 gbps", 50.0),
        ("8 x 400 Gbit/s InfiniBand NDR", 50.0),
        ("EFA, 3.2Tb/s per node", 50.0),
        ("NDR", 50.0),
        ("ib hdr", 25.0),
        ("HDR100", 12.5),
        ("4x NDR", 25.0),
        ("1.6Tb/s per server", 25.0),
        ("400Gb/s per GPU", 50.0),
        ("400 Gbits/s", 50.0),
        ("Slingshot-11", 25.0),
        ("FDR 56Gb/s", 7.0),
    ],
)
def test_a_typed_network_is_a_rate_per_gpu_or_per_node_or_a_name(text, gb_per_s):
    assert parse_network(text, "--network", 8).bytes_per_s == gb_per_s * 1e9


@pytest.mark.parametrize(
    "text",
    [
        "fast",
        "400",
        "0Gb/s",
        "400gb",
        "-1Gb/s",
        "",
        "HDR IB (Selene)",
        "400Gb/s or so",
        "efa fast",
        "ethernet",
        "400Gb/s 200Gb/s",
        "NVL72",
        "roce per node",
        "roce-200",
        "efa-fast",
        "FDR",
        "quantum-2",
        "2x200Gb/s per GPU",
        "400Gb/s per GPU per node",
        "2x4x100Gb/s",
        "EFA InfiniBand",
        "NDR HDR",
        pytest.param("9" * 5000 + "x400Gb/s", id="thousands of digits"),
    ],
)
def test_what_is_not_a_network_rate_is_refused_with_examples(text):
    with pytest.raises(UsageError, match=r"^--network: ") as caught:
        parse_network(text, "--network", 8)

    assert "400Gb/s" in caught.value.hint
    assert "ib-ndr" in caught.value.hint


def test_a_kind_of_network_alone_leaves_the_rate_to_the_gpu():
    assert parse_network("EFA", "--network", 8) == Network(bytes_per_s=None, fabric="efa")


@pytest.mark.parametrize(
    ("text", "fabric"),
    [("400GbE", ""), ("400G RoCE", "roce"), ("8x NDR", "infiniband"), ("efa-400", "efa"), ("3.2T EFA per node", "efa")],
)
def test_the_kind_may_stand_before_or_after_the_rate(text, fabric):
    assert parse_network(text, "--network", 8).fabric == fabric


@pytest.mark.parametrize("text", ["efa 3200Gb/s", "3.2T EFA", "400GB/s"])
def test_the_rate_of_a_whole_server_is_not_taken_for_that_of_one_gpu(text):
    with pytest.raises(UsageError, match="per GPU, more than any server has") as caught:
        parse_network(text, "--network", 8)

    assert f"`{text} per node`" in caught.value.hint
    assert parse_network(f"{text} per node", "--network", 8).bytes_per_s == pytest.approx(50e9, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "gpus", "hint"),
    [
        ("8x400Gb/s", 1, "it is that of a whole server, in which one GPU has all of it: see `--gpus-per-node`"),
        ("12.8Tb/s per node", 4, "it is that of a whole server, in which 4 GPUs share it: see `--gpus-per-node`"),
        ("3200Gb/s per GPU", 8, "give the rate of one GPU, or that of a whole server with `per node`"),
    ],
)
def test_a_rate_that_says_what_it_is_of_is_not_told_to_say_it_again(text, gpus, hint):
    with pytest.raises(UsageError, match="per GPU, more than any server has") as caught:
        parse_network(text, "--network", gpus)

    assert caught.value.hint == hint


@pytest.mark.parametrize(("text", "shared"), [("8x400GbE", True), ("3.2T per node", True), ("400GbE", False)])
def test_what_a_server_has_is_told_from_what_a_gpu_has(text, shared):
    assert is_of_a_server(text) is shared


def test_a_row_may_type_its_network_or_describe_it():
    assert network_of_words("400GbE", 8).bytes_per_s == 50e9
    assert network_of_words("HDR IB (Selene)", 8) == describe_network("HDR IB (Selene)", 8)


def test_what_is_typed_means_what_it_means_in_the_words_of_published_runs():
    with (CATALOG / "published_runs.csv").open(encoding="utf-8", newline="") as file:
        cells = {row["network"] for row in csv.DictReader(file)}

    typed = {words: network for words in cells if (network := read_typed_network(words, 8)) is not None}
    assert len(typed) > 5
    assert typed == {words: describe_network(words, 8) for words in typed}
