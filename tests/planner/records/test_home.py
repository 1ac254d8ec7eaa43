from planner.records.home import any_records, records_dir


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
