"""Probes: measure what this machine can do.

`precisions/` defines how a precision is applied to a module, `workloads/` what is run, `sensors/` what is read.
`timing/protocol.py` times it, `session/suite.py` runs a suite and `record/writer.py` writes the result. Importing
`probes.process.client` does not import torch; only the probe process (`process/worker.py`) does.
"""
