"""Compare a real run with its plan: throughput, utilisation, lost time and end, as read from its log."""
