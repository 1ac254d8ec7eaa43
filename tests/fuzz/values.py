"""What stands after a flag: values that people write, and values that break programs."""

from __future__ import annotations

from collections.abc import Mapping

GPUS = (
    "h100-sxm5-80gb", "a100-sxm4-80gb", "h100", "b200", "v100-sxm2-32gb", "l4", "rtx-4090-24gb", "mi300x-192gb",
    "cpu-local",
)  # fmt: skip
NAMES = ("x", "acme", "us-east-1", "azure", "aws", "FR", "live:FR")
FILES = (
    "config.json", "own.toml", "quote.toml", "beside.toml", "tariff.toml", "runs.csv", "record.jsonl", "prices.csv",
    "answer.json", "cal.json", "nccl.txt", "empty", "folder", "no/such/file", "/dev/null", "-", "~",
    "~nobody-here/x", ".",
)  # fmt: skip
WRITTEN = (
    "out.html", "out.json", "-", "folder", "folder/out.csv", "no/such/out.html", "/dev/null", "/proc/x",
    "answer.json", "out.md",
)  # fmt: skip
SMALL = ("1", "2", "4", "8", "16")
FRACTIONS = ("50%", "0.9", "5%", "99%", "0.01")

PLAUSIBLE: Mapping[str, tuple[str, ...]] = {
    "params": ("125M", "1B", "7B", "13B", "7e9", "1_000_000_000"),
    "model": ("llama-3.1-8b", "gpt-2", "config.json", "llama-3", "mixtral-8x7b", "resnet-50"),
    "method": ("pretrain", "sft", "lora", "qlora"),
    "tokens": ("1B", "100M", "20B", "1.5T", "1"),
    "seq_len": ("512", "4096", "4k", "131072"),
    "global_batch": ("1", "64", "512", "4096"),
    "precision": ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "BF16"),
    "policy": ("bf16-fsdp", "bf16-pure", "fp8"),
    "optimizer": ("adamw", "sgd", "adamw-8bit", "muon", "lion"),
    "act_ckpt": ("none", "selective", "full"),
    "offload": ("none", "optimizer", "activations"),
    "grad_compression": ("none", "powersgd", "powersgd:8", "1bit", "fp8"),
    "stack": ("typical", "tuned", "fsdp-compile", "eager", "megatron"),
    "attention": ("flash", "naive"),
    "moe_dispatcher": ("deepep", "alltoall"),
    "mtp_layers": ("0", "1", "2"),
    "gpu": (*GPUS, "h100-sxm5-80gb,a100-sxm4-80gb", "h100-sxm5-80gb,h100-sxm5-80gb"),
    "gpus": ("1", "2", "8", "16", "64", "7", "12"),
    "deadline": ("30d", "12h", "90min", "2w", "1000d"),
    "budget": ("10k", "$2M", "1000000", "50"),
    "confidence": FRACTIONS,
    "memory_risk": FRACTIONS,
    "max_gpus": ("8", "64", "1024"),
    "gpus_per_node": SMALL,
    "network": ("400Gb/s", "8x400Gb/s", "ib-ndr", "100Gb/s", "10Gb/s"),
    "network_file": ("nccl.txt", "empty"),
    "power_limit": ("500", "500W", "auto", "0.5kW", "350"),
    "tp": SMALL, "pp": SMALL, "vp": SMALL, "cp": SMALL, "ep": SMALL, "micro_batch": SMALL,
    "zero": ("0", "1", "2", "3"),
    "price": ("2", "$2.50", "0.99", "199"),
    "price_like": GPUS,
    "provider": NAMES, "region": NAMES, "seller": ("provider", "broker", "marketplace"), "instance": NAMES,
    "commitment": ("on-demand", "spot", "1y", "3y"),
    "as_of": ("2026-08-28", "2020-01-01", "2099-12-31"),
    "date": ("2026-08-28", "2020-01-01"),
    "quote": ("quote.toml",), "own": ("own.toml",), "beside": ("beside.toml",), "tariff": ("tariff.toml",),
    "pue": ("1", "1.2", "1.5"),
    "electricity": ("0.12", "0.05"),
    "power_cap": ("2MW", "800kW", "10kW", "1GW"),
    "grid": ("FR", "US", "385", "DE", "live:FR"),
    "market_grid": ("0", "50"),
    "records": ("record.jsonl", "folder"),
    "calibration": ("cal.json",), "numerics": ("numerics.json",),
    "seed": ("0", "1", "42"),
    "format": ("terminal", "json", "csv", "markdown", "html", "cost-csv", "focus"),
    "report": WRITTEN, "output": WRITTEN,
    "max_cost": ("1", "2M", "$5"), "max_days": ("1", "1000"), "max_energy": ("1", "1000"),
    "title": ("A plan", "ein Plan für 7B"),
    "logo": ("logo.png", "config.json"),
    "redact": ("prices", "names", "prices,names"),
    "lang": ("en", "zh"),
    "view": ("same-gpus", "same-deadline"),
    "learn": ("0", "1", "3"),
    "plan": ("answer.json", "-", "answer.json"), "other": ("answer.json",),
    "figure": ("cost", "duration_days", "mfu", "energy_mwh", "cost_usd", "memory_gib"),
    "file": ("runs.csv", "prices.csv", "record.jsonl"),
    "record": ("record.jsonl",),
    "name": (*GPUS, "llama-3.1-8b", "2026"),
    "source": ("an offer", "azure", "gpuhunt"),
    "currency": ("USD", "EUR", "usd", "CHF"),
    "notes": ("seen on the web",),
    "address": ("http://127.0.0.1:1/prices", "http://127.0.0.1:1"),
    "suite": ("quick",), "device": ("cuda",), "workload": ("gemm",), "gpu_index": ("99",), "budget_s": ("1min",),
    "threads": ("1",), "resume": ("record.jsonl",),
}  # fmt: skip
"""Values that people write, by the name of the flag or argument."""

NASTY: tuple[str, ...] = (
    "", " ", "0", "-1", "-0", "00", "1.5", "1e-300", "1e-5", "5e-324", "1e18", "1e19", "1e300", "1e308", "1e309",
    "-1e309", "1" * 400, "9" * 5000, "1e999999999", "1e-999999999", "nan", "NaN", "inf", "-inf", "Infinity", "0x10",
    "1_000", "1__0", "_1", "1,5", "1,000", "1.2.3", "²", "٣", "½", "１２", "1²", "Ⅷ", "1e²", "٣B", "５d", "1e300GW",
    "9e305TB", "1e300d", "1e308B", "0W", "-5W", "5", "1e-320kW", "1e300%", "0%", "100%", "99.9999999999999999%",
    "1e-300%", "%", "-5%", "8x7B", "0x0B", "70 B", "70b ", "70BB", "B", "d", "GiB", "$", "$$2", "€5", "30", "-30d",
    "0d", "1e-300s", "2026-02-30", "0001-01-01", "9999-12-31", "2026-W01-1", "20260828", "2026-08-28T00:00",
    "١٠-١٠-٢٠", "yes", "no", "true", "None", "null", "[]", "{}", "a,b", ",", ",,", "h100,,a100", "h100,", "ü", "日本",
    "\u202e", "\u0301", "\ufeff7B", "\x1b[31m", "\x07", "\x1b]0;x\x07", "\x9b31m", "a\nb", "a\rb", "a\tb", "\x7f",
    "\udcff", "a\udcffb", "x" * 300, "x/" * 3000, "x" * 20000, "/" + "y" * 300, "../" * 50, "/", "//", "...", "~",
    "~root", "--", "-", "-x", "--json", "--help", "=", "a=b", "'", '"', "`", "$HOME", "%s", "%n%n", "{0}", "{x}",
    "{", "\\", "\\x00", "<b>", "=1+1", "@x", "[bold]", "[/]", "[link=file:///etc/passwd]x[/link]",
    "file:///etc/passwd", "http://127.0.0.1:1/x", "http://[", "http://127.0.0.1:99999/", "ftp://127.0.0.1/",
    "http://user:secret@127.0.0.1:1/", "live:", "live:x", "0xGb/s", "1e400Gb/s", "0Gb/s", "-8x400Gb/s", "8x",
    "x400Gb/s", "1e308Gb/s", "99999999x400Gb/s", "²x400Gb/s",
)  # fmt: skip
"""Values that break programs: beyond floats, other digits, empty, long, control characters, bytes that are no text."""
