"""The audit in one line for each mechanism."""

from typing import NamedTuple

from tacit.audit import AuditReport


class Audited(NamedTuple):
    """``worst``: the largest share of its claim that a mechanism was seen to lose, over all cases; None where a claim is 0."""

    name: str
    checks: str
    holds: bool
    worst: float | None
    twins: int
    caught: int
    faults: tuple[str, ...]
    proof: str


def audited(report: AuditReport) -> list[Audited]:
    found = []
    for name in dict.fromkeys(finding.name for finding in report.mechanisms):
        cases = [finding for finding in report.mechanisms if finding.name == name]
        twins = [twin for twin in report.twins if twin.of == name]
        checks = ", ".join(
            f"{sum(one.by == by for one in cases)} {by}" for by in dict.fromkeys(one.by for one in cases)
        )
        losses = [one.loss / one.claimed for one in cases if one.claimed > 0.0]
        found.append(
            Audited(
                name,
                checks,
                all(one.holds for one in cases),
                max(losses, default=None),
                len(twins),
                sum(twin.caught for twin in twins),
                tuple(twin.fault for twin in twins),
                next((one.guarantee.proof for one in cases if one.guarantee.proof), ""),
            )
        )
    return found
