"""Which system fits: one table, and one line for each system that does not. Nothing here is measured; that comes afterwards."""

from enum import StrEnum
from typing import NamedTuple

from tacit.evaluation.advice.situation import Holder, Situation, Wants


class System(StrEnum):
    MULTI_SELECTION = "multi-selection"
    PRIVATE_SELECTION = "private-selection"
    FEDERATED_PROTOTYPES = "federated-prototypes"
    CROSS_DOMAIN = "cross-domain"
    PRIVATE_SLATES = "private-slates"


class Decision(NamedTuple):
    """``system`` is None where none of them fits; ``why`` then says what to change."""

    system: System | None
    why: str


def decide(at: Situation) -> Decision:
    """The one system for a situation, or none."""
    if at.items == 1:
        return Decision(None, "There is one item, and nothing to choose: show it. That tells nobody anything.")
    return {Holder.DEVICE: _device, Holder.ENTITY: _entity, Holder.CURATOR: _curator}[at.holder](at)


def _device(at: Situation) -> Decision:
    if at.two_domains:
        return Decision(
            None,
            "Devices alone cannot tell how tastes of two domains go together: somebody has to hold ratings of both. A curator who "
            "does releases a model once (ask again with the holder 'curator'); devices use it at home, and nothing leaves them.",
        )
    if at.server_sees_choice and at.wants is Wants.SLATE:
        return Decision(
            None,
            "Where the server has to see what was shown, each item shown is a release. Private selection shows one: ask again for "
            "an item (its `slots=` share one epsilon among several, which was never measured). A slate that nobody has to see is "
            "multi-selection's.",
        )
    if at.server_sees_choice:
        return Decision(
            System.PRIVATE_SELECTION,
            "The profile is on the device and the server has to see what was shown: the device chooses at random, its own best "
            "item more likely than others, and reports that one item exactly.",
        )
    return Decision(
        System.MULTI_SELECTION,
        "The profile is on the device and nobody has to see the choice: the device sends its features with noise, the server "
        "answers with several items, and the pick is made at home.",
    )


def _entity(at: Situation) -> Decision:
    if at.two_domains:
        return Decision(
            None,
            "No system here carries tastes between domains across organisations. One that holds ratings of both domains is the "
            "curator of its own users: ask again with the holder 'curator'.",
        )
    if at.wants is Wants.SLATE:
        return Decision(
            System.PRIVATE_SLATES,
            "A slate for everybody needs no other organisation: each one is the curator of its own users and draws its own.",
        )
    if at.entities == 1:
        return Decision(
            None,
            "A single organisation has nobody to learn from. It is the curator of its users: ask again with the holder 'curator'; "
            "what stays inside for its own users needs no release at all.",
        )
    return Decision(
        System.FEDERATED_PROTOTYPES,
        "Several organisations hold users of their own: each sends noisy shares of sums, once, and fits its own users at home with "
        "the model that comes back.",
    )


def _curator(at: Situation) -> Decision:
    if at.wants is Wants.SLATE or not at.two_domains:
        told = (
            " Tastes in another domain are of no use to a page that is the same for everybody."
            if at.two_domains
            else ""
        )
        return Decision(
            System.PRIVATE_SLATES,
            "A trusted curator holds the ratings: what leaves is a slate whose whole draw is private, or noisy counts, once."
            + told,
        )
    return Decision(
        System.CROSS_DOMAIN,
        "A trusted curator holds ratings of two domains: it releases a model once, which predicts one domain from ratings in the "
        "other, for anybody and any number of times.",
    )


def rejected(at: Situation, taken: System | None) -> dict[System, str]:
    """Why not the others: one line each."""
    on_device, is_page = at.holder is Holder.DEVICE, at.wants is Wants.SLATE
    lines = {
        System.MULTI_SELECTION: (
            "it is for profiles on devices; here somebody else holds them already" if not on_device
            else "it knows one domain only" if at.two_domains
            else "the server never learns the pick, and here it has to"
        ),
        System.PRIVATE_SELECTION: (
            "it is for profiles on devices; here somebody else holds them already" if not on_device
            else "it scores the items of one domain only" if at.two_domains
            else "it reports what was shown and pays for every time; here nobody has to see it" if not at.server_sees_choice
            else "it shows one item at a time, and a slate is wanted"
        ),
        System.FEDERATED_PROTOTYPES: (
            "it is for several organisations that each hold users of their own" if at.holder is not Holder.ENTITY
            else "it carries nothing between domains" if at.two_domains
            else "a slate for everybody needs no sums over other organisations' users" if is_page
            else "with one organisation there is nobody to add up with"
        ),
        System.CROSS_DOMAIN: (
            "it needs one party that holds ratings of both domains" if at.holder is not Holder.CURATOR
            else "there is one domain" if not at.two_domains
            else "it predicts for a user by her own ratings, and a page for everybody has none"
        ),
        System.PRIVATE_SLATES: (
            "it needs a party that holds many users' ratings" if on_device
            else "its slates are the same for everybody and know nothing of the other domain" if at.two_domains
            else "its slates are the same for everybody, and an item for each user is wanted"
        ),
    }  # fmt: skip
    if at.items == 1:
        return dict.fromkeys(System, "there is nothing to choose")
    return {system: line for system, line in lines.items() if system is not taken}
