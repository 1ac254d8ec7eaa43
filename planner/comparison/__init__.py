"""A real run beside its plan: what its log says of speed, utilisation, lost time, and the end."""
