"""Words and numbers: cleaned text, rounding, units, and the tables of each language."""
