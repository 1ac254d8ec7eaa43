"""Real training, instrumented: what a precision does to the numbers.

`formats` and `statistics` know no training; `tasks` are what is trained; `lowering` turns layers to a precision;
`instruments` watch; `session` gives them time, writes what they found and goes on after a kill.
"""
