"""The one door through which anything leaves a device over a network: a message, and nothing that is none."""

import json

from tacit.device.exchange import BINARY, JSON, MOST_REPLY, Call
from tacit.errors import InvalidParameter
from tacit.messages.multi_selection import Request
from tacit.messages.private_selection import Engagement, Impression, OfferRequest

PATHS = {
    Request: "/v1/multi-selection",
    OfferRequest: "/v1/private-selection/offers",
    Impression: "/v1/private-selection/impressions",
    Engagement: "/v1/private-selection/engagements",
}


def posted(message: Request | OfferRequest | Impression | Engagement, form: str = JSON, most: int = MOST_REPLY) -> Call:
    """The call that sends a message to the place for its kind; the answer is to have the same form."""
    path = PATHS.get(type(message))
    if path is None:
        raise InvalidParameter(f"only these leave a device: {', '.join(kind.__name__ for kind in PATHS)}.")
    if form == BINARY and isinstance(message, Request):
        return Call("POST", path, BINARY, message.to_bytes(), BINARY, most)
    body = json.dumps(message.to_json(), separators=(",", ":")).encode()  # one message is one text
    return Call("POST", path, JSON, body, JSON, most)
