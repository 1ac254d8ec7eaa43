"""The model of `docs/model.md` a second time: plain Python numbers, one layout, ranks counted one by one.

Nothing is shared with the planner's arithmetic but its nouns. Encoder-decoders, Transformer-XL and convolutional
networks are not covered; `evaluate` must agree with everything else to 1e-9.
"""

from __future__ import annotations

import itertools
import math

from planner.performance.evaluation import UnitPrices
from tests.planner.brute_force_parts import SHARE_OF_LAYERS_RUN_AGAIN, Parts

WAITING = ("tp_comm", "cp_comm", "ep_comm", "pp_comm", "bubble", "dp_comm", "jitter")
HALF_IDLE = ("launch", "offload", "allocator")


class OneLayout(Parts):
    """Every figure of one layout, by a plain walk through the equations."""

    # -- communication

    @property
    def run_again(self) -> float:
        """Share of the layers, with their messages, that run forward once more before the backward pass."""
        return SHARE_OF_LAYERS_RUN_AGAIN[self.y.act_ckpt]

    def tensor_s(self, products_s: float) -> float:
        """Exposed in one layer, whose products take so long forward."""
        y, q = self.y, self.q
        if y.tp == 1:
            return 0.0
        group = self.ranks(y.tp, 1)
        payload = self.tokens * self.m.hidden * self.a
        exposed = 1 - (q.overlap_tp_ratio if group[0] <= group[2] else 0.0)
        unsplit = self.etp < y.tp and not self.m.shared_experts
        blocks = sum(1 if kind.routes and unsplit else 2 for kind in self.layers) / self.m.layers
        if not self.r.sequence_parallel:
            reduce = self.all_reduce(payload, group)
            return blocks * exposed * ((1 + self.run_again) * reduce + self.beside_product(reduce, products_s))
        gather, scatter = self.gather(payload, group), self.scatter(payload, group)
        forward = (1 + self.run_again) * (gather + scatter)
        backward = gather + self.beside_product(scatter, products_s)
        second_gather = self.beside_product(gather, products_s) if self.r.trains_all else 0.0
        return blocks * exposed * (forward + backward + second_gather)

    def beside_product(self, message_s: float, products_s: float) -> float:
        """What is left of a message of the backward pass that runs beside a product of the layer."""
        if not self.r.trains_all:
            return message_s
        m = self.m
        mixer = sum(self.mixer_params(kind) for kind in self.layers) / m.layers
        into = mixer - sum(
            m.hidden * (kind.attends * m.heads * m.value_dim + (m.linear.inner if kind.scans else 0))
            for kind in self.layers
        ) / m.layers  # fmt: skip
        mlp = self.fed_params()
        if not (m.experts and self.etp < self.y.tp):
            into = (into + mlp * (m.mlp_matrices - 1) / m.mlp_matrices) / 2
        return message_s - self.q.overlap_dp_ratio * min(message_s, products_s * into / (mixer + mlp))

    def fed_params(self) -> float:
        """Parameters that a token meets in the feed-forward: of a layer with experts, else of the mean one."""
        m = self.m
        if not m.experts:
            return m.dense_mlp_params * sum(kind.feeds for kind in self.layers) / m.layers
        routed = m.top_k * m.mlp_matrices * self.routed_width() * m.expert_ffn
        shared = m.shared_experts * m.mlp_matrices * m.hidden * m.expert_ffn
        around = 2 * m.hidden * m.expert_hidden if m.expert_hidden else 0
        return routed + shared + around + m.hidden * m.experts

    def tensor_calls_s(self) -> float:
        """Host time of the tensor parallel collectives of one layer."""
        y, q = self.y, self.q
        if y.tp == 1:
            return 0.0
        between_nodes = y.pp > 1 and y.gpus > max(self.c.nvlink_domain, self.c.gpus_per_node)
        each = q.collective_launch_s + (y.tp * q.pipelined_rank_s if between_nodes else 0.0)
        return (8 if self.r.sequence_parallel else 4) * each

    def context_s(self, layer: dict[str, float]) -> float:
        y, m, recomputed_share = self.y, self.m, self.run_again
        if y.cp == 1:
            return 0.0
        payload = self.tokens * y.cp * self.kv_heads_here() * (m.head_dim + m.value_dim) * self.a
        ranks = self.ranks(y.cp, y.tp)
        attending, scanning = (sum(getattr(k, has) for k in self.layers) / m.layers for has in ("attends", "scans"))
        passes = attending * ((2 + recomputed_share) * self.gather(payload, ranks) + self.scatter(payload, ranks))
        if m.linear is not None and not m.linear.key_dim:
            scanning = 0  # a convolution needs no tokens of other ranks but the last few
        sent_bytes = self.tokens * (self.scan_entering() + self.scan_sizes()[0]) * self.a
        exchanged = scanning * (2 + recomputed_share) * self.all_to_all(sent_bytes, ranks, 1.0)
        hidden = self.q.overlap_cp_ratio * (layer["attention"] + recomputed_share * layer["attention_f"])
        return max(0.0, passes - hidden) + exchanged

    def expert_s(self) -> float:
        y, m, q = self.y, self.m, self.q
        if not m.experts or y.ep == 1:
            return 0.0
        group = self.ranks(y.ep, 1 if self.etp < y.tp else y.tp)
        domains = max(1.0, group[0] / group[1])
        plain = self.r.moe_dispatcher == "alltoall"
        copies = m.top_k if plain else min(self.met(y.ep), m.top_k)
        sent_bytes = self.tokens / self.split * copies * self.routed_width() * self.a * self.busiest_ratio()
        crossing = 1.0 if plain else min(1.0, self.met(domains) / copies)
        exchange_s = self.all_to_all(sent_bytes, group, crossing, not plain)
        return (
            (4 + 2 * self.run_again)
            * exchange_s
            * (1 - q.overlap_ep_ratio)
            * sum(k.routes for k in self.layers)
            / m.layers
        )

    def met(self, parts: float) -> float:
        """How many of so many nodes or GPUs hold the experts of a token."""
        if self.m.expert_groups:
            return parts * (1 - self.missed_by(self.m.expert_groups / parts))
        return float(parts * (1 - (1 - 1 / parts) ** self.m.top_k))

    def missed_by(self, held: float) -> float:
        """The probability that a part with so many of the groups of experts has none of a token's."""
        m = self.m
        sets = list(itertools.combinations(range(m.expert_groups), m.token_groups))

        def none_of(first: int) -> float:
            shares = [sum(group < first for group in chosen) / m.token_groups for chosen in sets]
            return sum((1 - share) ** m.top_k for share in shares) / len(sets)

        if held < 1:  # an equal part of one group
            reached = m.token_groups / m.expert_groups
            return 1 - reached + reached * (1 - held / m.token_groups) ** m.top_k
        below = min(int(held), m.expert_groups - 1)
        return none_of(below) + (held - below) * (none_of(below + 1) - none_of(below))

    def send_s(self) -> float:
        y, q = self.y, self.q
        if y.pp == 1:
            return 0.0
        near_gpus = max(self.c.nvlink_domain, self.c.gpus_per_node)
        outside = y.gpus > near_gpus
        whole = self.tokens * self.m.hidden * self.a
        in_parts = self.r.sequence_parallel or self.r.stack in ("typical", "tuned", "classic")
        message = whole / y.tp if in_parts else whole
        gather_s = self.gather(whole, self.ranks(y.tp, 1)) if in_parts and not self.r.sequence_parallel else 0.0
        between_pairs = 1 < self.c.nvlink_domain < min(y.gpus, near_gpus)
        to_one = self.link_rate(2)
        link = min(to_one, q.pcie_bytes_per_s) if between_pairs else to_one
        far, near = message / q.nic_bytes_per_s + q.nic_latency_s, message / link + q.nvlink_latency_s
        two_in_a_node = 2 * y.gpus // y.pp <= near_gpus  # the stage at its edge has one neighbour outside
        message_s = near if not outside else (far + near) / 2 if two_in_a_node else far
        boundaries = 1 if y.pp == 2 else 2
        stall = boundaries * q.send_stall_s if outside and y.gpus >= q.stall_gpus else 0.0
        return 2 * (message_s + gather_s) * (1 - q.overlap_pp_ratio * (1.0 if y.vp > 1 else 0.5)) + stall

    def sent_each(self) -> tuple[float, float]:
        """Bytes of a parameter that is gathered, and of a gradient that is reduced."""
        p, two = self.p, 2.0
        casts = (p.weight_bytes, p.activation_bytes) == (4, two)  # autocast
        if self.adapts:
            gathered = min(p.gather_bytes, p.activation_bytes)
        else:
            gathered = two if casts and self.y.zero == 3 else p.gather_bytes
        return gathered, two if casts and self.y.zero == 3 else p.reduce_bytes

    def data_s(self, behind_s: float) -> float:
        r, p, q, y = self.r, self.p, self.q, self.y
        if y.dp * y.cp == 1 and not (self.m.experts and self.expert_ranks() > 1):
            return 0.0
        dense, expert = self.layer_params()
        most = max(self.stages())
        stride, holders = y.ep * self.etp, y.tp * y.cp * y.dp // (y.ep * self.etp * y.replicas)
        groups = [
            (most * dense + self.ends()[0], self.trained, self.ranks(y.dp * y.cp // y.replicas, y.tp)),
            (most * expert, self.trained_routed, self.ranks(max(1, holders), stride)),
        ]
        groups = [(n, part, g) for n, part, g in groups if n]
        trained = [(n * part, g) for n, part, g in groups if part]
        bucket = max(q.bucket_elements, q.bucket_rank_elements * y.dp * y.cp)
        # messages: a layer each, and the end; without ZeRO 3 a bucket each
        each = most + 1 if y.zero == 3 else math.ceil(max(1, sum(n for n, _ in trained) / bucket))
        whole, summed = self.sent_each()
        scatter = sum(self.scatter(n * summed, g, each) for n, g in trained)
        as_gathered = 0.516 if self.four_bits else whole
        gather = sum(self.gather(n * as_gathered, g, each) for n, _, g in groups)
        updated = sum(self.gather(n * as_gathered, g, each) for n, g in trained)
        times = y.grad_accum if y.zero == 2 or (y.zero == 3 and y.pp == 1) else 1
        gathers = times * (2 if y.pp == 1 and r.reshard_after_forward else 1)
        if y.zero == 0:
            busy = sum(self.all_reduce(n * p.reduce_bytes, g, each) for n, g in trained)
        elif y.zero == 3:
            busy = gathers * gather + times * scatter
        else:
            busy = times * scatter + updated
        if y.replicas > 1:
            shard = self.trained * (most * dense + self.ends()[0]) / self.dense_ranks()
            shard += self.trained_routed * most * expert / self.expert_ranks()
            apart = self.ranks(y.replicas, y.tp * (y.dp * y.cp // y.replicas))
            busy += self.all_reduce(shard * summed, apart)
        chunks = max(1.0, min(y.grad_accum, y.pp) * (y.vp - 1) / y.vp) if y.vp > 1 else 1.0
        each_micro_batch = y.zero == 2 or (y.zero == 3 and y.pp == 1)
        window = behind_s * (y.grad_accum if each_micro_batch else chunks)
        overlap = q.overlap_dp_ratio * (q.zero1_overlap_ratio if y.zero == 1 else 1)
        exposed = max(busy - overlap * window, busy / (most + 1) / times)
        slowed = q.interference_ratio * min(busy, window)
        if y.zero == 3:
            reduced = summed if r.trains_all else 0.0
            copied = sum(n for n, _, _ in groups) * (gathers * as_gathered + times * reduced)
            slowed += 2 * copied / q.memory_bytes_per_s
        return exposed + slowed

    # -- the update

    def updated_params(self) -> float:
        dense, expert = self.layer_params()
        most, sharded = max(self.stages()), self.y.zero >= 1
        held = self.trained * (most * dense + self.ends()[0]) / (self.dense_ranks() if sharded else 1)
        return held + self.trained_routed * most * expert / (self.expert_ranks() if sharded else 1)

    def update_bytes(self) -> float:
        p, o = self.p, self.r.optimizer
        moved = 3 * p.gradient_bytes + 2 * (o.full_moments * p.moment_bytes + o.fixed_state_bytes)
        moved += 2 * p.master_bytes + p.weight_bytes if p.master_bytes else 2 * p.weight_bytes
        return moved + (2 * p.gradient_bytes if p.loss_scaling else 0)

    def update_s(self) -> float:
        m, q = self.m, self.q
        side = min(m.hidden, m.expert_ffn) if m.experts else m.hidden
        arithmetic = self.updated_params() * self.r.optimizer.extra_flop_per_param * side / q.other_flop_per_s
        moved = 0.0 if self.r.offload == "optimizer" else self.updated_params() * self.update_bytes()
        return moved / q.optimizer_bytes_per_s + arithmetic + q.step_overhead_s

    def offload_s(self, busy_s: float, layers: int) -> float:
        if self.r.offload == "none":
            return 0.0
        if self.r.offload == "optimizer":
            return self.states_s(busy_s)
        moved = 2 * self.kept_bytes()[0] * layers * self.y.grad_accum
        return max(0.0, moved / self.q.pcie_bytes_per_s - 0.8 * busy_s)

    def states_s(self, busy_s: float) -> float:
        """Gradients down, weights up, the update in the host's memory."""
        p, q, y, m = self.p, self.q, self.y, self.y.grad_accum
        params, pcie = self.updated_params(), self.q.pcie_bytes_per_s
        host = min(q.host_memory_bytes_per_s / min(y.gpus, self.c.gpus_per_node), q.host_process_bytes_per_s)
        gradients = params * p.gradient_bytes
        hidden, bare = 0.0, params * self.update_bytes() / host
        if y.zero < 2:
            bare += gradients / pcie
        elif self.r.kernels == "classic":
            hidden += (2 * m - 1) * gradients / pcie
        else:
            hidden += gradients / pcie
            bare += (m - 1) * (gradients / pcie + 3 * gradients / host)  # FSDP waits for what it adds on the host
        if self.fetches_weights:
            hidden += 2 * m * self.weight_shard(max(self.stages()), self.ends()[0]) / pcie
        else:
            bare += params * (p.weight_bytes or p.master_bytes) / pcie
        return max(0.0, hidden - 0.8 * busy_s) + bare

    def paged_s(self) -> float:
        """Paged states that find no room are fetched for the update and sent back."""
        if not self.r.optimizer.paged:
            return 0.0
        states = self.updated_params() * self.r.optimizer.fixed_state_bytes
        room = self.c.gpu.memory_bytes - 0.55 * 2**30 - sum(self.memory().values())
        return 2 * max(0.0, min(states, states - room)) / self.q.pcie_bytes_per_s

    # -- the step

    def step(self) -> dict[str, float]:
        r, q, y = self.r, self.q, self.y
        layer, head = self.mean_layer(), self.head()
        tp, cp, ep = self.tensor_s(layer["matmul_f"]), self.context_s(layer), self.expert_s()
        run_again = self.run_again * (layer["matmul_f"] + layer["attention_f"] + layer["memory_f"])
        if y.act_ckpt == "selective":
            if r.attention == "naive":
                run_again = layer["attention_f"] + layer["softmax_f"]
            elif r.kernels in ("tuned", "classic"):
                run_again = layer["memory_f"] / 2 if self.m.experts else layer["attention_f"]
            else:
                run_again = layer["matmul_f"] / 2 + layer["memory_f"]
        layer_s = layer["matmul"] + layer["attention"] + layer["memory"] + run_again + tp + cp + ep
        head_s = head["matmul"] + head["memory"]
        stages = [n * layer_s for n in self.stages()]
        stages[-1] += head_s
        with_head = stages[-1] >= max(stages)
        n, slowest = self.stages()[-1] if with_head else max(self.stages()), max(stages)
        m = y.grad_accum
        ends = 1 if with_head else 0
        passes = 1 + self.run_again / 3
        host_s = max(self.stages()) * (layer["kernels"] * q.launch_s + self.tensor_calls_s()) * passes + 60 * q.launch_s
        waited = (slowest**6 + host_s**6) ** (1 / 6) - slowest  # the longer of the two, softly
        bubble = (sum(stages) - slowest) / y.vp if y.pp > 1 else 0.0
        idle = 0.0  # while the stages fill and drain, each of the others waits for its host as well
        if y.pp > 1:
            mean = (sum(stages) - slowest) / (y.pp - 1)
            idle = (y.pp - 1) * ((mean**6 + host_s**6) ** (1 / 6) - mean) / y.vp
        gpus = max(2, y.gpus)
        x = math.sqrt(2 * math.log(gpus))
        worst = max(0.56, x - (math.log(math.log(gpus)) + math.log(4 * math.pi)) / (2 * x) + 0.13)
        items = {
            "matmul": m * (n * layer["matmul"] + ends * head["matmul"]) * q.framework_ratio,
            "attention": m * n * layer["attention"] * q.framework_ratio,
            "memory_bound": m * (n * layer["memory"] + ends * head["memory"]) * q.framework_ratio,
            "recompute": m * n * run_again * q.framework_ratio,
            "launch": m * waited,
            "tp_comm": m * n * tp,
            "cp_comm": m * n * cp,
            "ep_comm": m * n * ep,
            "pp_comm": self.send_s() * (m * y.vp + y.pp - 1),
            "bubble": bubble * q.framework_ratio + idle,
            "dp_comm": self.data_s(slowest),
            "optimizer": self.update_s(),
            "offload": self.offload_s(m * slowest, max(self.stages())) + self.paged_s(),
            "jitter": q.jitter_ratio * (worst if y.gpus > 1 else 0.0) * (m * slowest + bubble + idle),
            "allocator": self.allocator_s(),
        }
        error_factor = q.model_error_ratio * q.precision_error_ratio
        error_factor *= q.stack_error_ratio * q.gpu_error_ratio * q.shape_error_ratio
        return {name: value * error_factor for name, value in items.items()}

    def allocator_s(self) -> float:
        """Every micro-batch of a pipeline flushes the allocator's cache where the memory is full."""
        filling = sum(self.memory().values()) / self.c.gpu.memory_bytes
        fill_ratio = min(1.0, max(0.0, (filling - 0.95) / 0.05))
        return (self.y.grad_accum + self.y.pp - 1) * fill_ratio * self.q.allocator_retry_s if self.y.pp > 1 else 0.0

    # -- memory

    def kept_bytes(self) -> tuple[float, float]:
        """Bytes that the mean layer keeps of one micro-batch: as checkpointed, and with nothing checkpointed."""
        r, m, y, a = self.r, self.m, self.y, self.a
        own_kernels, eager = r.kernels in ("tuned", "classic"), r.kernels == "eager"
        as_input = {"fp8": 1.0, "fp4": 0.5}.get(self.p.linear_compute, a) if own_kernels else a
        hidden, attention_out = self.tokens * m.hidden / self.split, self.tokens * m.heads * m.value_dim / y.tp
        gathered = hidden * (y.tp - 1) * self.q.gathered_input_ratio if r.sequence_parallel and not own_kernels else 0.0
        inner = (3 if m.gated_mlp else 2) + (1 if eager and (m.gated_mlp or m.kind != "encoder") else 0)
        queries = self.tokens * m.heads * m.head_dim / y.tp
        gate = attention_out if m.gated_attention else 0.0
        heads = queries * 2 + attention_out + gate if eager else self.head_elements()
        kept = []
        scan_values = self.scan_sizes()[0]
        # frozen, a weight beside no adapter does not ask for its input again
        into_mixer = 0 if self.adapts and r.lora_targets == "mlp" else 1
        into_mlp = 0 if self.adapts and r.lora_targets in ("attention", "qv") else 1
        for kind in self.layers:
            ffn = self.inner_elements(kind)
            routed = self.tokens * self.routed_width() * m.top_k * self.etp / y.tp if kind.routes else 0.0
            made_again = (into_mixer + into_mlp) * (hidden + gathered) + into_mlp * ffn
            scanned = kind.scans * self.tokens * self.scan_entering()
            mixed = kind.attends * attention_out + kind.scans * self.tokens * scan_values
            inputs = made_again + mixed + into_mlp * routed
            others = 2 * hidden + kind.attends * (heads + gate) + (inner - 1) * ffn + routed
            others += scanned + kind.scans * self.tokens * scan_values + self.scaled_outputs(kind)
            if kind.scans and not m.linear.key_dim:
                others += self.tokens * scan_values  # the input of the convolution
            whole = others * a + inputs * as_input + (2 * hidden if r.dropout else 0)
            kept.append((whole, ffn, made_again * as_input, mixed + scanned / 2, kind.attends))
        plain, ffn, made_again, mixed, attends = (sum(layer[i] for layer in kept) / len(kept) for i in range(5))
        autocast = eager and self.p.weight_bytes == 4 and a == 2
        in_fp32 = eager and a == 2 and (autocast or m.kind != "encoder")  # the softmax: 4 bytes, and 2 for the product
        of_score = ((6 if in_fp32 else 2 * a) + 1) if r.dropout else 6 if in_fp32 else a
        scores = attends * self.tokens * r.seq_len * m.heads / y.tp * of_score
        held_in_fp32, wider = autocast and y.zero != 3 and not self.adapts, 0.0
        if held_in_fp32:  # inputs of norms, and each of q, k, v, gate and up casts its own input
            again = (2 * attends if m.gated_mlp or m.kind == "encoder" else 0) + m.gated_mlp * (1 - m.moe_share)
            wider = hidden * (4 + 2 * again)
        whole = (plain + wider + (scores if r.attention == "naive" else 0)) * self.q.stored_activation_ratio
        if y.act_ckpt == "selective":
            if r.attention == "naive" or own_kernels:
                left = plain if r.attention == "naive" or not m.experts else plain - made_again
                return left * self.q.stored_activation_ratio, whole
            values = (self.head_elements() - queries - gate) * m.value_dim / (m.head_dim + m.value_dim)
            return (2 * hidden + attends * (queries + gate + values) + mixed + ffn) * a, whole
        at_start = hidden * (4 if held_in_fp32 else a)
        return self.run_again * at_start + (1 - self.run_again) * whole, whole

    def in_flight(self, last: bool) -> float:
        y = self.y
        if y.vp == 1:
            return 1.0 if last else float(min(y.pp, y.grad_accum))
        chunks = (y.vp - 1) * y.pp + 1 + (0 if last else 2 * (y.pp - 1))
        return min(chunks / y.vp, float(y.grad_accum))

    def stage_memory(self, last: bool) -> dict[str, float]:
        r, q, y, a = self.r, self.q, self.y, self.a
        dense, expert = self.layer_params()
        layers = self.stages()[-1] if last else max(self.stages())
        items = self.states(layers, last)
        kept, whole = self.kept_bytes()
        working = whole if self.run_again > 0 else max(whole / 4, whole - kept)
        if r.sequence_parallel and y.tp > 1:
            working += 2 * self.tokens * self.m.hidden * a
        stored = 2 * kept if r.offload == "activations" else kept * layers * self.in_flight(last)
        as_they_are = r.chunked_loss or (r.stack == "fsdp-compile" and not (r.software_year or 2026) < 2025)
        of_logit = q.logit_stored_bytes + (a - 2 if as_they_are else 0)
        logits = self.tokens * self.m.head_ratio * self.m.vocab / y.tp * of_logit
        if r.fused_head:  # as many chunks of tokens as the hidden state goes into the vocabulary
            logits /= max(1, math.ceil(self.m.vocab / self.m.hidden))
        logits = logits if y.pp == 1 or last else 0.0
        always, in_layer, at_loss, of_head = self.gathered_bytes(dense, expert)
        copies, one_layer = self.casts(layers, dense + expert)
        left = min(logits, logits / of_logit * a)  # the gradient of the logits, while that of the output layer is made
        if left + of_head > logits + at_loss:
            logits, at_loss = left, of_head
        if logits + at_loss > working + in_layer + one_layer:
            items |= {"activations": stored, "logits": logits, "gathered_params": always + at_loss}
            items["fp8_copies"] = copies
        else:
            items |= {"activations": stored + working, "logits": 0.0, "gathered_params": always + in_layer}
            items["fp8_copies"] = copies + one_layer
        if r.kernels not in ("tuned", "classic") and y.grad_accum == 1 and not self.sums_wider:
            items["gradients"] = max(0.0, items["gradients"] - items["activations"] - items["logits"])
        if r.stack == "classic" and self.p.gradient_bytes == 2 and self.p.master_bytes == 4:
            end = self.ends()[1 if last else 0]
            updated = self.trained * (layers * dense + end), self.trained_routed * layers * expert
            ranks = (self.dense_ranks(), self.expert_ranks()) if y.zero else (1, 1)
            cast = 4 * sum(n / among for n, among in zip(updated, ranks, strict=True))
            items["gradients"] += max(0.0, cast - items["activations"] - items["logits"])
        kept = self.trained * (layers * dense + self.ends()[1 if last else 0]) + self.trained_routed * layers * expert
        items["gradients"] += self.gradient_copies(kept)
        frozen = 0.0 if r.trains_all else items["weights"]
        fragmentation = (sum(items.values()) - frozen) * q.fragmentation_ratio
        items["comm_buffers"] = q.nccl_bytes * sum(1 for size in (y.tp, y.pp, y.cp, y.ep, y.dp) if size > 1)
        items["framework"] = q.context_bytes
        items["fragmentation"] = fragmentation
        error_factor = q.memory_error_ratio * q.memory_stack_error_ratio
        error_factor *= q.memory_architecture_error_ratio * q.memory_shape_error_ratio
        return {
            name: value * (1.0 if name == "weights" and r.method != "pretrain" else error_factor)
            for name, value in items.items()
        }

    @property
    def sums_wider(self) -> bool:
        """Whether gradients arrive in the narrower type of the weights and are summed in FP32."""
        return (self.p.weight_bytes, self.p.master_bytes, self.p.gradient_bytes) == (2, 4, 4)

    def weight_shard(self, layers: float, end: float) -> float:
        r, p, a = self.r, self.p, self.a
        dense, expert = self.layer_params()
        narrow = p.linear_compute in ("fp8", "fp4") and r.kernels in ("tuned", "classic")
        loaded = p.low_weight_copy_bytes if narrow else a  # frozen, they lie in the type they are used in
        weight = 0.516 if self.four_bits else loaded if self.adapts else p.weight_bytes or p.master_bytes
        at_ends = a if self.adapts else weight
        ranks = (self.dense_ranks(), self.expert_ranks()) if self.y.zero == 3 else (1, 1)
        return (layers * dense * weight + end * at_ends) / ranks[0] + layers * expert * weight / ranks[1]

    @property
    def fetches_weights(self) -> bool:
        """FSDP's parameters lie on the host with the rest."""
        shards = self.y.zero == 3 and (self.y.dp * self.y.cp > 1 or not self.adapts)
        return self.r.offload == "optimizer" and shards and self.r.kernels != "classic"

    def states(self, layers: float, last: bool) -> dict[str, float]:
        r, p, y = self.r, self.p, self.y
        dense, expert = self.layer_params()
        end = self.ends()[1 if last else 0]
        held = [(layers * dense + end, self.dense_ranks()), (layers * expert, self.expert_ranks())]
        master = max(p.weight_bytes, p.master_bytes) if self.adapts else p.master_bytes if p.weight_bytes else 0.0
        moments = r.optimizer.full_moments * p.moment_bytes + r.optimizer.fixed_state_bytes
        on_gpu = 0.0 if r.offload == "optimizer" else 1.0
        parts = self.trained, self.trained_routed
        updated = sum(n * part / (ranks if y.zero >= 1 else 1) for (n, ranks), part in zip(held, parts, strict=True))
        one_unit = r.update_in_backward or (r.offload == "optimizer" and y.zero >= 2)
        graded = [max(dense, end), expert] if one_unit else [n for n, _ in held]  # one layer, or one end
        shared = [
            n * part / (ranks if y.zero >= 2 else 1) for n, part, (_, ranks) in zip(graded, parts, held, strict=True)
        ]
        return {
            "weights": 0.0 if self.fetches_weights else self.weight_shard(layers, end),
            "gradients": sum(shared) * p.gradient_bytes,
            "master_weights": updated * master * on_gpu,
            "optimizer_states": 0.0 if r.optimizer.paged else updated * moments * on_gpu,
        }

    def gradient_copies(self, params: float) -> float:
        r, p, y = self.r, self.p, self.y
        if r.kernels == "tuned":
            return 0.0
        copies = params * p.weight_bytes if self.sums_wider and y.zero <= 1 else 0.0
        if y.dp * y.cp == 1:
            return copies
        if r.kernels == "classic":
            return copies + min(params, 1e9) * self.a
        return copies + (params * (p.weight_bytes if self.sums_wider else p.reduce_bytes) if y.zero == 0 else 0.0)

    def casts(self, layers: float, unit: float) -> tuple[float, float]:
        """Casts of weights that stay, and those of the layer at work."""
        r, p, y = self.r, self.p, self.y
        low = p.linear_compute in ("fp8", "fp4")
        wide = max(self.m.ffn_hidden or self.m.expert_ffn, self.m.linear.outputs if self.m.linear else 0)
        product = self.m.hidden * wide / y.tp  # the largest, of 4-bit weights
        unpacked = product * self.a if self.four_bits else 0.0
        if self.adapts and (not low or r.kernels in ("tuned", "classic")):
            return 0.0, unpacked
        stays = y.zero != 3 and r.trains_all and (not low or r.kernels in ("tuned", "classic"))
        each = p.low_weight_copy_bytes * unit
        at_work = p.low_weight_copy_bytes * product if self.four_bits else 2 * each
        casts = (p.weight_bytes, p.activation_bytes) == (4, 2)  # autocast: ZeRO 3 gathers what is cast already
        return (layers * each, unpacked) if stays else (0.0, (0.0 if casts else at_work) + unpacked)

    def gathered_bytes(self, dense: float, expert: float) -> tuple[float, float, float, float]:
        """Copies with ZeRO-3: those that stay, those of a layer at work, of the loss, and of the output layer's end."""
        r, y, m = self.r, self.y, self.m
        if y.zero != 3:
            return 0.0, 0.0, 0.0, 0.0
        whole, summed = self.sent_each()
        each = 0.516 if self.four_bits else whole
        gradient = summed if r.trains_all else 0.0
        stage = max(self.stages()) * (dense + expert)
        stays = stage * (each + gradient) if y.pp > 1 else 0.0
        if y.pp == 1 and not r.reshard_after_forward:
            stays = stage * each
        routed = m.experts * m.mlp_matrices * self.routed_width() * m.expert_ffn / (y.ep * self.etp)
        held = [routed if kind.routes else 0.0 for kind in self.layers]
        pairs = [before + after for before, after in itertools.pairwise(held)] or held
        head = m.vocab * m.hidden / y.tp
        at_loss = head * whole + (dense + max(held)) * each
        in_layer = (2 * dense + max(pairs)) * each + (dense + max(held)) * gradient
        return stays, in_layer, at_loss, at_loss + head * gradient

    def memory(self) -> dict[str, float]:
        first, last = self.stage_memory(last=False), self.stage_memory(last=True)
        return last if self.y.pp > 1 and sum(last.values()) > sum(first.values()) else first

    # -- the run

    def run(self, prices: UnitPrices, tokens: float) -> dict[str, float]:
        q, gpus = self.q, self.y.gpus
        step = self.step()
        step_s = sum(step.values())
        watts = dict.fromkeys(WAITING, q.power_wait_w)
        products_w = q.power_linear_w * q.product_power_ratio * self.draw_ratio()
        watts |= {"matmul": products_w, "recompute": products_w, "attention": q.power_attention_w}
        watts |= {"memory_bound": q.power_memory_w, "optimizer": q.power_memory_w}
        lost_w = (q.power_idle_w + q.power_wait_w) / 2
        watts |= dict.fromkeys(HALF_IDLE, lost_w)
        error_factor = q.model_error_ratio * q.precision_error_ratio
        error_factor *= q.stack_error_ratio * q.gpu_error_ratio * q.shape_error_ratio
        host_s = min(step["optimizer"], q.step_overhead_s * error_factor)
        step |= {"optimizer": step["optimizer"] - host_s, "launch": step["launch"] + host_s}
        error_factor = q.power_error_ratio * q.power_stack_error_ratio
        asked_j = error_factor * sum(seconds * watts[name] for name, seconds in step.items())
        limit_w = min(self.c.power_limit_w or self.c.gpu.tdp_w, self.c.gpu.tdp_w)
        step_j = min(asked_j, limit_w * step_s)
        steps = math.ceil(tokens / (self.r.global_batch * self.r.seq_len))
        per_s = max(gpus * q.failures_per_gpu_h / 3600, 1e-12)
        interval = math.sqrt(2 * q.checkpoint_s / per_s)
        lost = q.checkpoint_s / interval + per_s * (q.restart_s + interval / 2)
        busy = steps * step_s * q.run_error_ratio
        wall = busy * (1 + lost) * (1 + q.evaluation_ratio) * max(1.0, q.standstill_ratio)
        gpu_j = gpus * (steps * step_j * q.run_error_ratio + (wall - busy) * lost_w)
        beside_w = max(q.host_power_w, q.host_least_w) + q.network_power_w
        facility_kwh = (gpu_j + gpus * wall * beside_w) * prices.pue / 3.6e6
        cost = gpus * wall / 3600 * (prices.usd_per_gpu_h or 0.0) + facility_kwh * (prices.usd_per_kwh or 0.0)
        return {
            "step_s": step_s,
            "wall_s": wall,
            "gpu_power_w": step_j / step_s,
            "energy_kwh": facility_kwh,
            "cost_usd": cost,
            "carbon_kg": facility_kwh * prices.kg_co2e_per_kwh,
        }
