"""How far are the predictions from runs that really happened?

Reads rows of published runs, fills in what they leave open, predicts each without seeing its result, and scores.
"""
