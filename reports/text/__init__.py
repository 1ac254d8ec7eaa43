"""Words and numbers: cleaned text, rounding, units, and the string tables of each language."""
