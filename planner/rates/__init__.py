"""The uncertain inputs of the equations, such as hardware rates, as terms with a range and evidence.

Each term comes from the best available rung of the ladder of evidence.
"""
