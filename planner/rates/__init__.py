"""How fast is this hardware, and how sure is that?

The uncertain inputs of the equations as terms with a range and their evidence, from the best rung of the ladder.
"""
