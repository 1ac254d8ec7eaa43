"""Kubernetes: an Indexed Job, and the headless Service through which its pods find each other.

See https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/. In a container's arguments, `$(…)` is
expanded by the cluster, so the script contains none.
"""

from __future__ import annotations

from json import dumps
from textwrap import indent

from probes.launchers.base import NAME, Launcher, Need, ProbeJob
from probes.launchers.device_names import product_labels
from probes.launchers.torchrun import HAS_MPPLAN, PRINT_RECORD, UNPACK_RECORD, requirement, torchrun

JOIN_TIMEOUT_S = 1800
"""Pods do not become ready at the same time: one may pull an image or install PyTorch while others wait."""

_SELECTOR = f"app.kubernetes.io/name={NAME}"

_MANIFEST = """\
# Measures {what} with mpplan; written by `mpplan probe --recipe kubernetes`.
#   kubectl apply -f FILE
#   kubectl logs{namespace_flag} -f job/{name}    # progress
# The record is at the end of the log. To get it as one file, and then to delete the job:
#   kubectl logs{namespace_flag} -l {selector} --tail=-1 | {unpack}
#   kubectl delete -f FILE
apiVersion: v1
kind: Service
metadata:
  name: {name}{namespace}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app.kubernetes.io/name: {name}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}{namespace}
spec:
  completionMode: Indexed
  completions: {nodes}
  parallelism: {nodes}
  backoffLimit: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
    spec:
      subdomain: {name}
      restartPolicy: Never
      affinity:
{affinity}
      containers:
        - name: probe
          image: {image}
          command: [bash, -c]
          args:
            - |
{script}
          # Edit me: what the network of the nodes needs beyond the cluster's default, for example for RDMA
          # securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}
{limits}          volumeMounts:
            - name: shared-memory
              mountPath: /dev/shm
            - name: record
              mountPath: /record
      volumes:
        - name: shared-memory  # for NCCL; by default, a container has 64 MiB
          emptyDir:
            medium: Memory
            sizeLimit: 16Gi
        - name: record
          emptyDir: {{}}
"""

_SCRIPT = """\
# Edit me: Python >= 3.11 with mpplan[probe,float8]. It is installed here if the image has none.
if ! {has_mpplan}; then
  PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet {requirement} || exit 1
fi
endpoint="{name}-0.{name}:29400"
run_id="{name}"
is_host=0
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then is_host=1; fi
record=/record/mpplan-probe.jsonl
status=0
{torchrun} || status=$?
if [ -s "$record" ]; then
  {print_record}
elif [ "$status" != 0 ]; then
  sleep 60  # a pod that fails takes the others with it: one may still have its record to print
fi
exit "$status"
"""

_ONE_POD_A_NODE = f"""\
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: {NAME}
"""

_ON_GPU = """\
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: nvidia.com/gpu.product
            operator: In
            values: [{labels}]
"""


def _write(job: ProbeJob) -> str:
    namespace = job.settings.get("namespace")
    script = _SCRIPT.format(
        name=NAME,
        has_mpplan=HAS_MPPLAN,
        requirement=requirement(),
        torchrun=torchrun(job, local_address=f'"$HOSTNAME.{NAME}"', join_timeout_s=JOIN_TIMEOUT_S),
        print_record=PRINT_RECORD,
    )
    return _MANIFEST.format(
        what=job.what,
        name=NAME,
        namespace="" if namespace is None else f"\n  namespace: {dumps(namespace)}",
        namespace_flag="" if namespace is None else f" -n {namespace}",
        selector=_SELECTOR,
        unpack=UNPACK_RECORD,
        nodes=job.nodes,
        affinity=indent(_affinity(job), " " * 8).rstrip("\n"),
        image=dumps(job.settings["image"]),
        script=indent(script, " " * 14).rstrip("\n"),
        limits=_limits(job),
    )


def _affinity(job: ProbeJob) -> str:
    if job.gpu is None:
        return _ONE_POD_A_NODE
    labels = ", ".join(dumps(label) for label in product_labels(job.gpu))
    return _ON_GPU.format(labels=labels) + _ONE_POD_A_NODE


def _limits(job: ProbeJob) -> str:
    if job.on_cpu:
        return ""
    return indent(f"resources:\n  limits:\n    nvidia.com/gpu: {job.ranks_per_node}\n", " " * 10)


LAUNCHER = Launcher(
    name="kubernetes",
    takes=("gpu", "image", "namespace"),
    needs=(
        Need(
            setting="image",
            what="a container image",
            hint="`--image IMAGE` with Python >= 3.11 and PyTorch, "
            "for example `pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime`",
        ),
    ),
    start="kubectl apply -f {file}",
    returned="the top of the file has the line that brings the record back",
    write=_write,
)
"""Kubernetes."""
