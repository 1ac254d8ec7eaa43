"""The probes: what this machine can do, measured.

`precisions/` says how a precision is applied to a module, `workloads/` what is run, `sensors/` what is read;
`protocol.py` is the measurement in time, `session.py` runs a suite of them and `record_writer.py` keeps the result.
Importing any module of this room does not import torch; only the probe process does (`worker.py`, started by
`client.py`).
"""
