"""What a report was made on: enough to judge times and figures by, nothing that names the machine or its owner."""

import os
import platform


def machine() -> dict[str, str]:
    """Kind of system, processor and memory; no host, no user, no path."""
    found = {
        "system": platform.system(),
        "release": platform.release().split("-")[0],
        "architecture": platform.machine(),
        "processors": str(os.cpu_count() or "unknown"),
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return found
