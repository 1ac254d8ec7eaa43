"""The main job as functions: a question in, an answer out, with prices and measurements filled in."""
