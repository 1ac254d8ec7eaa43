"""What was asked?

Every input of a question with its unit, reader, help and default; the question as typed and the question resolved,
each value with its source.
"""
