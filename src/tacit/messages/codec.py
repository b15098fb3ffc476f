"""The codec of messages in JSON. A message declares each field once; the codec derives its reader, writer and schema.

    @dataclass(frozen=True, slots=True)
    class Candidate(Message):
        form: ClassVar[Form] = Form("a candidate", order=("item", "bid_micros", "public_score"))

        item: ItemName
        public_score: Annotated[float, Meta(ge=-MOST_SCORE, le=MOST_SCORE)]
        bid_micros: Annotated[Micros, Named("bid")] = 1_000_000

        def _check(self) -> None: ...          # only checks beyond types and bounds

msgspec checks types and bounds, strictly: 1.0 and true are not whole numbers, and every member must be there and no other. An
error names a path and a type and never shows a value. Messages are dataclasses and not msgspec Structs, because a Struct checks
nothing when you construct it, makes every field with a default optional, and writes its keys in the order of its arguments.
"""

import dataclasses
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from tacit.errors import InvalidGuarantee, InvalidMessage
from tacit.guarantees import Guarantee, Release
from tacit.messages.values import TEXT, members

P = ParamSpec("P")
T = TypeVar("T")
Schema: TypeAlias = dict[str, Any]
_LARGEST = sys.float_info.max

Real: TypeAlias = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]  # finite: the bounds refuse NaN and infinity
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=_LARGEST)]


def characters(least: int = 0, most: int = 200) -> Meta:
    """The bounds of a text of ``least`` to ``most`` characters in UTF-8: ``Annotated[str, characters(1, 100)]``."""
    return Meta(min_length=least or None, max_length=most, pattern=TEXT)


def digits(least: int, most: int | None = None) -> Meta:
    """The bounds of a text of ``least``, or of ``least`` to ``most``, lower-case hexadecimal digits: two for each byte."""
    if most is None:
        return Meta(pattern=f"^[0-9a-f]{{{least}}}\\Z")
    return Meta(pattern=f"^(?:[0-9a-f]{{2}}){{{least // 2},{most // 2}}}\\Z")


@dataclass(frozen=True, slots=True)
class Named:
    """In an ``Annotated`` type: the field has another name in JSON."""

    key: str


@dataclass(frozen=True, slots=True)
class Wire:
    """In an ``Annotated`` type: the field is sent as ``sent``, which ``read`` turns into the attribute and ``write`` back."""

    sent: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    schema: Schema | None = None  # if it differs from the schema of the type


class Form:
    """The title of a message in errors, its constant members (such as ``version``), and the order of its keys."""

    def __init__(self, title: str, *, order: tuple[str, ...] = (), **constants: int | str) -> None:
        self.title, self.order, self.constants = title, order, constants


class Message:
    """The base of messages in JSON. A subclass is a frozen dataclass with a ``form``."""

    __slots__ = ()
    form: ClassVar[Form]

    def __post_init__(self) -> None:
        for field in _plan(type(self)).fields:
            object.__setattr__(self, field.name, field.check(getattr(self, field.name), f"$.{field.key}"))
        self._check()

    def _check(self) -> None:
        """Raises InvalidMessage for faults beyond types and bounds, such as two fields that contradict each other."""

    def to_json(self) -> dict[str, Any]:
        """The message as values for JSON."""
        written: dict[str, Any] = dict(self.form.constants)
        for field in _plan(type(self)).fields:
            value = getattr(self, field.name)
            written[field.key] = value if field.write is None else field.write(value)
        return written

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The message of such values, checked; InvalidMessage for anything else."""
        message: Self = _build(cls, read(value, _plan(cls).struct, cls.form.title))
        return message

    @classmethod
    def schema(cls) -> Schema:
        """The message as JSON Schema, for an OpenAPI document. Messages inside it are references by their class name."""
        members: Schema = {key: schema_of(Literal[value]) for key, value in cls.form.constants.items()}
        members |= {field.key: field.schema for field in _plan(cls).fields}
        return closed(**members)


class ReleaseOnly(type):
    """The metaclass of messages that carry a release of a mechanism.

    You cannot construct such a message, or change one with ``dataclasses.replace``: it comes from a release, or from the bytes or
    the JSON of one. Nobody can then write a value of their own beside a guarantee, nor in a subclass.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        if not cls.__module__.startswith("tacit.messages."):
            raise TypeError(f"{bases[0].__name__} carries a release and cannot be subclassed.")

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        raise TypeError(
            f"{cls.__name__} cannot be constructed directly: its class methods make one from a release, bytes or JSON."
        )


class ArrayMessage(Message, metaclass=ReleaseOnly):
    """A message of a release that holds arrays: two are equal if their JSON is. Its dataclass has ``eq=False``."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]


def value_of(release: Release[T]) -> T:
    """The value of a release, for ``from_release``. Raises TypeError for any other object: it could claim any guarantee."""
    if type(release) is not Release:
        raise TypeError(f"expected a Release of a mechanism, not {type(release).__name__}.")
    return release.value


def checked_message(value: T, *classes: type) -> T:
    """``value``, if it is a message of these classes. Raises TypeError for any other object: it could claim any guarantee."""
    if type(value) not in classes:
        raise TypeError(f"expected {' or '.join(cls.__name__ for cls in classes)}, not {type(value).__name__}.")
    return value


def make(cls: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Constructs a message whose class is `ReleaseOnly`. Only modules of ``tacit.messages`` call it, and a test checks that."""
    message: T = type.__call__(cls, *arguments, **named)  # type: ignore[arg-type]
    return message


def read(value: object, kind: Any, title: str, path: str = "$") -> Any:
    """``value`` as the type ``kind``, strictly; InvalidMessage for anything else. The error shows no value."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        reason, _, inner = str(problem).partition(" - at `$")
    except UnicodeEncodeError:  # half of a surrogate pair
        reason, inner = "expected texts that can be written as UTF-8", ""
    if reason.startswith("Invalid enum value"):  # goes on with the value
        reason = "expected one of the values that this version knows"
    elif reason.startswith("Object contains unknown field"):  # goes on with the name that was sent
        reason = "expected no further members"
    elif "matching regex" in reason:
        reason = "expected a text of another form"
    else:
        reason = reason[0].lower() + reason[1:].removesuffix(", got `null`")  # null is a value as well as a type
    raise InvalidMessage(f"in {title}, {reason} at {path}{inner.removesuffix('`')}.")


def schema_of(kind: Any) -> Schema:
    """The JSON Schema of a type that msgspec knows, without the bounds that only mean "finite" or "UTF-8".

    Guarantees and messages are references, Structs are written out. A Struct allows further members unless it forbids them.
    """
    if isinstance(kind, type) and issubclass(kind, Guarantee | Message):
        return reference(kind.__name__)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [choice.value for choice in kind]}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _schema_of_struct(kind)
    if get_origin(kind) is Literal:
        first, *more = get_args(kind)
        constant = {"type": "integer" if isinstance(first, int) else "string"}
        return constant | ({"enum": [first, *more]} if more else {"const": first})
    if get_origin(kind) is list:
        return {"type": "array", "items": schema_of(*get_args(kind))}
    if get_origin(kind) in (Union, types.UnionType):
        return {"anyOf": [schema_of(part) for part in get_args(kind)]}
    return dict(_without_trivial_limits(msgspec.json.schema(kind)))


def _schema_of_struct(kind: type[msgspec.Struct]) -> Schema:
    members = msgspec.structs.fields(kind)
    schema = closed(**{member.encode_name: schema_of(member.type) for member in members})
    schema["required"] = [member.encode_name for member in members if member.required]
    if not schema["required"]:
        del schema["required"]
    if not kind.__struct_config__.forbid_unknown_fields:
        del schema["additionalProperties"]
    return schema if kind.__doc__ is None else {"description": kind.__doc__.replace("``", "`"), **schema}


def reference(name: str) -> Schema:
    """Refers to a schema of the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{name}"}


def closed(**members: Schema) -> Schema:
    """An object with all of these members and no others."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def or_null(schema: Schema) -> Schema:
    """This, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


# Guarantees inside messages

_GUARANTEE = ("epsilon", "delta", "metric", "protects", "assumes", "proof", "loss")


def read_guarantee(value: Any) -> Guarantee:
    """The guarantee that ``Guarantee.to_json`` wrote, with every member and no other."""
    written = members(value, "a guarantee", _GUARANTEE)
    if not isinstance(written["assumes"], list):
        raise InvalidMessage("expected a list of texts at $.guarantee.assumes.")
    try:
        guarantee = Guarantee.from_json(written)
    except InvalidGuarantee:
        raise InvalidMessage("expected a guarantee as tacit writes it at $.guarantee.") from None
    if guarantee.to_json() != written:  # further members, numbers of another type, assumptions out of order
        raise InvalidMessage("expected a guarantee as tacit writes it at $.guarantee.")
    return guarantee


Promise: TypeAlias = Annotated[Guarantee, Wire(Any, read_guarantee, Guarantee.to_json, reference("Guarantee"))]


# The plan of a message: its fields with their readers and writers


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str  # its name in JSON
    check: Callable[[Any, str], Any]  # of the attribute and its path; returns the attribute
    sent: Any  # the type in JSON
    read: Callable[[Any], Any] | None  # from JSON to the attribute; None where both are the same
    write: Callable[[Any], Any] | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class _Plan:
    fields: tuple[_Field, ...]
    struct: Any


def _make_plan(cls: type[Message]) -> _Plan:
    hints = get_type_hints(cls, include_extras=True)
    names = cls.form.order or tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]
    fields = tuple(_plan_field(name, hints[name], cls.form.title) for name in names)
    members = [(key, Literal[value]) for key, value in cls.form.constants.items()]
    members += [(field.name, field.sent) for field in fields]
    renamed = {field.name: field.key for field in fields if field.key != field.name}
    return _Plan(fields, msgspec.defstruct(cls.__name__, members, rename=renamed or None, forbid_unknown_fields=True))


_plan: Callable[[Any], _Plan] = cache(_make_plan)


def _plan_field(name: str, annotation: Any, title: str) -> _Field:
    kind, extras = _split_annotation(annotation)
    key = next((extra.key for extra in extras if isinstance(extra, Named)), name)
    wire = next((extra for extra in extras if isinstance(extra, Wire)), None)
    if wire is not None:
        check = partial(_check_instance, get_origin(kind) or kind, title)
        schema = schema_of(wire.sent) if wire.schema is None else wire.schema
        return _Field(name, key, check, wire.sent, wire.read, wire.write, schema)
    optional = get_origin(kind) in (Union, types.UnionType)
    value_kind = next(part for part in get_args(kind) if part is not types.NoneType) if optional else kind
    bare_kind, limits = _split_annotation(value_kind)
    is_tuple = get_origin(bare_kind) is tuple
    element = get_args(bare_kind)[0] if is_tuple else bare_kind
    if isinstance(element, type) and issubclass(element, Message):
        field = (
            _plan_messages(name, key, element, limits or extras, title)
            if is_tuple
            else _plan_message(name, key, element, title)
        )
        return _or_null(field) if optional else field
    plain = _with_limits(kind, extras)
    writes = _write_plain if is_tuple or (isinstance(element, type) and issubclass(element, Enum)) else None
    return _Field(name, key, partial(_check_plain, plain, title), plain, None, writes, schema_of(plain))


def _plan_message(name: str, key: str, kind: type[Message], title: str) -> _Field:
    check, build = partial(_check_instance, kind, title), partial(_build, kind)
    return _Field(name, key, check, _plan(kind).struct, build, kind.to_json, reference(kind.__name__))


def _plan_messages(name: str, key: str, kind: type[Message], limits: tuple[Any, ...], title: str) -> _Field:
    check, read_all = partial(_check_instances, kind, title), partial(_map_into, tuple, partial(_build, kind))
    sent = _with_limits(tuple[_plan(kind).struct, ...], limits)  # type: ignore[misc]
    schema = schema_of(_with_limits(tuple[int, ...], limits)) | {"items": reference(kind.__name__)}
    return _Field(name, key, check, sent, read_all, partial(_map_into, list, kind.to_json), schema)


def _or_null(field: _Field) -> _Field:
    functions: tuple[Any, ...] = field.check, field.read, field.write
    check, read_part, write = (partial(_pass_none, function) for function in functions)
    return replace(
        field, check=check, sent=field.sent | None, read=read_part, write=write, schema=or_null(field.schema)
    )


def _split_annotation(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    kind, *extras = get_args(annotation)
    return kind, tuple(extras)


def _with_limits(kind: Any, extras: tuple[Any, ...]) -> Any:
    limits = tuple(extra for extra in extras if isinstance(extra, Meta))
    return Annotated[(kind, *limits)] if limits else kind


def _build(cls: type[Any], sent: Any) -> Any:
    """The message of a struct that msgspec has checked: its fields are not checked again."""
    message = object.__new__(cls)
    for field in _plan(cls).fields:
        value = getattr(sent, field.name)
        object.__setattr__(message, field.name, value if field.read is None else field.read(value))
    message._check()
    return message


def _check_plain(kind: Any, title: str, value: Any, path: str) -> Any:
    return read(value, kind, title, path)


def _check_instance(kind: type, title: str, value: Any, path: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidMessage(f"in {title}, expected `{kind.__name__}` at {path}.")
    return value


def _check_instances(kind: type, title: str, value: Any, path: str) -> Any:
    if not isinstance(value, (tuple, list)) or not all(isinstance(message, kind) for message in value):
        raise InvalidMessage(f"in {title}, expected a tuple of `{kind.__name__}` at {path}.")
    return tuple(value)


def _map_into(collection: Callable[[Any], Any], function: Callable[[Any], Any], values: Any) -> Any:
    return collection(map(function, values))


def _pass_none(function: Callable[..., Any], value: Any, *path: str) -> Any:
    return None if value is None else function(value, *path)


def _write_plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value.value if isinstance(value, Enum) else value


def _without_trivial_limits(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_trivial_limits(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_trivial_limits(part) for name, part in schema.items()}
    for name, limit in (("minimum", -_LARGEST), ("maximum", _LARGEST), ("pattern", TEXT)):
        if kept.get(name) == limit:
            del kept[name]
    if "pattern" in kept:
        kept["pattern"] = kept["pattern"].replace(r"\Z", "$")  # in JSON Schema `$` matches only at the end of the text
    return kept
