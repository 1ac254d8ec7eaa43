"""What the program is attacked with: one module per surface, a runner, and the rules of what an outcome may not show.

A surface is a module of this folder with two functions; `python -m tests.fuzz` finds it by them:

    cases(seed)   an endless iterator of `Case`; the same seed gives the same cases, and a case needs no other one
    run(case)     runs one case in this process and returns its `Outcome`

It may have a third, `faults(case, outcome)`, the sentences that say what is wrong with an outcome, none where nothing
is; without it `tests.fuzz.faults.faults` judges. Findings are kept in `tests/corpus/<surface>/`, one small file each,
and `tests/fuzz/test_corpus.py` runs them all again.
"""
