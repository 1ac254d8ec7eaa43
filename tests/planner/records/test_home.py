import os
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.records import home
from planner.records.home import any_records, data_dir, has_data_dir, of_package, record_path, records_dir, user_path


def test_the_data_folder_is_the_users_own_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert data_dir() == tmp_path / "mpplan"


@pytest.mark.parametrize("value", ["rel", "./rel", ""])
def test_a_relative_data_home_is_ignored_for_records_and_prices_alike(monkeypatch, tmp_path, value):
    # XDG Base Directory Specification 0.8: "If an implementation encounters a relative path [...] it should consider
    # the path invalid and ignore it."
    monkeypatch.setenv("XDG_DATA_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")

    assert data_dir() == tmp_path / ".local" / "share" / "mpplan"
    assert records_dir() == tmp_path / ".local" / "share" / "mpplan" / "records"


@pytest.mark.parametrize(
    ("platform", "place"), [("darwin", Path("Library/Application Support/mpplan")), ("win32", Path("local/mpplan"))]
)
def test_other_systems_have_their_own_place(monkeypatch, tmp_path, platform, place):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr("sys.platform", platform)

    assert data_dir() == tmp_path / place


def test_the_store_follows_the_users_data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert records_dir() == tmp_path / "mpplan" / "records"


def test_records_are_seen_before_anything_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("planner.records.home.SHIPPED", tmp_path / "none")
    assert not any_records()

    store = tmp_path / "mpplan" / "records"
    store.mkdir(parents=True)
    (store / "one.jsonl").write_text("{}\n", encoding="utf-8")
    assert any_records()


@pytest.fixture
def homeless(monkeypatch):
    """A user without `HOME` and without an entry in passwd, as containers have them."""

    def no_entry(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    monkeypatch.setattr("sys.platform", "linux")


def test_a_path_with_a_home_is_expanded_where_the_home_is_known(monkeypatch):
    monkeypatch.setenv("HOME", "/me")

    assert user_path("~/plan.json") == Path("/me/plan.json")
    assert user_path("~no-such-user/plan.json") == Path("~no-such-user/plan.json")


def test_a_path_with_a_home_stays_as_it_is_where_nobody_knows_the_home(homeless):
    assert user_path("~/plan.json") == Path("~/plan.json")


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_not_the_working_directory(name):
    with pytest.raises(UsageError, match="the name of a file is empty"):
        user_path(name)


def test_no_path_holds_a_null_character():
    with pytest.raises(UsageError, match="null character"):
        user_path("a\0b")


def test_a_data_folder_that_cannot_be_looked_into_holds_no_records(monkeypatch):
    monkeypatch.setattr("planner.records.home.SHIPPED", Path("none"))
    monkeypatch.setenv("XDG_DATA_HOME", "/" + "x" * 300)

    assert not any_records()


@pytest.mark.parametrize("name", ["\ud800", "Läufe/\ud800.csv"])
def test_no_path_holds_half_of_a_character(name):
    shown = name.replace("\ud800", r"\ud800")
    with pytest.raises(UsageError) as caught:
        user_path(name)

    assert str(caught.value) == f"cannot use `{shown}`: it contains an incomplete character"


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 3000])
def test_a_path_that_the_system_cannot_look_for_is_refused_where_it_is_named(name):
    with pytest.raises(UsageError, match=r"cannot use `x.*…`: File name too long"):
        user_path(name)


def test_a_path_that_leads_round_in_a_circle_is_refused(tmp_path):
    (tmp_path / "round").symlink_to("round")

    with pytest.raises(UsageError, match="Too many levels of symbolic links"):
        user_path(str(tmp_path / "round"))


def test_a_path_to_what_is_yet_to_come_is_as_good_as_another(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")

    for name in ("new", "no/such/folder/new", "file/new"):
        assert user_path(str(tmp_path / name)) == tmp_path / name


def test_a_data_folder_that_the_system_cannot_look_for_is_an_error_in_words(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/" + "x" * 300)

    with pytest.raises(UsageError, match="File name too long"):
        data_dir()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="nobody is kept out in this way")
@pytest.mark.parametrize("shut", ["home", "home/mpplan"])
def test_a_data_folder_that_the_user_is_kept_out_of_is_none_to_what_only_reads(tmp_path, monkeypatch, shut):
    monkeypatch.setattr("planner.records.home.SHIPPED", tmp_path / "none")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "mpplan" / "records").mkdir(parents=True)
    (tmp_path / "home" / "mpplan" / "records" / "one.jsonl").write_text("{}\n", encoding="utf-8")
    assert (has_data_dir(), any_records()) == (True, True)

    me = os.geteuid()
    (tmp_path / shut).chmod(0)
    if me == 0:  # no permission keeps root out
        os.seteuid(65534)
    try:
        seen = has_data_dir(), any_records()
    finally:
        os.seteuid(me)
        (tmp_path / shut).chmod(0o700)
    assert seen == (False, False)


def test_a_record_is_named_by_its_path_or_by_its_name(tmp_path, monkeypatch):
    shipped = tmp_path / "shipped"
    monkeypatch.setattr(home, "SHIPPED", shipped)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    own, used, by_name = records_dir() / "mine.jsonl", shipped / "h200.jsonl.gz", shipped / "named" / "h100.jsonl.gz"
    for file in (own, used, by_name, tmp_path / "h200"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    assert record_path("mine") == own
    assert record_path("h100") == by_name
    assert record_path("h200") == Path("h200")  # what is there under that very name comes first
    assert record_path("h200.jsonl.gz") == used
    assert record_path("./h100") == Path("./h100")
    assert record_path("./nothing") == Path("./nothing")
    with pytest.raises(
        UsageError, match="`nothing` is neither a file or folder here nor the name of a record"
    ) as caught:
        record_path("nothing")
    assert caught.value.hint == "`mpplan records list` lists the records"
    assert [of_package(path) for path in (own, used, by_name)] == [False, True, True]


def test_a_record_of_the_package_is_one_however_its_path_is_spelled(tmp_path, monkeypatch):
    monkeypatch.setattr(home, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped" / "named").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shipped")

    assert of_package(Path("h200.jsonl.gz"))
    assert of_package(Path("named/../named/h100.jsonl.gz"))
    assert not of_package(Path("../h200.jsonl.gz"))
