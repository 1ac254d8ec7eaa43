"""The price of a GPU-hour: from a named provider, from the market, or reserved."""
