"""The pricing room: what a GPU-hour costs, what the place adds, what owning costs, and the exports for finance."""

from pricing.gpu_price.price import quote_gpu
from pricing.place.site import site_facts

__all__ = ["quote_gpu", "site_facts"]
