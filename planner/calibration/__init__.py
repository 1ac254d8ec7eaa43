"""Which parameter values fit the published runs best, and what the fit leaves unexplained?

The fit, the residuals of runs whose source was left out, and the run that puts both together. It returns rows; `make
calibrate` writes them.
"""
