"""Layers, collectives and parameters of one layout in plain Python numbers: what `brute_force.py` puts together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.hardware.cluster import Cluster
from planner.kernels.power import ProductPower
from planner.kernels.surface import Surface
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout
from planner.rates.terms import Rates
from planner.training.recipe import Recipe

SHARE_OF_LAYERS_RUN_AGAIN = {"none": 0.0, "selective": 0.0, "full": 1.0, "every-2": 0.5, "every-4": 0.25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`count` products of `rows x inner` and `inner x columns`."""

    rows: float
    columns: float
    inner: float
    count: float = 1.0
    low: bool = True
    grouped: bool = False


def interpolated(nodes: object, at: list[float]) -> float:
    """Multilinear interpolation, one dimension after the other."""
    if not at:
        return float(nodes)  # type: ignore[arg-type]
    last = len(nodes) - 1  # type: ignore[arg-type]
    cell = min(int(at[0]), last - 1)
    low, high = (interpolated(nodes[cell + side], at[1:]) for side in (0, 1))  # type: ignore[index]
    return low + (at[0] - cell) * (high - low)


def on_surface(surface: Surface, flop: float, *sizes: float) -> float:
    """Seconds of some work at a shape as its surface says."""
    at = [
        min(max(math.log2(size) - axis.first, 0.0), axis.count - 1.0)
        for axis, size in zip(surface.axes, sizes, strict=True)
    ]
    return max(flop / math.exp(interpolated(surface.log_rate, at)), surface.floor_s)


def product_on(surface: Surface, rows: float, columns: float, inner: float) -> float:
    """Seconds of a product."""
    return on_surface(surface, 2 * max(rows, 16) * columns * inner, columns, inner, rows)


def watts_alone(power: ProductPower, rows: float, columns: float, inner: float, seconds: float) -> float:
    """What a product draws alone under the limit as sold: idle power, its FLOP and its bytes, at most what is held."""
    bytes_each = {"fp32": 4, "tf32": 4, "bf16": 2, "fp8": 1, "fp8-block": 1, "fp4": 0.5625}[power.compute]
    moved = (rows * inner + columns * inner) * bytes_each + rows * columns * (4 if bytes_each == 4 else 2)
    joules = power.j_per_flop * 2 * rows * columns * inner + power.j_per_byte * moved
    return min(power.held_w, power.law.idle_ratio * power.sold_w + joules / seconds)


def clock_left(power: ProductPower, watts: float) -> float:
    """Clock of work that draws so much under the limit as sold, under the one that is set."""
    idle = power.law.idle_ratio * power.sold_w
    share = max(power.limit_w - idle, power.sold_w / 20) / (watts - idle)
    if share >= 1:
        return 1.0
    clock = share ** (1 / power.law.clock_exponent)
    floor = power.law.voltage_floor
    return clock if clock >= floor else floor * share / floor**power.law.clock_exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer of the model has."""

    attends: bool
    scans: bool
    routes: bool
    """Whether it has experts."""
    feeds: bool
    """Whether it has a dense feed-forward."""
    joins: bool
    """Whether it is a module that predicts a further token."""


def layers_of(model: ModelShape) -> list[Layer]:
    """One for each layer; which of a hybrid's have what makes no difference to the sum."""
    fed = model.layers if model.ffn_layers is None else model.ffn_layers
    attended = model.layers if model.attention_layers is None else model.attention_layers
    scanned = model.linear.layers if model.linear else 0

    def routes(i: int) -> bool:
        return bool(model.experts) and model.dense_layers <= i < fed and (i - model.dense_layers) % model.moe_every == 0

    return [
        Layer(
            attends=i < attended,
            scans=model.layers - i <= scanned,
            routes=routes(i),
            feeds=i < fed and not routes(i),
            joins=model.layers - i <= model.mtp_unrolled,
        )
        for i in range(model.layers)
    ]


class Parts:
    """Products, layers, collectives and parameters of one layout."""

    def __init__(self, recipe: Recipe, cluster: Cluster, layout: Layout, rates: Rates) -> None:
        self.r, self.c, self.y, self.q = recipe, cluster, layout, rates
        self.m, self.p = recipe.model, recipe.policy
        self.a = self.p.activation_bytes
        self.tokens = layout.micro_batch * recipe.seq_len / layout.cp
        self.split = layout.tp if recipe.sequence_parallel else 1
        self.etp = layout.tp if self.m.experts and (layout.cp * layout.dp) % layout.ep == 0 else 1
        self.layers = layers_of(self.m)
        self.trained, self.trained_routed = self.trained_shares()

    def trained_shares(self) -> tuple[float, float]:
        """Adapters beside dense weights over all of these, and beside routed experts over those; 1 without adapters."""
        r, m = self.r, self.m
        if r.trains_all:
            return 1.0, 1.0
        beside = [0.0, 0.0]
        for weight in r.adapted:
            each = r.lora_rank * (weight.inputs + weight.outputs) + (weight.outputs if r.how.decomposed else 0)
            beside[weight.routed] += m.layers * weight.copies * each
        # of layers with experts; the modules of multi-token prediction that share their weights hold them once
        routed = m.held_share * m.moe_layers * m.routed_params
        return beside[0] / (m.params_total - routed), beside[1] / routed if routed else 0.0

    # -- work

    def kv_heads_here(self) -> float:
        return self.m.kv_heads / min(self.y.tp, self.m.kv_heads)

    def attention_products(self) -> list[Product]:
        m, t, tokens = self.m, self.y.tp, self.tokens
        out = Product(rows=tokens, columns=m.hidden, inner=m.heads * m.value_dim / t)
        if m.kv_lora_rank is None:
            gate = m.heads * m.value_dim / t if m.gated_attention else 0
            wide = m.heads * m.head_dim / t + gate + self.kv_heads_here() * (m.head_dim + m.value_dim)
            return [Product(rows=tokens, columns=wide, inner=m.hidden), out]
        content = m.head_dim - m.rope_head_dim
        chain = [
            Product(rows=tokens, columns=m.kv_lora_rank + m.rope_head_dim, inner=m.hidden),
            Product(rows=tokens, columns=m.heads * (content + m.value_dim) / t, inner=m.kv_lora_rank),
            out,
        ]
        queries = m.heads * m.head_dim / t
        if m.q_lora_rank is None:
            return [Product(rows=tokens, columns=queries, inner=m.hidden), *chain]
        down = Product(rows=tokens, columns=m.q_lora_rank, inner=m.hidden)
        return [down, Product(rows=tokens, columns=queries, inner=m.q_lora_rank), *chain]

    def mlp(self, rows: float, inner: float, count: float = 1.0, grouped: bool = False) -> list[Product]:
        ups = 2 if self.m.gated_mlp else 1
        outer = self.routed_width() if grouped else self.m.hidden
        return [
            Product(rows=rows, columns=ups * inner, inner=outer, count=count, grouped=grouped),
            Product(rows=rows, columns=outer, inner=inner, count=count, grouped=grouped),
        ]

    def routed_width(self) -> int:
        return self.m.expert_hidden or self.m.hidden

    def scan_sizes(self) -> tuple[float, float]:
        """Values and keys that this GPU scans for each of its tokens: of all tokens of the sequence, for its heads."""
        linear, y = self.m.linear, self.y
        if linear is None:
            return 0.0, 0.0
        key_heads_here = max(1.0, linear.key_heads / (y.tp * y.cp))
        return linear.value_heads * linear.value_dim / y.tp, key_heads_here * linear.key_dim * y.cp

    def scan_products(self) -> list[Product]:
        linear, t = self.m.linear, self.y.tp
        values, numbers = linear.value_heads * linear.value_dim / t, linear.head_inputs * linear.value_heads / t
        keys = linear.key_heads * linear.key_dim / min(t, linear.key_heads)
        sizes = [((1 + linear.gates) * values + 2 * keys + numbers, self.m.hidden), (self.m.hidden, values)]
        if linear.step_rank:
            sizes[0] = (2 * values, self.m.hidden)
            sizes += [(linear.step_rank + 2 * linear.key_dim, values), (values, linear.step_rank)]
        if linear.gate_rank:
            down, keys_here = (linear.gate_rank, self.m.hidden), linear.key_heads * linear.key_dim / t
            sizes += [down, down, (keys_here, linear.gate_rank), (values, linear.gate_rank)]
        return [Product(rows=self.tokens, columns=columns, inner=inner) for columns, inner in sizes]

    def scan_entering(self) -> float:
        """Elements per token that enter the scan or the convolution of one layer on this GPU."""
        values, keys = self.scan_sizes()
        if self.m.linear is None:
            return 0.0
        if self.m.linear.step_rank:
            return 3 * values + 2 * keys  # with a time step for each channel
        if self.m.linear.gate_rank:  # with a decay for each channel of a key
            return 2 * values + 2 * keys + self.m.linear.key_heads * self.m.linear.key_dim / self.y.tp
        return 2 * values + 2 * keys if self.m.linear.key_dim else 3 * values

    def joining_products(self, kind: Layer) -> list[Product]:
        """Hidden state and embedding side by side, to a hidden state: where a layer predicts a further token."""
        joined = Product(rows=self.tokens, columns=self.m.hidden / self.y.tp, inner=2 * self.m.hidden)
        return [joined] if kind.joins else []

    def layer_products(self, kind: Layer) -> list[Product]:
        m, y = self.m, self.y
        products = (self.attention_products() if kind.attends else []) + (self.scan_products() if kind.scans else [])
        products += self.joining_products(kind)
        if not kind.routes:
            return products + (self.mlp(self.tokens, m.ffn_hidden / y.tp) if m.ffn_hidden and kind.feeds else [])
        experts_here = m.experts / y.ep
        group_tokens = self.tokens * y.ep * (self.etp / y.tp)  # of all ranks that share the experts, once each
        rows = group_tokens * m.top_k / m.experts * self.busiest_ratio()
        products += self.mlp(rows, m.expert_ffn / self.etp, experts_here, grouped=True)
        products.append(Product(rows=self.tokens / y.tp, columns=m.experts, inner=m.hidden, low=False))
        if m.expert_hidden:
            products.append(Product(rows=self.tokens / y.tp, columns=m.expert_hidden, inner=m.hidden))
            products.append(Product(rows=self.tokens / y.tp, columns=m.hidden, inner=m.expert_hidden))
        if m.shared_experts:
            products += self.mlp(self.tokens, m.shared_experts * m.expert_ffn / y.tp)
        return products

    def busiest_ratio(self) -> float:
        """Tokens of the busiest GPU over the mean: of `ep` sums of experts, drawn without putting back."""
        ep, experts = self.y.ep, self.m.experts
        if ep == 1:
            return 1.0
        root = math.sqrt(2 * math.log(ep))
        largest = max(root - (math.log(math.log(ep)) + math.log(4 * math.pi)) / (2 * root) + 0.13, 0.56)
        return 1 + self.q.expert_load_sd_ratio * largest * math.sqrt((ep - 1) / max(experts - 1, 1))

    def keys(self) -> float:
        m, seq = self.m, float(self.r.seq_len)
        if self.r.attention == "naive":
            return seq
        causal = m.kind != "encoder"
        whole = seq / 2 if causal else seq
        window = m.sliding_window
        if window is None or window >= seq:
            return whole
        near = window - window**2 / (2 * seq) if causal else min(seq, 2.0 * window)
        share = 1 / m.global_attention_every if m.global_attention_every > 1 else 0.0
        if m.global_attention_layers is not None:
            share = min(m.global_attention_layers / max(sum(kind.attends for kind in self.layers), 1), 1)
        return share * whole + (1 - share) * near

    # -- seconds of one layer

    def product_times(self, product: Product) -> tuple[float, float]:
        """Forward, and forward with backward."""
        q, backward_passes = self.q, 2 if self.r.trains_all else 1
        name = "linear_flop_per_s" if product.low else "other_flop_per_s"
        surface, power = q.surface(name), q.power(name)
        if surface is None:
            return self.product_s(product), self.product_s(product) * (1 + backward_passes)
        large = 2 * 8192**3 / product_on(surface, 8192, 8192, 8192)
        slower = large / getattr(q, name)
        times = slower / q.grouped_matmul_ratio if product.grouped else slower * product.count
        times *= self.unaligned(product)
        seconds = []
        for sizes in self.passes(product):
            alone = product_on(surface, *sizes)
            clock = clock_left(power, watts_alone(power, *sizes, alone)) / clock_left(power, power.held_w)
            seconds.append(alone * times / clock)
        return seconds[0], sum(seconds)

    def unaligned(self, product: Product) -> float:
        """How much longer a product of a layer takes whose rows end within a line of memory."""
        compute, longer = self.p.linear_compute, 1.0
        if not product.low or compute == "fp32":
            return 1.0
        each = {"fp8": 1.0, "fp4": 0.5}.get(compute, self.a)
        for size in (product.columns, product.inner):
            wanted, halved = self.q.aligned_bytes, 1.0
            while wanted > 1 and round(size * each) % wanted:
                wanted, halved = wanted / 2, halved / self.q.unaligned_product_ratio
            longer = max(longer, halved)
        return longer

    def passes(self, product: Product) -> list[tuple[float, float, float]]:
        """Rows, columns and inner dimension of the forward product and its backward passes."""
        wide = product.count if product.grouped else 1.0
        m, n, k = product.rows, product.columns, product.inner
        return [(m, n * wide, k), (m, k * wide, n), (n, k * wide, m)][: 3 if self.r.trains_all else 2]

    def draw_ratio(self) -> float:
        """Mean watts of all products of the model over those of products that hold the limit."""
        products = [product for kind in self.layers for product in self.layer_products(kind)] + [self.head_product()]
        drawn = held = 0.0
        for product in products:
            name = "linear_flop_per_s" if product.low else "other_flop_per_s"
            surface, power = self.q.surface(name), self.q.power(name)
            if surface is None:
                seconds, held = self.product_times(product)[1], held + self.product_times(product)[1]
                watts = None if power is None else watts_alone(power, *self.law_alone(product))
                share = 1 if watts is None else min(watts, power.limit_w) / min(power.held_w, power.limit_w)
                drawn += seconds * share
                continue
            for sizes in self.passes(product):
                alone = product_on(surface, *sizes)
                watts = watts_alone(power, *sizes, alone)
                times = 1 / self.q.grouped_matmul_ratio if product.grouped else product.count
                seconds = alone * times / clock_left(power, watts)
                drawn += seconds * min(watts, power.limit_w) / min(power.held_w, power.limit_w)
                held += seconds
        return drawn / held

    def cast_bytes_per_s(self) -> float:
        surface = self.q.surface("linear_flop_per_s")
        measured = surface.cast_bytes_per_s if surface and self.r.kernels == "eager" else None
        return measured or self.q.memory_bytes_per_s

    def law_parts(self, product: Product) -> tuple[float, float]:
        """Arithmetic and operand traffic of a product without a surface."""
        p, q = self.p, self.q
        m, n, k = product.rows, product.columns, product.inner
        rate = q.linear_flop_per_s if product.low else q.other_flop_per_s
        rate *= q.grouped_matmul_ratio if product.grouped else 1
        bytes_in = self.a
        if product.low and p.linear_compute in ("fp8", "fp4"):
            bytes_in = 1.0 if p.linear_compute == "fp8" else 0.5
        arithmetic = 2 * m * n * k / rate * self.unaligned(product)
        moved = (m * k + n * k) * bytes_in + m * n * self.a
        return arithmetic, moved / q.operand_bytes_per_s

    def joined(self, arithmetic: float, traffic: float) -> float:
        return arithmetic + traffic - self.q.matmul_overlap_ratio * min(arithmetic, traffic)

    def law_alone(self, product: Product) -> tuple[float, float, float, float]:
        """Sizes of a product without a surface, and its seconds under the limit as sold."""
        power = self.q.power("linear_flop_per_s" if product.low else "other_flop_per_s")
        arithmetic, traffic = self.law_parts(product)
        seconds = self.joined(arithmetic * clock_left(power, power.held_w), traffic)
        return product.rows, product.columns, product.inner, seconds

    def product_s(self, product: Product) -> float:
        power = self.q.power("linear_flop_per_s" if product.low else "other_flop_per_s")
        arithmetic, traffic = self.law_parts(product)
        if power is not None:
            alone = watts_alone(power, *self.law_alone(product))
            arithmetic *= clock_left(power, power.held_w) / clock_left(power, alone)
        return self.joined(arithmetic, traffic) * product.count + self.q.kernel_s

    def fused_attention(self, flop: float) -> tuple[float, float]:
        """Forward, and forward with backward; under context parallelism a kernel and a sum for each chunk."""
        m, q, y = self.m, self.q, self.y
        surface, forward, backward = q.surface("attention_flop_per_s"), flop / q.attention_flop_per_s, 2.5
        if surface is not None:
            large_flop = 2 * 64 * 8192**2 * 128
            large = large_flop / on_surface(surface, large_flop, 128, 64, 8192)
            length = 2 * self.keys() / y.cp
            heads = m.heads / y.tp * y.micro_batch * max(length / 16384, 1)
            chunk_s = on_surface(surface, flop / y.cp, (m.head_dim + m.value_dim) / 2, heads, length)
            forward, backward = y.cp * chunk_s * large / q.attention_flop_per_s, 2.5 / q.attention_backward_ratio
        sums = (y.cp - 1) * 10 * q.fusion_ratio / q.memory_bytes_per_s
        out = self.tokens * m.heads / y.tp * m.value_dim
        return forward + out * sums, forward * (1 + backward) + (out + self.head_elements()) * sums

    def layer(self, kind: Layer) -> dict[str, float]:
        """Seconds of one layer and micro-batch."""
        r, m, q, y, a = self.r, self.m, self.q, self.y, self.a
        moe, products = kind.routes, self.layer_products(kind)
        timed = [self.product_times(product) for product in products]  # none, of a layer without mixer and feed-forward
        forward, total = sum(forward_s for forward_s, _ in timed), sum(total_s for _, total_s in timed)
        times = {"matmul_f": forward, "matmul": total}
        flop = 2 * self.tokens * self.keys() * m.heads / y.tp * (m.head_dim + m.value_dim)
        scores = self.tokens * r.seq_len * m.heads / y.tp
        casts = (self.p.weight_bytes, a) == (4, 2) and r.kernels in ("eager", "fsdp-compile")
        between = q.autocast_ratio if casts else 1.0
        if not kind.attends:
            times["attention_f"] = times["attention"] = softmax = 0.0
        elif r.attention == "flash":
            times["attention_f"], times["attention"] = self.fused_attention(flop)
            softmax = 0.0
        else:
            rate = q.other_flop_per_s * (1.0 if m.head_dim * a % 16 == 0 else q.misaligned_ratio)
            times["attention_f"] = flop / rate + 2 * scores * a / q.operand_bytes_per_s + 2 * q.kernel_s
            times["attention"] = 3 * times["attention_f"]
            softmax = scores * a * between * q.score_passes * q.fusion_ratio / q.memory_bytes_per_s
        norms = q.norm_passes + (q.dropout_passes if r.dropout else 0)
        elements = self.tokens * m.hidden / self.split * norms * between
        elements += kind.attends * self.head_elements() * q.qkv_passes + self.inner_elements(kind) * q.ffn_passes
        if moe:
            elements += self.tokens * self.routed_width() * m.top_k * self.etp / y.tp * q.moe_passes
        if kind.scans:
            passes = q.scan_passes if m.linear.key_dim else q.ffn_passes
            elements += self.tokens * self.scan_entering() * passes
        cast = sum(
            (o.rows * o.inner + o.rows * o.columns + o.columns * o.inner) * o.count for o in products if o.low
        ) * self.p.cast_bytes_per_element * q.cast_fusion_ratio / self.cast_bytes_per_s()  # fmt: skip
        adapted = self.adapted(kind) if self.adapts else []
        launched = q.kernels_per_layer + (q.kernels_per_moe_layer if moe else 0) + len(adapted) * q.kernels_per_adapter
        beside = self.tokens * sum(map(sum, adapted)) / y.tp
        moved_s = beside * q.adapter_passes * a * q.fusion_ratio / q.memory_bytes_per_s
        adapters_s = max(moved_s, 6.0 * r.lora_rank * beside / q.other_flop_per_s)
        run_again = elements * a * q.fusion_ratio / q.memory_bytes_per_s + cast + softmax + launched * q.kernel_s
        run_again += adapters_s
        gradients = sum(o.columns * o.inner * o.count for o in products) if r.trains_all else 0.0
        times["memory"] = run_again + gradients * 2 * self.p.gradient_bytes / q.memory_bytes_per_s
        times["memory_f"] = 0.4 * run_again
        if r.method in ("dora", "qdora"):  # the norm of weight and adapter, anew in each forward pass
            norm_s = self.normed_weights(kind) * q.magnitude_passes * a / q.memory_bytes_per_s
            times["memory"] += norm_s
            times["memory_f"] += norm_s
        if self.four_bits:
            unpack = sum(o.columns * o.inner * o.count for o in products) * q.unpacked_bytes / q.memory_bytes_per_s
            times["memory"] += 2 * unpack
            times["memory_f"] += unpack
        times["softmax_f"] = 0.4 * softmax
        times["kernels"] = launched
        return times

    @property
    def adapts(self) -> bool:
        return self.r.method in ("lora", "qlora", "dora", "qdora")

    @property
    def four_bits(self) -> bool:
        return self.r.method in ("qlora", "qdora")

    def adapted(self, kind: Layer) -> list[tuple[int, int]]:
        """Inputs and outputs of every weight with an adapter that a token of this layer passes."""
        into, out, up, down, up_of_expert, down_of_expert = self.adapted_parts(kind)
        experts = (up_of_expert + down_of_expert) * self.m.top_k
        return into + out + up + down + experts

    def adapted_scan(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the weights of linear attention before its scan."""
        h, linear = self.m.hidden, self.m.linear
        values, keys = linear.value_heads * linear.value_dim, linear.key_heads * linear.key_dim
        numbers, rank, steps = linear.head_inputs * linear.value_heads, linear.gate_rank, linear.step_rank
        if rank:
            down = [(h, keys), (h, keys), (h, values), (h, numbers), (h, rank), (h, rank)]
            return [*down, (rank, keys), (rank, values)]
        if steps:
            return [(h, 2 * values), (values, steps + 2 * keys), (steps, values)]
        return [(h, (1 + linear.gates) * values + 2 * keys + numbers)]

    def adapted_parts(self, kind: Layer) -> tuple[list[tuple[int, int]], ...]:
        """They by place: into and out of mixers, up and down in the feed-forward, and in one routed expert."""
        m, h, targets = self.m, self.m.hidden, self.r.lora_targets
        fused = self.r.kernels in ("tuned", "classic")  # one weight for q, k, v, and one for gate and up
        q, k, v = m.heads * m.head_dim, m.kv_heads * m.head_dim, m.kv_heads * m.value_dim
        q += m.heads * m.value_dim if m.gated_attention else 0
        into, out, up, down, expert_up, expert_down = [], [], [], [], [], []
        if targets == "qv":
            return ([(h, q), (h, v)] if kind.attends else []), [], [], [], [], []
        if kind.attends and targets != "mlp":
            if m.kv_lora_rank is not None:
                content = m.head_dim - m.rope_head_dim
                into = [(h, m.kv_lora_rank + m.rope_head_dim), (m.kv_lora_rank, m.heads * (content + m.value_dim))]
                into += [(h, q)] if m.q_lora_rank is None else [(h, m.q_lora_rank), (m.q_lora_rank, q)]
            else:
                into = [(h, q + k + v)] if fused else [(h, q), (h, k), (h, v)]
            out = [(m.heads * m.value_dim, h)]
        if kind.scans and targets == "all-linear":
            into += self.adapted_scan()
            values = m.linear.value_heads * m.linear.value_dim
            out += [(values, h)]
        if targets != "attention":
            wide = 2 if m.gated_mlp else 1

            def ups(outer: int, inner: int) -> list[tuple[int, int]]:
                return [(outer, wide * inner)] if fused else [(outer, inner)] * wide

            if kind.routes:
                expert_up, expert_down = ups(self.routed_width(), m.expert_ffn), [(m.expert_ffn, self.routed_width())]
                up, down = ups(h, m.expert_ffn) * m.shared_experts, [(m.expert_ffn, h)] * m.shared_experts
                up += [(h, m.expert_hidden), (m.expert_hidden, h)] if m.expert_hidden else []
            if kind.feeds:
                up, down = ups(h, m.ffn_hidden), [(m.ffn_hidden, h)]
        return into, out, up, down, expert_up, expert_down

    def scaled_outputs(self, kind: Layer) -> float:
        """Elements that the magnitudes of DoRA multiply: of each adapted weight, and of its adapter once more."""
        if self.r.method not in ("dora", "qdora"):
            return 0.0
        into, out, up, down, expert_up, expert_down = (sum(w for _, w in part) for part in self.adapted_parts(kind))
        split = self.tokens / self.y.tp * (into + up + self.m.top_k * (expert_up + self.etp * expert_down))
        return 2 * (split + self.tokens / self.split * (out + down))

    def normed_weights(self, kind: Layer) -> float:
        """Adapted weights on this GPU, every expert's included."""
        parts = [sum(inputs * outputs for inputs, outputs in part) for part in self.adapted_parts(kind)]
        return sum(parts[:4]) / self.y.tp + self.m.experts * sum(parts[4:]) / (self.y.ep * self.etp)

    def head_elements(self) -> float:
        m = self.m
        gate = m.heads / self.y.tp * m.value_dim if m.gated_attention else 0
        per_token = m.heads / self.y.tp * m.head_dim + gate + self.kv_heads_here() * (m.head_dim + m.value_dim)
        return self.tokens * per_token

    def inner_elements(self, kind: Layer) -> float:
        m = self.m
        if kind.routes:
            return self.tokens / self.y.tp * (m.top_k + m.shared_experts) * m.expert_ffn
        return kind.feeds * self.tokens * m.ffn_hidden / self.y.tp

    def mean_layer(self) -> dict[str, float]:
        layers = [self.layer(kind) for kind in self.layers]
        return {name: sum(layer[name] for layer in layers) / len(layers) for name in layers[0]}

    def head_product(self) -> Product:
        columns = self.m.vocab / self.y.tp
        return Product(rows=self.tokens * self.m.head_ratio, columns=columns, inner=self.m.hidden, low=False)

    def head(self) -> dict[str, float]:
        m, q = self.m, self.q
        product = self.head_product()
        logits = self.tokens * m.head_ratio * m.vocab / self.y.tp
        moved = logits * q.logit_bytes * self.a / 2 + 6 * self.tokens * m.hidden * self.a
        return {
            "matmul": self.product_times(product)[1],
            "memory": moved / q.memory_bytes_per_s + 20 * q.kernel_s,
        }

    # -- collectives: ranks counted one by one

    def ranks(self, size: int, stride: int) -> tuple[int, int, int]:
        """Ranks of a group, how many its first rank reaches without the network, and how many over the fastest links.

        In the group that lies worst.
        """
        near = max(self.c.nvlink_domain, self.c.gpus_per_node)
        joined = near if self.c.nvlink_domain == 1 else self.c.nvlink_domain

        def shared(gpus: int) -> int:
            counts = [sum(1 for i in range(size) if first + i * stride < gpus) for first in range(min(stride, gpus))]
            return max(1, min(counts))

        return size, shared(near), shared(joined)

    def link_rate(self, joined: int) -> float:
        """Bytes per second over those links of a GPU that lead to the other ranks; all do behind a switch."""
        peers = [gpu for gpu in range(self.c.gpu.nvlink_domain_gpus) if gpu > 0]
        if self.c.gpu.arch not in ("CDNA", "CDNA3", "CDNA4") or joined == 1 or not peers:
            return self.q.nvlink_bytes_per_s
        return self.q.nvlink_bytes_per_s / len(peers) * len([gpu for gpu in range(joined) if gpu > 0])

    def fewest_together(self, size: int, inside: int) -> int:
        """Ranks of the emptiest domain, where ranks are dealt to as few domains as hold them, one after another."""
        domains = next(count for count in range(1, size + 1) if count * inside >= size)
        return min(sum(1 for rank in range(size) if rank % domains == domain) for domain in range(domains))

    def latency(self, size: int, inside: int, hops: float) -> float:
        if size == 1:
            return 0.0
        fixed = self.q.nic_latency_s if size > inside else self.q.nvlink_latency_s
        return fixed + min(hops, 64) * self.q.hop_latency_s

    def reach_latency(self, size: int, inside: int, hops: float, streamed: float | None) -> float:
        """Of one message, of so many bytes where it follows others on a stream of its own."""
        full = self.q.node_latency_bytes
        share = min(1, streamed / full) if streamed is not None and full else 1
        reach = math.log2(size / inside) * self.q.node_doubling_s + (size / inside - 1) * self.q.node_hop_s
        return self.latency(size, inside, hops) + share * reach

    def measured_s(self, operation: str, payload: float, group: tuple[int, int, int], messages: float) -> float | None:
        """As the surface says, inside an NVLink domain that was measured."""
        (n, _, joined), surface = group, self.q.surface(operation)
        if n == 1 or n > joined or surface is None:
            return None
        at = [min(max(math.log2(n) - 1, 0), 2), min(max(math.log2(max(payload / messages, 1)) - 10, 0), 23)]
        passes = 2 if operation == "all_reduce" else 1
        bus = payload / messages * passes * (n - 1) / n
        once = max(bus / math.exp(interpolated(surface.log_rate, at)), surface.floor_s)
        large = math.exp(self.q.surface("all_gather").log_rate[-1][-1])
        hops = max(0, min(passes * (n - 1), 64) - passes * 7)
        return messages * (once * large / self.q.nvlink_bytes_per_s + hops * self.q.hop_latency_s)

    def gather(self, payload: float, group: tuple[int, int, int], messages: float | None = None) -> float:
        return self.ring("all_gather", payload, group, messages)

    def scatter(self, payload: float, group: tuple[int, int, int], messages: float | None = None) -> float:
        return self.ring("reduce_scatter", payload, group, messages)

    def pcie(self, payload: float, group: tuple[int, int, int]) -> float:
        """Between the pairs of cards that NVLink joins in a node; 0 where links are of one kind."""
        n, r, joined = group
        return payload * (n - 1) / n / self.q.pcie_bytes_per_s if joined < r else 0.0

    def ring(self, operation: str, payload: float, group: tuple[int, int, int], messages: float | None) -> float:
        n, r, _ = group
        measured = self.measured_s(operation, payload, group, messages or 1)
        inner = max(payload * (n - 1) / n / self.link_rate(group[2]), self.pcie(payload, group))
        least = self.fewest_together(n, r)
        outer = payload * (n - least) / n / least / self.q.nic_bytes_per_s
        line = max(inner, outer) + (messages or 1) * self.reach_latency(n, r, n - 1, messages and payload / messages)
        return line if measured is None else measured

    def all_reduce(self, payload: float, group: tuple[int, int, int], messages: float | None = None) -> float:
        n, r, joined = group
        measured = self.measured_s("all_reduce", payload, group, messages or 1)
        gain = self.q.nvls_gain_ratio if joined > 4 else 1.0
        inner = max(2 * payload * (n - 1) / n / (self.link_rate(joined) * gain), self.pcie(2 * payload, group))
        least = self.fewest_together(n, r)
        outer = 2 * payload * (n - least) / n / least / self.q.nic_bytes_per_s
        latency = self.reach_latency(n, r, 2 * (n - 1), messages and payload / messages)
        line = max(inner, outer) + (messages or 1) * latency
        return line if measured is None else measured

    def all_to_all(self, sent: float, group: tuple[int, int, int], copies: float, copied: bool = False) -> float:
        n, r, joined = group
        measured = self.measured_s("all_to_all", sent, group, 1)
        inner = max(
            sent * (joined - 1) / (joined if copied else n) / self.link_rate(joined),
            sent * (n - joined) / n / self.q.pcie_bytes_per_s if joined < r else 0.0,
        )
        outer = sent * (n - self.fewest_together(n, r)) / n * copies / self.q.nic_bytes_per_s
        line = max(inner, outer) + self.latency(n, r, n - 1) / 2
        return line if measured is None else measured

    # -- parameters

    def stages(self) -> list[int]:
        return self.filled() if self.m.mtp_unrolled and self.y.pp > 1 else self.shared()

    def shared(self) -> list[int]:
        """Layers of each stage: as even as can be, or embedding and output layer count as layers of the ends."""
        y, layers = self.y, self.m.layers
        if y.vp > 1 and layers % (y.pp * y.vp):
            each = (layers + 2) // y.pp
            return [each - 1, *(each for _ in range(y.pp - 2)), each - 1]
        if self.r.balances_stages and y.pp > 1 and y.vp == 1 and not self.m.mtp_unrolled:
            return self.stages_by_cost()
        whole, remainder = divmod(layers, y.pp)
        return [whole + (1 if i < remainder else 0) for i in range(y.pp)]

    def filled(self) -> list[int]:
        """As many in each chunk as can be; the last, which predicts further tokens, has what these leave."""
        pp, chunks, layers = self.y.pp, self.y.pp * self.y.vp, self.m.layers
        last = max(layers - math.ceil(layers / chunks) * (chunks - 1), self.m.mtp_unrolled)
        whole, remainder = divmod(layers - last, chunks - 1)
        sizes = [*(whole + (1 if i < remainder else 0) for i in range(chunks - 1)), last]
        return [sum(sizes[stage::pp]) for stage in range(pp)]

    def stages_by_cost(self) -> list[int]:
        """Each stage takes layers until the cost so far exceeds its share; the output layer comes last."""
        y, layers = self.y, self.m.layers
        output = self.m.vocab * self.m.hidden
        active = self.m.matrix_params_active - output * self.m.head_ratio
        cost = output * self.m.head_ratio / (active / layers)
        stages = [0] * y.pp
        stage = 0
        for done in range(1, layers + 1):
            stages[stage] += 1
            if stage < y.pp - 1 and done > (stage + 1) * (layers + cost) / y.pp:
                stage += 1
        return stages

    def layer_params(self) -> tuple[float, float]:
        """Dense and expert parameters of the mean layer on this GPU."""
        m, y = self.m, self.y
        dense = experts = 0.0
        for kind in self.layers:
            mixers = (self.attention_products() if kind.attends else []) + (self.scan_products() if kind.scans else [])
            mixers += self.joining_products(kind)
            dense += sum(op.columns * op.inner for op in mixers)
            if kind.routes:  # every rank has the whole router, and the projections around experts of another width
                around = 2 * m.hidden * m.expert_hidden if m.expert_hidden else 0
                shared = m.shared_experts * m.mlp_matrices * m.hidden * m.expert_ffn
                dense += shared / y.tp + around + m.hidden * m.experts
                experts += m.experts * m.mlp_matrices * self.routed_width() * m.expert_ffn / (y.ep * self.etp)
            elif kind.feeds:
                dense += m.dense_mlp_params / y.tp
        twice = m.mtp_unrolled - 1 if m.mtp_shares_weights and m.mtp_unrolled else 0  # layers that lie there once
        lying = (m.layers - twice) / m.layers
        return lying * (dense + m.vector_params) / m.layers, lying * experts / m.layers

    def mixer_params(self, kind: Layer) -> float:
        m = self.m
        params = (m.attention_params if kind.attends else 0.0) + (2 * m.hidden**2 if kind.joins else 0.0)
        return params + (m.linear.matrix_params(m.hidden) if kind.scans else 0.0)

    def ends(self) -> tuple[float, float]:
        """Parameters of the ends on the first and on the last stage."""
        table = (self.m.vocab + self.m.learned_positions) * self.m.hidden / self.y.tp
        output = self.m.vocab * self.m.hidden / self.y.tp
        if self.y.pp == 1:
            both_ends = table if self.m.tied_embeddings else table + output
            return both_ends, both_ends
        return table, output + (table if self.m.mtp_unrolled else 0.0)

    def expert_ranks(self) -> float:
        return max(1.0, self.y.tp * self.y.cp * self.y.dp / (self.y.ep * self.etp * self.y.replicas))

    def dense_ranks(self) -> float:
        return self.y.dp * self.y.cp / self.y.replicas
