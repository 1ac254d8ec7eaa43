"""The sections of a report below the first screen, each built by a module in the folder of its topic."""
