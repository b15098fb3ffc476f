"""An entity's own process: ``python serve.py SETTINGS``. It alone is told where the rows are, and Flower knows nothing of it."""

import sys
import time

from tacit.engines.folders import Mailbox
from tacit.engines.settings import entity_settings, open_entity

if __name__ == "__main__":
    settings = entity_settings(sys.argv[1])
    mailbox, seen = Mailbox(settings.path("mailbox")), set[str]()
    with open_entity(settings) as entity:
        while True:
            if names := {file.name for file in mailbox.inbox.iterdir()} - seen:
                mailbox.answer(entity)
                seen |= names
            time.sleep(0.2)
