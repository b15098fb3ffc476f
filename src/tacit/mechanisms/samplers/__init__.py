"""Exact samplers: their draws have the stated law, not an approximation of it.

All of them decide events of the form "U < p" for a uniform U of unlimited precision. A first word of U, and p in integers or
in floats with a proved margin, settle nearly every case at array speed; the few cases inside the margin are settled in
unlimited precision by drawing further bits of the same U (`coins.is_below`). No probability is rounded, so no delta is needed.

OpenDP also has exact samplers for the discrete Laplace and Gaussian laws. They draw one value at a time. These are written for
arrays; tests compare their law with OpenDP's, and benchmarks their speed.
"""
