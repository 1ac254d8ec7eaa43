"""The parts of a report below the first screen, each a builder in the folder of what it answers."""
