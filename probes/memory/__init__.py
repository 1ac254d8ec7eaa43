"""Peak memory of a step, measured by the allocator or tracked without running it."""
