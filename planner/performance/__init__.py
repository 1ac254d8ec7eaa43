"""How long does a step take, how much memory does it need, and what does a run of them add up to?

The equations, written once as numpy functions over arrays: one layout or millions, one value or a thousand draws.
"""
