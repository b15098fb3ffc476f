"""A process of its own: opens the device in a file, waits for a line, asks, and prints the bytes that it would send."""

import sys
from pathlib import Path

from small_world import opened  # beside this file

if __name__ == "__main__":
    with opened(Path(sys.argv[1])) as device:
        device.rate({2: 5} if int(sys.argv[2]) % 2 else {21: 1})  # what each of them knows is different
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        sys.stdout.write(device.request(5).to_bytes().hex())
