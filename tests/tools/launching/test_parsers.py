"""Files given to the frameworks' own parsers."""

from __future__ import annotations

from tools.launching.parsers import CHECKS, main, refused


def test_every_framework_has_a_check():
    from reports.launch import FRAMEWORKS

    assert list(CHECKS) == [framework.name for framework in FRAMEWORKS]


def test_a_framework_that_is_not_here_is_named_and_nothing_tried_is_no_success(tmp_path, monkeypatch, capsys):
    def absent():
        raise ImportError("No module named 'axolotl'")

    monkeypatch.setitem(CHECKS, "axolotl", absent)
    (tmp_path / "axolotl").mkdir()
    monkeypatch.setattr("sys.argv", ["parsers", str(tmp_path)])

    assert refused("axolotl", tmp_path / "axolotl") is None
    assert main() == 1
    assert "axolotl: not importable here" in capsys.readouterr().err


def test_what_a_parser_refuses_is_told_by_file(tmp_path, monkeypatch, capsys):
    def strict():
        def check(path, gpus):
            if gpus != 8:
                raise ValueError(f"{gpus} GPUs")

        return check

    monkeypatch.setitem(CHECKS, "skypilot", strict)
    (tmp_path / "skypilot").mkdir()
    (tmp_path / "skypilot" / "good.gpus8.yaml").write_text("", encoding="utf-8")
    (tmp_path / "skypilot" / "bad.gpus16.yaml").write_text("", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["parsers", str(tmp_path)])

    assert main() == 1
    assert "skypilot: 2 files, 1 refused\n  bad.gpus16.yaml: ValueError: 16 GPUs" in capsys.readouterr().out
