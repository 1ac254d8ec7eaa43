"""Energy of a window and power by activity, from the sensors."""
