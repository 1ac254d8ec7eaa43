"""What one GPU-hour costs: by a named provider, on the market, or reserved."""
