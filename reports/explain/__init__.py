"""From one number of an answer down to its inputs and their sources."""
