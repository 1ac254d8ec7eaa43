"""Pricing: the price of a GPU-hour, the costs of a place, the cost of owning machines, and the exports for finance."""

from pricing.gpu_price.price import quote_gpu
from pricing.place.site import site_facts

__all__ = ["quote_gpu", "site_facts"]
