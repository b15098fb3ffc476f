"""Exact samplers: what they draw has the stated law, not an approximation of it.

All of them decide events of the form "U < p" for a uniform U of unlimited precision. A first word of U, and p in integers or
in floats with a proved margin, settle nearly every case at array speed; the few cases inside the margin are settled in
unlimited precision by drawing further bits of the same U (`decide.py`). No probability is ever rounded, so no delta is owed.

OpenDP has exact samplers for the discrete Laplace and Gaussian laws as well. They draw one value at a time; ours are written
for arrays and are compared with OpenDP's in the tests (the law) and in the benchmarks (the time).
"""
