"""Plans under a cap on the facility's power, and the power limit at which a plan is cheapest."""
