"""The price of a GPU-hour: of a named provider, of the market, or reserved."""
