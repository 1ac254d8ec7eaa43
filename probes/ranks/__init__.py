"""Several processes that measure together: how they find each other, decide jointly, and are timed."""
