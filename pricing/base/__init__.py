"""The foundations of pricing: money, facts with their evidence, shipped data and user files, lists of names."""
