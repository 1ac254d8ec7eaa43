"""Element formats, scalings, and histograms of exponents."""
