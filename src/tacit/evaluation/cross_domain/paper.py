"""Who states what. Of the paper its abstract and its technical report (four theorems) could be read, no table and no figure."""

NAME = "What You Might Like To Read After Watching Interstellar"
UNVERIFIED = "the same paper, from general knowledge of it: unverified"
OURS = "tacit"
