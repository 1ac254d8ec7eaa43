"""What does this question cost: how many GPUs, in which layout, for how long, and how sure is that?

From a resolved question, prices and measured terms to an answer with ranges, evidence, assumptions and gaps.
"""
