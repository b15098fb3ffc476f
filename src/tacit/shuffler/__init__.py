"""The shuffler: takes reports, keeps them until their batch is closed, and passes them on without who or when.

It does not collude with the server; that is trusted, and nothing here can check it. It sees items, groups and tokens, no offers.
"""

from tacit.shuffler.shuffler import Shuffler

__all__ = ["Shuffler"]
