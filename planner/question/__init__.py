"""What was asked?

Every input of a question is declared here with its parser, help and default. The question as typed becomes the
question resolved, in which every value has its source.
"""
