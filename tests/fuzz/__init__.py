"""What the program is attacked with: one module per surface, a runner, and the rules of what an outcome may not show.

A surface is a module of this folder with two functions; `python -m tests.fuzz` finds it by them:

    cases(seed)   an endless iterator of cases; the same seed gives the same ones, and a case needs no other one
    run(case)     runs one case in this process and returns its outcome, which has at least `code`, `out` and `err`

A case has `keep(surface, sentences)`, which writes it to a small file in `tests/corpus/<surface>/` and returns its
path, or the module has `kept(case)` for that. What else a module may have:

    faults(case, outcome)   what is wrong, in sentences; without it `tests.fuzz.faults.faults` judges
    read_case(path)         a case that was kept, where cases are of a class of their own

`tests/fuzz/test_corpus.py` runs every kept case in JSON again.
"""
