"""The base class of results: values that are read from --json documents and shown as tables."""

import dataclasses
import functools
import json
import os
import typing
from dataclasses import dataclass, field
from html import escape
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, NoReturn, Sequence, Tuple, Type, TypeVar, Union

from tpsim import _program

if typing.TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        return lambda kind: kind

T = TypeVar("T")
Row = Sequence[str]
_MOST_CHARACTERS = 60  # in a cell of a text table
_CELL = ' style="text-align:left;vertical-align:top"'
if typing.TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]
else:
    PathLike = Union[str, os.PathLike]  # os.PathLike[str] needs Python 3.9


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value:
    """Base class of results. Every subclass is a frozen dataclass.

    The methods below replace those that dataclass() would generate for each class. Generating
    methods for sixty classes would take most of the import time.
    """

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        for one in _fields(type(self)):
            if one.name in values:
                self.__dict__[one.name] = values.pop(one.name)
            elif one.default is not dataclasses.MISSING:
                self.__dict__[one.name] = one.default
            else:
                raise TypeError(f"{type(self).__name__}() needs '{one.name}'")
        if values:
            raise TypeError(f"{type(self).__name__}() has no '{next(iter(values))}'")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field '{name}'")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field '{name}'")

    def __repr__(self) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in _fields(type(self)) if one.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _compared(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in _fields(type(self)) if one.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._compared() == typing.cast(Value, other)._compared()

    def __hash__(self) -> int:
        return hash(self._compared())


def _fields(kind: type) -> Tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(typing.cast(Any, kind))


@functools.lru_cache(maxsize=None)
def _hints(kind: type) -> Dict[str, Any]:
    """Returns the type of each field of a class."""
    return typing.get_type_hints(kind)


def _value(kind: Any, data: Any) -> Any:
    """Converts a JSON value to the type of a field."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if data is None:
        return None
    if origin is Union:
        return _value(next(one for one in inner if one is not type(None)), data)
    if origin is tuple:
        return tuple(_value(inner[0], item) for item in data)
    if origin is dict:
        return {key: _value(inner[1], item) for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return read_value(typing.cast(Type[Any], kind), data)
    return float(data) if kind is float else data


def read_value(kind: Type[T], data: Mapping[str, Any], **own: Any) -> T:
    """Builds a result from its JSON document. Keys without a field are ignored. `own` sets further
    fields.
    """
    hints = _hints(typing.cast(Any, kind))
    values = {
        one.name: _value(hints[one.name], data[one.name.rstrip("_")])  # from_: "from" is a keyword
        for one in _fields(kind)
        if one.init and one.name not in own and one.name.rstrip("_") in data
    }
    return kind(**values, **own)


class Table(NamedTuple):
    """A table. The head is empty if the columns have no titles."""

    title: str
    head: Row
    rows: List[Row]


# Functions that return the tables of a result, by class (_tables.py). Subclasses precede their base classes.
TABLES: Dict[type, Callable[[Any], List[Table]]] = {}


def _tables_of(value: Any) -> List[Table]:
    """Returns the tables of a result. TypeError if its class does not have one."""
    for kind, function in TABLES.items():
        if isinstance(value, kind):
            return function(value)
    raise TypeError(f"{type(value).__name__} has no table")


def _html_of(value: Any) -> str:
    """Returns the tables of a result as HTML."""

    def line(cells: Row, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{_CELL}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    html = ""
    for title, head, rows in _tables_of(value):
        top = f"<thead>{line(head, 'th')}</thead>" if head else ""
        body = "".join(line(row, "td") for row in rows)
        html += f"<div>{escape(title)}</div><table>{top}<tbody>{body}</tbody></table>"
    return html


def _plain(cell: str) -> str:
    cell = "".join(one if one.isprintable() else "?" for one in cell)
    return cell if len(cell) <= _MOST_CHARACTERS else cell[:_MOST_CHARACTERS - 3] + "..."


def _text_of(value: Any) -> str:
    """Returns the tables of a result as text, for print()."""
    blocks = []
    for title, head, rows in _tables_of(value):
        cells = [[_plain(cell) for cell in row] for row in ([head] if head else []) + rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        blocks.append("\n".join(["".join(one if one.isprintable() else "?" for one in title),
                                 *("  " + line for line in lines)]))
    return "\n\n".join(blocks)


class Shown(Value):
    """Base class of results that print() and notebooks show as tables."""

    def __str__(self) -> str:
        return _text_of(self)

    def _repr_html_(self) -> str:
        return _html_of(self)


class AnyLayout(Shown):
    """Base class of Plan."""

    tp: int
    pp: int
    dp: int
    cp: int
    file: str = field(default="", repr=False, compare=False)  # text of the plan file

    @property
    def gpus(self) -> int:
        """Returns the number of GPUs."""
        return self.tp * self.pp * self.dp * self.cp

    def text(self) -> str:
        """Returns the text of the plan file. Raises ValueError for a plan in a campaign's report,
        which does not contain its model.
        """
        if not self.file:
            raise ValueError("a plan in a campaign's report does not contain its model: call "
                             "tpsim.simulate() with the model and the settings of the plan")
        return self.file

    def save(self, path: PathLike) -> None:
        """Writes the plan file that every command of tpsim reads."""
        text = self.text()
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)


class Report(Shown):
    """Base class of reports. to_dict() returns the command's --json document."""

    document: str = field(repr=False, compare=False)

    def to_dict(self) -> Dict[str, Any]:
        """Returns the whole --json document as a dictionary."""
        document: Dict[str, Any] = json.loads(self.document)
        return document

    def brief(self) -> Dict[str, Any]:
        """Returns the numbers that decide: at most 1,000 bytes of JSON (docs/json.md)."""
        brief: Dict[str, Any] = _program.call("brief", report=self.to_dict()).document
        return brief


# Types of keyword arguments.
Ints = Union[int, str, Iterable[int], None]
Texts = Union[str, Iterable[str], None]
Bools = Union[bool, str, Iterable[bool], None]
Number = Union[int, float, str, None]
AnyPlan = Union[AnyLayout, PathLike]
