"""The app that an entity's node runs. It carries sealed messages between the coordinator and the entity's mailbox.

The node has no path to rows, no key and no ledger. Flower lets the coordinator decide which code a node runs, so the
account that runs the node must not be able to reach more than the two folders. The entity's own process, under another
account, reads the messages, charges its ledger, draws the noise and signs. A node answers with a status, and never with
the reason of a failure.
"""

from pathlib import Path
from time import monotonic, sleep

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from tacit.engines.flower import NAME, Answer, Status
from tacit.engines.folders import Mailbox

NAME_TYPE, STAGE_TYPE = "query.name", "train.stage"  # ``ClientApp().query("name")`` and ``ClientApp().train("stage")``
_RECORD, _CONTENT, _STATUS = "tacit", "content", "status"
_WAIT = 60.0  # seconds that the entity's process has to answer; after that the coordinator asks again
_PAUSE = 0.2


def name(message: Message, context: Context) -> Message:
    """Answers with the name of the entity whose messages this node carries."""
    try:
        return reply(message, Status.REPLY, _entity(context).encode())
    except Exception:  # Flower would send the text of any error to the coordinator
        return reply(message, Status.FAILED)


def stage(message: Message, context: Context) -> Message:
    """Puts a message into the entity's inbox and waits for the reply in its outbox."""
    try:
        return _carry(message, context)
    except Exception:
        return reply(message, Status.FAILED)


def question(kind: str, node: int, content: bytes, seconds: float) -> Message:
    """A message from the coordinator to a node."""
    return Message(
        RecordDict({_RECORD: ConfigRecord({_CONTENT: content})}),
        dst_node_id=node,
        message_type=NAME_TYPE if kind == NAME else STAGE_TYPE,
        group_id=kind,
        ttl=seconds,
    )


def content_of(message: Message) -> bytes:
    """The bytes that the coordinator sent; raises if the message has another form."""
    content = message.content[_RECORD][_CONTENT]
    if not isinstance(content, bytes):
        raise TypeError("expected bytes")
    return content


def reply(message: Message, status: Status, content: bytes = b"") -> Message:
    """A node's reply: a status and bytes, and no room for anything else."""
    return Message(RecordDict({_RECORD: ConfigRecord({_STATUS: status.value, _CONTENT: content})}), reply_to=message)


def answer(message: Message, node: int, kind: str) -> Answer:
    """Reads a node's reply. If the node failed, Flower adds a reason that may quote anything; it is not read."""
    if message.has_error():
        return Answer(node, kind, Status.FAILED)
    try:
        record = message.content[_RECORD]
        status, content = Status(record[_STATUS]), record[_CONTENT]
    except (KeyError, ValueError, TypeError):
        return Answer(node, kind, Status.FAILED)
    return Answer(node, kind, status, content if isinstance(content, bytes) else b"")


def _carry(message: Message, context: Context) -> Message:
    if "exchange" in context.node_config:
        folder = Path(str(context.node_config["exchange"]))
    else:  # in a simulation
        folder = Path(str(context.run_config["exchanges"])) / _entity(context)
    mailbox, content = Mailbox(folder), content_of(message)
    mailbox.put(content)
    end = monotonic() + float(context.node_config.get("wait", _WAIT))
    while (response := mailbox.reply(content)) is None:
        if monotonic() >= end:
            return reply(message, Status.WAITING)
        sleep(_PAUSE)
    return reply(message, Status.REPLY, response) if response else reply(message, Status.KEPT)


def _entity(context: Context) -> str:
    """The entity in the node's own settings. A simulated node has only a number, an index into the run's list."""
    if "entity" in context.node_config:
        return str(context.node_config["entity"])
    return str(context.run_config["simulated"]).split(",")[int(context.node_config["partition-id"])]


app = ClientApp()
app.query("name")(name)
app.train("stage")(stage)
