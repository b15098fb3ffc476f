"""How bytes travel in a message of Flower, both ways. A reply has a status and bytes, and no room for anything else."""

from flwr.app import ConfigRecord, Message, RecordDict

from tacit.engines.flower.answers import NAME, Answer, Status

NAME_TYPE, STAGE_TYPE = "query.name", "train.stage"  # ``ClientApp().query("name")`` and ``ClientApp().train("stage")``
_RECORD, _CONTENT, _STATUS = "tacit", "content", "status"


def question(kind: str, node: int, content: bytes, seconds: float) -> Message:
    """A message of the coordinator's side."""
    return Message(
        RecordDict({_RECORD: ConfigRecord({_CONTENT: content})}),
        dst_node_id=node,
        message_type=NAME_TYPE if kind == NAME else STAGE_TYPE,
        group_id=kind,
        ttl=seconds,
    )


def content_of(message: Message) -> bytes:
    """What the coordinator sent; raises if it is not of this form."""
    content = message.content[_RECORD][_CONTENT]
    if not isinstance(content, bytes):
        raise TypeError("expected bytes")
    return content


def reply(message: Message, status: Status, content: bytes = b"") -> Message:
    return Message(RecordDict({_RECORD: ConfigRecord({_STATUS: status.value, _CONTENT: content})}), reply_to=message)


def answer(message: Message, node: int, kind: str) -> Answer:
    """What a node replied. Where it failed, Flower adds a reason, which may quote anything: it is not even read."""
    if message.has_error():
        return Answer(node, kind, Status.FAILED)
    try:
        record = message.content[_RECORD]
        status, content = Status(record[_STATUS]), record[_CONTENT]
    except (KeyError, ValueError, TypeError):
        return Answer(node, kind, Status.FAILED)
    return Answer(node, kind, status, content if isinstance(content, bytes) else b"")
