"""Converts a configuration to plain data: dictionaries, lists, numbers, text."""
import dataclasses
import enum
import functools
import math

from . import recorders
from .stubs import Stub, StubMeta

MADE_BY = "_target_"
DEEPEST = 24
UNREAD = object()
EMPTY = "[]"  # a list that a recipe empties; other empty lists have no value


def name_of(value):
    """Returns the dotted name of a class or function: "module.Class", or for a stub "torch.bfloat16"."""
    return repr(value) if isinstance(value, StubMeta) else f"{value.__module__}.{value.__qualname__}"


class Walk:
    """Converts values to plain data, and collects the keys of fields that have the default of their class."""

    def __init__(self):
        self.defaults = []

    def plain(self, value, key="", above=()):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON lacks infinity and NaN
        if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum):
            return value
        if any(value is one for one in above) or len(above) > DEEPEST:
            return "<itself>"
        above = (*above, value)
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, recorders.Recorder):
            return self.recorded(value, key, above)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.fields(value, key, above)
        if isinstance(value, dict):
            return {str(k): self.plain(v, f"{key}.{k}".lstrip("."), above) for k, v in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.plain(one, f"{key}.{i}", above) for i, one in enumerate(value)]
        if isinstance(value, functools.partial):
            made = self.plain(dict(value.keywords), key, above)
            return {MADE_BY: name_of(value.func), **made} if hasattr(value.func, "__qualname__") else made
        if isinstance(value, Stub):
            return {MADE_BY: repr(type(value))}
        if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
            return name_of(value)
        return repr(value)

    def recorded(self, value, key, above):
        made = {MADE_BY: value.target}
        for name, one in value.fields().items():
            made[name] = self.plain(one, f"{key}.{name}".lstrip("."), above)
            if made[name] == [] and name not in value.unset():
                made[name] = EMPTY
        for name in value.unset():
            made_by = value.__dict__["_made_by"]
            if not dataclasses.is_dataclass(made_by) or is_default(made_by, name, value.fields()[name]):
                self.defaults.append(f"{key}.{name}".lstrip("."))
        return made

    def fields(self, value, key, above):
        made = {MADE_BY: name_of(type(value))}
        hub = getattr(value, "_tpsim_model", None)
        if hub:
            made["hf_model_id"] = hub
        names = [field.name for field in dataclasses.fields(value)]
        more = [name for name in getattr(value, "__dict__", {}) if name not in names and not name.startswith("_")]
        for name in [*names, *more]:
            there = vars(value).get(name, UNREAD) if hub else getattr(value, name, None)
            if there is UNREAD:  # the instance lacks it: read the class, without recording
                there = getattr(type(value), name, None)
            if name.startswith("_") or name in made or callable(there) and name in more:
                continue
            whole = f"{key}.{name}".lstrip(".")
            made[name] = self.plain(there, whole, above)
            if is_default(type(value), name, there):
                self.defaults.append(whole)
            elif made[name] == []:
                made[name] = EMPTY
        return made


def is_default(owner, name, value):
    """Whether the value is the field's default in the first class that declares it, which is the
    framework's own default.
    """
    for base in reversed(owner.__mro__):
        field = base.__dict__.get("__dataclass_fields__", {}).get(name)
        if field is None:
            continue
        if field.default_factory is not dataclasses.MISSING:
            try:
                return bool(field.default_factory() == value)
            except Exception:  # pylint: disable=broad-except
                return False
        return field.default is not dataclasses.MISSING and field.default is value or bool(field.default == value)
    return False
