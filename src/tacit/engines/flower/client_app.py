"""The part that an entity's node runs: it carries closed envelopes between the coordinator and the entity's two folders.

It has no path to rows, no key and no ledger. Flower lets the coordinator decide which code a node runs, so the account that
runs the node must not be able to reach more than this: the entity's own process, under another account, reads the messages,
charges its ledger, draws the noise and signs. What this code answers is a status, and never why something failed.
"""

from pathlib import Path
from time import monotonic, sleep

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from tacit.engines.flower.answers import Status
from tacit.engines.flower.envelope import content_of, reply
from tacit.engines.folders import Mailbox

_WAIT = 60.0  # seconds for the entity's process to answer; the coordinator asks again
_PAUSE = 0.2


def name(message: Message, context: Context) -> Message:
    """Whose messages this node carries."""
    try:
        return reply(message, Status.REPLY, _entity(context).encode())
    except Exception:  # Flower would send the text of any error to the coordinator
        return reply(message, Status.FAILED)


def stage(message: Message, context: Context) -> Message:
    """Lays a message into the entity's inbox and waits for what comes into its outbox."""
    try:
        return _carried(message, context)
    except Exception:
        return reply(message, Status.FAILED)


def _carried(message: Message, context: Context) -> Message:
    mailbox, content = Mailbox(_exchange(context)), content_of(message)
    mailbox.put(content)
    end = monotonic() + float(context.node_config.get("wait", _WAIT))
    while (found := mailbox.reply(content)) is None:
        if monotonic() >= end:
            return reply(message, Status.WAITING)
        sleep(_PAUSE)
    return reply(message, Status.REPLY, found) if found else reply(message, Status.KEPT)


def _entity(context: Context) -> str:
    """The node's own setting. A simulated node has none but its number: then the run's list says whose part it plays."""
    if "entity" in context.node_config:
        return str(context.node_config["entity"])
    return str(context.run_config["simulated"]).split(",")[int(context.node_config["partition-id"])]


def _exchange(context: Context) -> Path:
    if "exchange" in context.node_config:
        return Path(str(context.node_config["exchange"]))
    return Path(str(context.run_config["exchanges"])) / _entity(context)


app = ClientApp()
app.query("name")(name)
app.train("stage")(stage)
