"""What was measured, how is it recorded, and can it be trusted?

The measurement itself, its JSON Lines file, the check of a record, and the store that finds the record of a GPU.
"""
