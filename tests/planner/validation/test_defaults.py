from planner.validation.defaults import Default, Filled


def test_a_default_says_what_it_stands_for_and_what_is_taken():
    searched = Default(inputs=("tp", "micro_batch"), taken="chosen by the layout search")

    assert searched.text == "tp, micro_batch: chosen by the layout search"
    assert searched.decisive
    assert not Default(inputs=("micro_batch",), taken="1").decisive


def test_a_later_default_of_an_input_stands_in_the_place_of_the_earlier_one():
    filled = Filled()
    filled.take("zero", as_="0")
    filled.take("stack", as_="typical")
    filled.take("zero", as_="1, the least that fits")

    assert [default.text for default in filled] == ["zero: 1, the least that fits", "stack: typical"]
