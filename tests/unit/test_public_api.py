"""What tacit offers, name by name: a name that comes or goes is a decision, and is written down here.

Also: every name says what it promises, every number has a unit, and nothing is loaded before it is used.
"""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import tacit

ROOT = Path(__file__).parents[2]
NAMES = {
    "tacit": """
        AsyncClient Budget Client Curator Device Entity Store __version__ audit curator data device engines
        entity errors evaluation fit guarantees ledger mechanisms messages models server service shuffler
        systems
    """,
    "tacit.audit": """
        AuditReport By Finding LowerBound Measure TwinFinding exactly from_below lower_bound_by_label
        lower_bound_by_threshold sampled
    """,
    "tacit.curator": """
        BothDomains ClickCounts ClickSum Curator NXMap Plan PrivateLookAlikes PrivateTraining PublishedXMap
        Route factorise fit genre_centre plan
    """,
    "tacit.data": """
        COUNTS GENRES HALF_STARS MISSING_TIME STARS Catalogue DataSet DataSetInfo Description Duplicates Entities
        Impressions ItemId Outside Provenance Ratings Scale Split TwoDomains UserId available by_time crossfold
        from_arrays hold_out_users holdout leave_out_per_user load load_ratings mix read read_amazon read_eicu
        read_movielens read_movielens_small read_open_bandit read_pair read_table synthetic synthetic_counts
        write
    """,
    "tacit.device": """
        AsyncClient Choice Client Device Limits Neighbourhood OneRating Overall PrivateScorer Profile Readings
        blind eta_for select slot_of
    """,
    "tacit.engines": """
        CoordinatorFolder Mailbox SettingsFile entity_settings flower new_key open_entity read_catalogue read_key
        read_manifest read_public read_rows spark tuning_of
    """,
    "tacit.entity": """
        Entity Policy Tuning
    """,
    "tacit.errors": """
        BudgetExhausted Conflict DuplicateRatings GuaranteeRefused InconsistentShares InvalidData
        InvalidFeatures InvalidGuarantee InvalidInput InvalidMessage InvalidModel InvalidParameter LedgerBehind
        LedgerDamaged LedgerError LedgerExists LedgerMissing LedgerTooNew LedgerUnavailable MissingColumn
        MissingExtra MixedUnits NoLookAlikes RatingOutsideScale ServerRefused ServerUnavailable ServiceFailed
        SystemNoiseUnavailable TacitError TooFewEntities UnknownName UnknownSubject
    """,
    "tacit.evaluation": """
        SYSTEMS Advice Claim Curve Demonstration Effort Report Result Row Situation advise curves
        demonstrations evaluate measured write_html
    """,
    "tacit.guarantees": """
        ALL_CONDITIONS ONE_IMPRESSION ONE_PROFILE ONE_USER ONE_USER_REPLACED Guarantee Loss LossKind Neighbours
        Relation Release ShuffleCondition Unit across_batches amplify anywhere approximate compose
        delta_of_gaussian epsilon_each epsilon_of_gaussian epsilon_of_rho group metric mu_for nothing parallel
        pure repeat replace_from_add_remove rho_for rho_of shuffle shuffle_delta tight times_within
        to_approximate within
    """,
    "tacit.ledger": """
        SECOND Accounting Budget Charge Clock Consent Cost Counted Display DisplayLedger DisplayState
        Engagements Head ImpressionLedger ImpressionStatement ItemTotal MailLedger Offered Period PrivacyLedger
        Receipt Report Settlement Statement Stored Target Terms Window check export month now open_store price
        recompute
    """,
    "tacit.mechanisms": """
        SYSTEM_NOISE BoundedCounts ClippedScores Envelope ExponentialMechanism FeatureBox FeatureSlate
        GaussianKernel GaussianSum GramShare GridMatrix GridPrototypes GridShares GridVector GumbelTopK
        LaplaceNoisyMax LaplaceSum LocalSwaps NaturalSlate NaturalSubset Noise NoisyMoments NoisyOffsets
        NoisyPairs NoisyTransfer OffsetSums PairMoments Peeling PermuteAndFlip PopularityShare PrivatePartition
        PrivateReplacement ProfileBounds ProfileScores Prototypes RandomisedResponse RatingBounds RatingMoments
        ReplayedNoise RowsOnDemand SampledGaussian ScaledScores ScoreSource
        SparseRecovery SparseVector SystemNoise TemperedSlate TopResponse TotalsOnDemand TransferMoments
        TreePrototypes VectorLaplace VoteTotals moment_rhos
    """,
    "tacit.messages": """
        LookAlikes Store cross_domain federated_prototypes multi_selection private_selection private_slates
    """,
    "tacit.messages.cross_domain": """
        Item Replacements TransferModel
    """,
    "tacit.messages.federated_prototypes": """
        Aggregation Code Frame Manifest Mechanism Member Refused Regulariser Reply Role SharedModel Step
        catalogue_hash open_frame public_of role_for sign
    """,
    "tacit.messages.multi_selection": """
        LEAST_ETA MOST_DIMENSION MOST_ETA MOST_K MOST_STEPS Eta GridSteps LocalModel ModelKind Reply Request
        Signal exact_eta
    """,
    "tacit.messages.private_selection": """
        MOST_CANDIDATES MOST_EPSILON Batch BatchTerms Bounding Candidate Engagement Impression Offer
        OfferRequest Policy Rule ShuffledReport
    """,
    "tacit.messages.private_slates": """
        Grid Item Popularity Similarity Slate
    """,
    "tacit.models": """
        Classes FactorScorer FeatureSpace FoldedTaste GenreProfile ItemRidge Items LinearMap OnnxScorer
        PrincipalComponents RatingNetwork Scorer SharedMoments Tables TwoTower build_tables cross_domain dpp
        gram_from secure_sum
    """,
    "tacit.models.cross_domain": """
        HonestXMap ItemBased Transfer TransferSettings XSim
    """,
    "tacit.models.dpp": """
        DenseSampler SplitSampler TemperedSampler UnconstrainedSampler greedy_map
    """,
    "tacit.models.secure_sum": """
        COMMITMENT_BYTES SHARE_BYTES SumPlan SumSession least_fewest
    """,
    "tacit.server": """
        Algorithm AnswerSettings BlindTokens ClickEstimate Estimate Exploration ExploredOffer Federation Listings LocalModel
        MultiSelection OnDisk PlainTokens Population PriceRule PrivateSelection PrivateSlates Ranking
        SettledBatch ShuffledSelection Spread Verdict View click_estimate estimate listings_of ranked
    """,
    "tacit.service": """
        Settings Version curator_app publish read_settings run server_app
    """,
    "tacit.shuffler": """
        Shuffler
    """,
    "tacit.systems": """
        cross_domain federated_prototypes multi_selection private_selection private_slates transcript
    """,
}
ROOMS = [name for name in NAMES["tacit"].split() if name.islower() and name not in ("__version__", "fit")]
NATS, CHANCE, L1, SECONDS, MICROS = "nats", "probability", "L1|distance", "seconds", "micro"
UNITS = {  # what the documentation of a number of that name has to say, at the function or at its class
    **dict.fromkeys(["epsilon", "epsilon0", "click_epsilon", "most_epsilon", "lifetime"], NATS),
    **dict.fromkeys(["delta", "mistrust"], f"{CHANCE}|chance|confidence"),
    **dict.fromkeys(["eta", "radius", "diameter"], L1),
    **dict.fromkeys(["k", "t"], "items|candidates|values"),
    **dict.fromkeys(
        ["share", "honest_share", "overlap", "explore", "gamma", "coverage", "rate"],
        "share|times|of the users|a second",
    ),
    **dict.fromkeys(["timeout", "lasts", "expires", "retry_after", "click_window", "seconds", "at"], f"{SECONDS}|time"),
    **dict.fromkeys(["prices", "micros", "reserve_micros", "bid_micros", "bids_micros"], f"{MICROS}|millionth"),
    **dict.fromkeys(["low", "high", "like", "liked_from"], "rating|star|score"),
    **dict.fromkeys(["steps", "step"], "step|grid"),
    **dict.fromkeys(["most_likes", "likes_each"], "likes"),
    "clip": "star|rating|norm",
    "dimension": "features|numbers|coordinates",
    "mu": "Gaussian",
    "n": "reports|ratings|users",
    "ppm": "million",
    "rank": "factors|rank|directions",
    "rho": "zCDP",
}


def names_of(module: str) -> list[str]:
    return NAMES[module].split()


def public() -> Iterator[tuple[str, Any, type | None]]:
    """Everything that can be called or read by a public name, each once: its name, itself, and its class if it has one."""
    seen: set[int] = set()
    for module, names in NAMES.items():
        for name in names.split():
            found = getattr(import_module(module), name)
            if id(found) in seen or not isinstance(found, type | FunctionType):
                continue
            seen.add(id(found))
            yield f"{found.__module__}.{name}", found, found if isinstance(found, type) else None
            for base in inspect.getmro(found) if isinstance(found, type) else ():
                for part, value in vars(base).items() if base.__module__.startswith("tacit.") else ():
                    inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                    kind = isinstance(inner, FunctionType | property) or type(inner).__name__ == "cached_property"
                    if kind and not part.startswith("_") and id(inner) not in seen:
                        seen.add(id(inner))
                        yield f"{base.__module__}.{base.__name__}.{part}", inner, base


def documentation(thing: Any, owner: type | None, parameter: str) -> str:
    """The docstrings of a function and its class, and what stands beside a field of that name."""
    told = [inspect.getdoc(thing) or "", (owner and inspect.getdoc(owner)) or ""]
    if thing is owner and owner is not None:
        for base in inspect.getmro(owner):
            if base.__module__.startswith("tacit."):
                told += re.findall(rf"^    {parameter}: .*#(.*)$", inspect.getsource(base), flags=re.M)
    return "\n".join(told)


def parameters(thing: Any) -> dict[str, str]:
    """Names and annotations of what a function or a class takes, if they are numbers."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # a property
        return {}
    kinds = re.compile(r"\b(int|float|Fraction|Decimal)\b")
    return {one.name: str(one.annotation) for one in found if kinds.search(str(one.annotation))}


@pytest.mark.parametrize("module", NAMES)
def test_a_room_offers_these_names_and_no_others(module: str) -> None:
    room = import_module(module)
    assert room.__all__ == names_of(module)
    assert room.__all__ == sorted(room.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in room.__all__:
        assert getattr(room, name) is not None


def test_the_rooms_of_tacit_all_have_a_list() -> None:
    assert [room for room in ROOMS if f"tacit.{room}" not in NAMES] == []
    assert {f"tacit.{room}" for room in ROOMS} <= {getattr(tacit, room).__name__ for room in ROOMS}


@pytest.mark.parametrize("module", [one for one in NAMES if hasattr(import_module(one), "__path__")])
def test_nothing_else_lies_about_in_a_room(module: str) -> None:
    """Beside the names there are its own modules, and nothing that was imported from elsewhere."""
    room = import_module(module)
    others = {name for name in dir(room) if not name.startswith("__")} - set(room.__all__)
    assert [name for name in others if not _is_own_module(module, name)] == []


def _is_own_module(room: str, name: str) -> bool:
    found = getattr(import_module(room), name)
    return isinstance(found, ModuleType) and found.__name__ == f"{room}.{name}"


def test_every_room_can_be_imported_whole() -> None:
    program = (
        "\n".join(f"from {module} import *" for module in NAMES)
        + "\nprint(Curator.__name__, federated_prototypes.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "Curator tacit.systems.federated_prototypes\n"


def test_importing_tacit_loads_no_room_and_no_other_package() -> None:
    program = "import sys; before = set(sys.modules); import tacit; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, env=_path()
    )
    loaded = ast.literal_eval(done.stdout)
    assert {name for name in loaded if name.startswith("tacit")} == {"tacit", "tacit.loading"}
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "scipy", "polars", "typer", "cryptography"}


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT / "src")}


def test_a_name_that_is_not_there_is_an_error() -> None:
    for room in (tacit, tacit.data, tacit.messages, tacit.models, tacit.systems, tacit.ledger):
        with pytest.raises(AttributeError, match=f"module '{room.__name__}' has no attribute 'nonsense'"):
            room.nonsense  # type: ignore[attr-defined]  # noqa: B018


def imported_in(page: Path) -> Iterator[tuple[str, str]]:
    """What the examples of a page import or reach by dots: the module and the name."""
    for block in re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(), flags=re.M | re.S):
        code = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.*)$", block, flags=re.M)) if ">>>" in block else block
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit"):
                yield from ((str(node.module), one.name) for one in node.names)
            elif isinstance(node, ast.Attribute) and (
                found := re.fullmatch(r"(tacit(?:\.[a-z_]+)?)\.(\w+)", ast.unparse(node))
            ):
                yield found[1], found[2]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem
)
def test_what_the_pages_use_is_offered(page: Path) -> None:
    """By its room, or by one of the modules that the room names; the proofs may cite what is inside."""
    for module, name in imported_in(page):
        room = ".".join(module.split(".")[:2])
        thing = getattr(import_module(module), name)
        offering = [one for one in NAMES if one == room or one.startswith(f"{room}.")]
        offered = [getattr(import_module(one), each) for one in offering for each in names_of(one)]
        assert any(thing is one or module == getattr(one, "__name__", "") for one in offered), f"{module}.{name}"


def first_line(thing: Any) -> str:
    """Of its own docstring; what a dataclass writes by itself is none."""
    told = vars(thing).get("__doc__") if isinstance(thing, type) else inspect.getdoc(thing)
    first = (told or "").split("\n")[0]
    return "" if first.startswith(f"{getattr(thing, '__name__', None)}(") else first


def test_every_public_name_says_what_it_promises() -> None:
    found = list(public())
    assert len(found) > 1100
    assert [name for name, thing, _ in found if len(first_line(thing).split()) < 3] == []


def test_that_check_finds_what_says_nothing() -> None:
    @dataclass
    class Bare:
        value: int

    assert first_line(Bare) == ""
    assert first_line(first_line) == "Of its own docstring; what a dataclass writes by itself is none."


def test_every_number_has_a_unit() -> None:
    lacking = [
        f"{name}({parameter}): say {UNITS[parameter]}"
        for name, thing, owner in public()
        for parameter in parameters(thing)
        if parameter in UNITS and not re.search(UNITS[parameter], documentation(thing, owner, parameter), flags=re.I)
    ]
    assert lacking == []


def test_that_check_finds_a_number_without_a_unit() -> None:
    def wait(timeout: float) -> None:
        """Waits for so long."""

    assert list(parameters(wait)) == ["timeout"]
    assert not re.search(UNITS["timeout"], documentation(wait, None, "timeout"))
