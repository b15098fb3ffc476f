"""What the paper states, as far as its summary and its opening paragraphs tell. It has no experiments and prints no figures.

J. Fitzsimons, A. Freitas Pasqualini, R. Pisarczyk, D. Usynin, "Naturally Private Recommendations with Determinantal Point
Processes" (2024).
"""

NAME = "Naturally Private Recommendations with Determinantal Point Processes"
OURS = "tacit"
