import pytest

from planner.errors import UsageError
from planner.training.optimizers import find_optimizer, load_optimizers


@pytest.mark.parametrize(
    ("name", "moments", "fixed_bytes"),
    [
        ("adamw", 2, 0),
        ("adamw-8bit", 0, 2.03125),  # two bytes and two FP32 scales per block of 256: 2 + 2 * 4 / 256
        ("adamw-8bit-paged", 0, 2.03125),
        ("adafactor", 0, 0),
        ("lamb", 2, 0),
        ("sophia", 2, 0),
        ("muon", 1, 0),
        ("sgd-momentum", 1, 0),
    ],
)
def test_state_bytes_are_those_of_the_papers(name, moments, fixed_bytes):
    optimizer = load_optimizers()[name]

    assert (optimizer.full_moments, optimizer.fixed_state_bytes) == (moments, fixed_bytes)


def test_only_muon_computes():
    assert [optimizer.id for optimizer in load_optimizers().values() if optimizer.extra_flop_per_param] == ["muon"]


def test_only_the_paged_optimizer_leaves_the_gpu_when_it_is_full():
    assert [optimizer.id for optimizer in load_optimizers().values() if optimizer.paged] == ["adamw-8bit-paged"]
    assert find_optimizer("PagedAdamW8bit").paged


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Adam", "adamw"), ("AdamW", "adamw"), ("8-bit Adam", "adamw-8bit"), ("SGD", "sgd-momentum"), ("Muon", "muon")],
)
def test_names_as_people_write_them(name, expected):
    assert find_optimizer(name).id == expected


def test_every_optimizer_names_its_paper_and_year():
    for optimizer in load_optimizers().values():
        assert len(optimizer.evidence.source) > 10
        assert optimizer.evidence.date


def test_an_unknown_optimizer_gets_near_names():
    with pytest.raises(UsageError) as caught:
        find_optimizer("adamwx")
    assert "`adamw`" in (caught.value.hint or "")
