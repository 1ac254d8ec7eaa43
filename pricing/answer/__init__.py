"""Answer questions about money: prices, and beside the plans other places, starting hours and power limits."""
