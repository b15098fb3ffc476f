"""Who states what."""

NAME = "Federating Recommendations Using Differentially Private Prototypes"
OURS = "tacit"
