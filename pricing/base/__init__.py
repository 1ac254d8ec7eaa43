"""The foundations of pricing: money, facts with evidence, shipped data and user files, lists of names."""
