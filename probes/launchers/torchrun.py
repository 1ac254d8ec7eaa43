"""The command of one node, the same under every launcher: torchrun with the others, then `mpplan probe` in each rank.

```
node 0   torchrun ── hosts the meeting point (is_host=1) ──┐
node 1   torchrun ── waits for it, as long as it is told ──┴─ ranks; the first writes the record
```

The options are those of https://docs.pytorch.org/docs/stable/elastic/run.html. `is_host` is said, since a node may go
by a name that its own host name does not match. The c10d rendezvous orders nodes by address, so that the first rank
need not be on the node that hosts it.
"""

from __future__ import annotations

import shlex

from probes.launchers.base import REQUIREMENT, ProbeJob

JOIN_TIMEOUT_S = 300
"""How long a node waits for the others where all are set up before they start; a wrong name ends here, too."""

HAS_MPPLAN = "python3 -c 'import mpplan, torch' 2>/dev/null"
"""Succeeds where nothing has to be installed."""

RECORD_MARK = "MPPLAN-RECORD"
"""Stands before each line of a record in a log."""

PRINT_RECORD = f"""gzip -c "$record" | base64 -w 120 | sed 's/^/{RECORD_MARK} /'"""
"""Prints the record into the log, a tenth of its size, with gzip's checksum."""

UNPACK_RECORD = f"sed -n 's|^.*{RECORD_MARK} \\([A-Za-z0-9+/=]*\\).*|\\1|p' | base64 -d | gunzip > mpplan-probe.jsonl"
"""Makes one file of what `PRINT_RECORD` printed; gunzip says so where something is missing."""


def torchrun(job: ProbeJob, *, local_address: str | None = None, join_timeout_s: int = JOIN_TIMEOUT_S) -> str:
    """Shell lines that measure with the other nodes.

    They read the variables `run_id`, `endpoint`, `is_host` (1 on the node that `endpoint` names, else 0), `record`.

    Args:
        job: what is asked.
        local_address: this node as the others reach it, as a shell word; None: torchrun takes the host name.
        join_timeout_s: how long this node waits for the others.
    """
    address = "" if local_address is None else f"  --local-addr {local_address} \\\n"
    return (
        f"python3 -m torch.distributed.run --nnodes {job.nodes} --nproc-per-node {job.ranks_per_node} \\\n"
        '  --rdzv-backend c10d --rdzv-endpoint "$endpoint" --rdzv-id "$run_id" \\\n'
        f'  --rdzv-conf "is_host=$is_host,join_timeout={join_timeout_s},read_timeout={join_timeout_s}" \\\n'
        f"{address}"
        f'  -m mpplan probe {shlex.join(job.arguments)} -o "$record"'
    )


def requirement() -> str:
    """What to install, as a shell word."""
    return shlex.quote(REQUIREMENT)
