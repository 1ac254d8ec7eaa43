"""The command of one node, the same for every launcher: torchrun joins the nodes and runs `mpplan probe` per rank.

```
node 0   torchrun ── hosts the meeting point (is_host=1) ──┐
node 1   torchrun ── waits for it, as long as it is told ──┴─ ranks; the first writes the record
```

Options: see https://docs.pytorch.org/docs/stable/elastic/run.html. `is_host` is given explicitly, because a node may be
addressed by a name that differs from its own host name. The c10d rendezvous orders nodes by address, so the first rank
need not be on the node that hosts it.
"""

from __future__ import annotations

import shlex

from probes.launchers.base import REQUIREMENT, ProbeJob

JOIN_TIMEOUT_S = 300
"""Seconds that a node waits for the others if all are set up before they start; a wrong name ends here, too."""

HAS_MPPLAN = "python3 -c 'import mpplan, torch' 2>/dev/null"
"""Command that succeeds if nothing has to be installed."""

RECORD_MARK = "MPPLAN-RECORD"
"""Prefix of each line of a record in a log."""

PRINT_RECORD = f"""gzip -c "$record" | base64 -w 120 | sed 's/^/{RECORD_MARK} /'"""
"""Command that prints the record into the log, at a tenth of its size, with gzip's checksum."""

UNPACK_RECORD = f"sed -n 's|^.*{RECORD_MARK} \\([A-Za-z0-9+/=]*\\).*|\\1|p' | base64 -d | gunzip > mpplan-probe.jsonl"
"""Command that turns the output of `PRINT_RECORD` into one file; gunzip reports missing parts."""


def torchrun(job: ProbeJob, *, local_address: str | None = None, join_timeout_s: int = JOIN_TIMEOUT_S) -> str:
    """Return shell lines that measure together with the other nodes.

    They read the variables `run_id`, `endpoint`, `is_host` (1 on the node that `endpoint` names, else 0) and `record`.

    Args:
        job: the job.
        local_address: address of this node for the others, as a shell word; None: torchrun takes the host name.
        join_timeout_s: seconds for which this node waits for the others.
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
    """Return the package to install, as a shell word."""
    return shlex.quote(REQUIREMENT)
