"""Training logs as the frameworks write them: their lines, the events in each line, and the run that they describe."""
