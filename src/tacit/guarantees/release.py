"""A release: one output of a mechanism, with the guarantee it was drawn under.

Only a mechanism makes a release, because only a mechanism knows what its output costs. Everybody else receives releases and
derives others from them: ``map`` computes from what was released, ``then`` adds a second release of the same data, ``assuming``
and ``under`` state a weaker guarantee. Messages are built from releases and from nothing else.
"""

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Generic, TypeVar

from tacit.errors import InvalidGuarantee
from tacit.guarantees.guarantee import Guarantee, rho_exactly

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

MECHANISM = object()  # what the constructor asks for; tacit.mechanisms.noise.released is its only user


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """What may cross a boundary.

    ``guarantee`` covers the whole value. If ``value`` holds many outputs about the same data, it is their composition; if each
    output is about another user's data, it is the guarantee of each of them.
    """

    value: T_co
    guarantee: Guarantee
    maker: InitVar[object] = None

    def __post_init__(self, maker: object) -> None:
        if maker is not MECHANISM:
            raise TypeError(
                "only a mechanism makes a release: call its release(...), or derive one from another release by map, then, "
                "assuming or under."
            )

    def map(self, function: Callable[[T_co], U]) -> "Release[U]":
        """``function`` of the released value, under the same guarantee: post-processing costs nothing.

        ``function`` may use public values and fresh noise. It must not read private data.
        """
        return Release(function(self.value), self.guarantee, MECHANISM)

    def then(self, draw: "Callable[[T_co], Release[U]]") -> "Release[U]":
        """A second release of the same data, which may depend on this one, under the guarantee of both together."""
        later = draw(self.value)
        return Release(later.value, self.guarantee.then(later.guarantee), MECHANISM)

    def assuming(self, *assumptions: str) -> "Release[T_co]":
        """The same release with further assumptions. A release that promises nothing stays as it is."""
        if self.guarantee.promises_nothing:
            return self
        return Release(self.value, self.guarantee.assuming(*assumptions), MECHANISM)

    def under(self, stated: Guarantee) -> "Release[T_co]":
        """The same release under a guarantee that promises no more, such as the one that was charged.

        Raises InvalidGuarantee if ``stated`` promises more than this release does, or protects something else.
        """
        own, rho, stated_rho = self.guarantee, rho_exactly(self.guarantee), rho_exactly(stated)
        stronger = own.epsilon > stated.epsilon or own.delta > stated.delta
        stronger |= stated_rho is not None and (rho is None or rho > stated_rho)
        if stronger or own.protects != stated.protects:
            raise InvalidGuarantee("a release cannot be stated under a guarantee that promises more than its own.")
        return Release(self.value, stated, MECHANISM)

    def __str__(self) -> str:
        return f"release ({self.guarantee})"
