"""The Python API of the main job: from a question to an answer, with prices and measurements filled in."""
