"""Each system, wired in one process: its parties speak through their real messages."""
