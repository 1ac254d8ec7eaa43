"""Real training, instrumented to show what a precision does to the numbers.

`formats` and `statistics` are independent of training; `tasks` define what is trained; `lowering` turns layers to a
precision; `instruments` observe; `session` gives each instrument time, writes its findings and resumes after a kill.
"""
