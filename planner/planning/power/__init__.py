"""Plans under a cap on the facility's power, and the power limit that makes them the cheapest."""
