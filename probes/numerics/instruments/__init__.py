"""What is watched in training. Each instrument is given time and a place to keep what it has finished."""
