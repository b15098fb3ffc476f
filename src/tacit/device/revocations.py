"""Revocation reaches every process that has the device's file: each wipes what it holds in its own memory."""

from collections.abc import Callable

from tacit.ledger import DisplayLedger


class Revocations:
    """Beside something private in memory: ``wipe`` removes it, at the first look after consent was revoked, wherever that was."""

    def __init__(self, displays: DisplayLedger, wipe: Callable[[], None]) -> None:
        self._displays, self._wipe = displays, wipe
        self._last = displays.last_revocation()

    def obey(self) -> int:
        """Look before anything is added and before anything is used. Returns the number of the revocation that is now obeyed."""
        last = self._displays.last_revocation()
        if last != self._last:
            self._wipe()
            self._last = (
                last  # after it: another thread that looks meanwhile wipes as well, and never uses what is still there
            )
        return last
