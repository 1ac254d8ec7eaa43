"""Which plan answers this question: how many GPUs, in which layout, for how long, and with what uncertainty?

The package turns a resolved question, prices and measured terms into an answer with ranges, evidence, assumptions and
gaps.
"""
