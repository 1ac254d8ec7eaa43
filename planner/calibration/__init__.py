"""What do runs that happened tell about the parameters?

The hierarchical model of lineages, its fit to published runs with every lineage left out in turn, and what a user's own
runs change. It returns values; commands and `make calibrate` write them.
"""
