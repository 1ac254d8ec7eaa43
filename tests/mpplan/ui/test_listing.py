import sys

from mpplan.ui.listing import counted, details, figure, folding, power_of_two, table, wrapped


def test_columns_are_aligned_and_figures_stand_right():
    text = table(("id", "W"), [("a100", "400"), ("b", "-")])

    assert text == "id      W\na100  400\nb       -\n"


def test_a_terminal_cuts_the_line_and_a_pipe_does_not(monkeypatch):
    rows = [("x", "s" * 100)]
    assert len(table(("id", "source"), rows).splitlines()[1]) == 104

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    cut = table(("id", "source"), rows).splitlines()[1]
    assert (len(cut), cut[-1]) == (40, "…")


def test_figures_are_rounded_once_and_the_unknown_is_a_dash():
    assert [figure(989e12, 1e12), figure(0.10887), figure(None), figure(79.649, 1, 3)] == ["989", "0.1089", "-", "79.6"]


def test_details_align_their_names():
    assert details((("id", "x"), ("memory", "1 GiB"))) == "id      x\nmemory  1 GiB\n"


def test_long_texts_are_wrapped_to_the_columns_also_in_a_pipe(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = wrapped("warning  p1  " + "word " * 20, 9).splitlines()

    assert max(len(line) for line in lines) <= 40
    assert len(lines) > 2
    assert all(line.startswith(" " * 9 + "word") for line in lines[1:])


def test_a_long_value_of_a_detail_stays_under_its_own_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = details((("id", "x"), ("source", "word " * 12))).splitlines()

    assert lines[0] == "id      x"
    assert all(line.startswith(" " * 8 + "word") for line in lines[2:])


def test_a_narrow_terminal_gets_further_blocks_that_begin_with_the_keys(monkeypatch):
    headers, rows = ("task", "precision", "the verdict", "all seeds"), [("char-lm", "fp8", "NOT equivalent", "12")]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert folding(headers, rows, 2) == table(headers, rows)  # a pipe gets one line a row

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert folding(headers, rows, 2) == (
        "task     precision  the verdict\n"
        "char-lm  fp8        NOT equivalent\n"
        "\n"
        "                      all\n"
        "task     precision  seeds\n"
        "char-lm  fp8           12\n"
    )


def test_long_texts_of_the_first_columns_wrap_where_the_width_is_known(monkeypatch):
    headers, rows = ("way", "flags", "risk"), [("the whole model", "--policy bf16-pure --optimizer adamw-8bit", "5%")]
    monkeypatch.setenv("COLUMNS", "40")

    assert folding(headers, rows, 2) == (
        "way        flags                    risk\n"
        "the whole  --policy bf16-pure       5%\n"
        "model      --optimizer adamw-8bit\n"
    )


def test_powers_and_counts_are_written_as_people_do():
    assert [power_of_two(16), power_of_two(-9), power_of_two(0)] == ["2¹⁶", "2⁻⁹", "2⁰"]
    assert [counted(1, "step"), counted(0, "step"), counted(2, "seed")] == ["1 step", "0 steps", "2 seeds"]
