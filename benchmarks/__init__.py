"""Speed and memory as ratios against named peers in the same run. `make bench`, or `make bench ONLY=selection`."""
