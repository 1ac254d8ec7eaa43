# ruff: noqa: E501 - a pattern and its sentence belong on one line
"""The phrase book: sentences that the planner says in English, as patterns with their Chinese.

The groups of a pattern fill the braces in their order. What has no entry is shown in English and marked as such.
"""

from __future__ import annotations

PHRASES: dict[str, str] = {
    # assumptions
    r"The run trains on (\S+) tokens \((\S+) per parameter \(Hoffmann et al\. 2022\)\)\.?": "训练 {} 个词元（每个参数 {} 个，Hoffmann 等，2022）。",
    r"The run trains on (\S+) tokens(?: \((.*)\))?\.?": "训练 {} 个词元。",
    r"Each step trains (\S+) sequences \((\S+) tokens per step; by model size\)\.?": "每步训练 {} 条序列（{} 个词元，按模型大小）。",
    r"Each step trains (\S+) sequences \((\S+) tokens per step.*\)\.?": "每步训练 {} 条序列（{} 个词元）。",
    r"Sequences are (\S+) tokens long\.?": "序列长度为 {} 个词元。",
    r"The GPU is (.+?)\.?": "GPU 为 {}。",
    r"The run is to finish in (\S+?)\.?": "训练须在 {} 内完成。",
    r"The optimizer is (\S+?)\.?": "优化器为 {}。",
    r"The software stack is (\S+): fused kernels, overlapped communication\.?": "软件栈为 {}：融合内核，通信重叠。",
    r"The software stack is (\S+): .*": "软件栈为 {}。",
    r"All weights are trained from scratch \((\S+)\)\.?": "从头训练全部权重（{}）。",
    r"The network between nodes gives (\S+) Gbit/s per GPU\.?": "节点间网络为每张 GPU {} Gbit/s。",
    r"The network between nodes gives (.+?)\.?": "节点间网络为 {}。",
    r"Hosts draw (\S+) of what the GPUs draw, switches (\S+?)\.?": "主机功耗为 GPU 的 {}，交换机为 {}。",
    r"A GPU fails every (\S+) hours of use; a restart takes (\S+) minutes\.?": "每张 GPU 每使用 {} 小时发生一次故障；重启需 {} 分钟。",
    r"A run may stand still beyond failures: its high end takes up to (\S+) times as long, as published runs did\.?": "除故障外训练还可能停顿：区间上端最长为 {} 倍，与已公布的训练相同。",
    # why a precision is left out or does not fit
    r"(.+) \((.+)\) has no (\S+) matrix path with block scales \((\S+)\)": "{}（{}）没有 {} 矩阵通路",
    r"(.+) \((.+)\) has no (\S+) matrix path": "{}（{}）没有 {} 矩阵通路",
    r"does not fit, the leanest of (\S+) layouts needs (\S+) GiB per GPU, (\S+) GiB more than the (\S+) GiB of (\S+)": "放不下：{} 种方案中最省的一种每张 GPU 也需 {} GiB，多出 {} GiB（共 {} GiB，{}）",
    r"no layout divides these GPUs, the model and the global batch of (\S+) sequences evenly": "没有一种方案能把这些 GPU、模型和 {} 条序列的全局批次均匀切分",
    r"(\S+) GiB too much": "显存多出 {} GiB",
    r"(\S+)% slower": "慢 {}%",
    # notes of the inputs
    r"shape derived: (\S+) parameters, (\d+) layers, hidden (\d+), (\d+) heads \((\d+) kv\), FFN (\d+), vocabulary (\d+)": "推算的形状：{} 参数，{} 层，隐藏维度 {}，{} 个头（{} 个键值头），前馈 {}，词表 {}",
    r"(\S+) parameters, (\d+) layers, hidden (\d+), (\d+) heads \((\d+) kv\), FFN (\d+), vocabulary (\d+)": "{} 参数，{} 层，隐藏维度 {}，{} 个头（{} 个键值头），前馈 {}，词表 {}",
    r"(\S+) parameters, (\d+) layers, hidden (\d+), (\d+) heads \((\d+) kv\), (\d+) experts of (\d+), top (\d+), vocabulary (\d+)": "{} 参数，{} 层，隐藏维度 {}，{} 个头（{} 个键值头），{} 个专家（每个 {}），每词元 {} 个，词表 {}",
    r"(\S+) per parameter \(Hoffmann et al\. 2022\)": "每个参数 {} 个（Hoffmann 等，2022）",
    r"(\S+) tokens per step; by model size": "每步 {} 个词元；按模型大小",
    r"(\S+) tokens per step.*": "每步 {} 个词元",
    r"none of --gpus, --deadline and --budget was given": "未给出 --gpus、--deadline 或 --budget",
    r"fewest whole nodes that meet the target": "达到目标所需的最少整节点数",
    r"USD per GPU-hour: median over (\d+) providers(?: in (?:\S+))?, (\S+), one vote each \(its cheapest current price\), no marketplace asks, as of (\S+)": "每 GPU 小时美元：{} 家供应商的中位数（{}，各取其最低现价，不含市场挂单），截至 {}",
    r"kgCO2e per kWh, location-based": "每千瓦时千克 CO₂e，基于位置",
    r"(\d+) Gbit/s per GPU": "每张 GPU {} Gbit/s",
    r"GPU-hours?": "GPU 小时",
    r"kWh": "千瓦时",
    # gaps and warnings
    r"GPU price": "GPU 价格",
    r"the price book has no row for (\S+)": "价目中没有 {}",
    r"the price book has no (\S+) row for (\S+), only (.+)": "价目中没有 {} 的 {} 行，只有 {}",
    r"the cost is a lower bound; give --price or `mpplan prices add`": "费用只是下限；请给出 --price 或用 `mpplan prices add` 添加",
    r"stale prices": "过期的价格",
    r"more than 90 days old on (\S+): (.+)": "截至 {} 已超过 90 天：{}",
    r"the cost may be off; `mpplan prices refresh` or `--price` brings a newer one": "费用可能有偏差；可用 `mpplan prices refresh` 或 `--price` 更新",
    r"no price of the last 18 months is known; older rows are used: (.+)": "没有最近 18 个月的价格，使用了较早的行：{}",
    r"the day of these prices is known only to lie in an interval that has not ended: (.+)": "这些价格的日期只知落在一个尚未结束的区间内：{}",
    r"only (\d+) providers? known for (\S+): the range is the typical spread of GPUs with five or more": "{1} 只有 {0} 家供应商：区间取自有五家以上供应商的 GPU 的典型价差",
    r"grid factor": "电网因子",
    r"the place of region `(.+)` is not known": "区域 `{}` 的位置未知",
    r"the US average stands in; give --grid": "以美国平均值代替；请给出 --grid",
    r"electricity price": "电价",
    r"none is known": "没有已知值",
    r"the cost is a lower bound; give --electricity": "费用只是下限；请给出 --electricity",
    r"(\S+) x (\S+) would train for (\S+) years: add --deadline": "{} 张 {} 要训练 {} 年：请加上 --deadline",
    # what would narrow a range
    r"`mpplan probe` on this GPU": "在这款 GPU 上运行 `mpplan probe`",
    r"nccl-tests between two nodes, then `--network`": "在两个节点之间运行 nccl-tests，再用 `--network`",
    r"nccl-tests inside one node": "在单个节点内运行 nccl-tests",
    r"a short run on two nodes": "在两个节点上短跑一次",
    r"a short run of this model on one node": "在一个节点上短跑一次这个模型",
}
