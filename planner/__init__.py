"""The nouns and the arithmetic of a plan: numpy and the standard library only, nothing read but its own rows."""
