"""What was asked?

Every input of a question is declared here with its parser, help and default. The question as typed is resolved into one
in which every value has its source.
"""
