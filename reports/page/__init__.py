"""The whole report: its first screen, its sliders, the comparison of two answers, and the order of the sections."""
