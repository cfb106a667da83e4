"""Replaces pydantic: models that check and convert their fields by annotation, as far as configurations of frameworks use it."""
import contextlib
import copy
import enum
import inspect
import types
import typing

from .stubs import StubMeta

MISSING = object()
MODEL_CHECK, FIELD_CHECK = "_tpsim_model_check", "_tpsim_field_check"  # attributes of marked functions
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
LIMITS = {"ge": ("at least", lambda value, limit: value >= limit), "gt": ("greater than", lambda value, limit: value > limit),
          "le": ("at most", lambda value, limit: value <= limit), "lt": ("less than", lambda value, limit: value < limit)}


def is_union(hint):
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


class ValidationError(ValueError):
    """A field does not have a valid value."""


class FieldInfo:
    """Default, alias and limits of a field."""

    def __init__(self, default=MISSING, *, default_factory=None, alias=None, json_schema_extra=None, **limits):
        self.default = MISSING if default is ... else default
        self.default_factory = default_factory
        self.alias = alias
        self.json_schema_extra = json_schema_extra
        self.limits = {name: limit for name, limit in limits.items() if name in LIMITS}

    def is_required(self):
        return self.default is MISSING and self.default_factory is None

    def get_default(self, **_words):
        return self.default_factory() if self.default_factory else copy.deepcopy(self.default)


def marked(name):
    """Returns a decorator that marks a function with its mode and fields, as a class method unless it takes a model."""
    def decorator(*fields, mode="after", **_words):
        def mark(function):
            plain = getattr(function, "__func__", function)
            setattr(plain, name, (mode, fields))
            return plain if name == MODEL_CHECK and mode == "after" else classmethod(plain)
        return mark
    return decorator


class ModelMeta(type):
    """Collects the fields and validators of a model class and its bases."""

    def __init__(cls, name, bases, space, **_words):
        super().__init__(name, bases, space)
        cls.model_fields, cls.settings = {}, {}
        for base in reversed(cls.__mro__):
            cls.settings.update(base.__dict__.get("model_config") or {})
            for field, hint in base.__dict__.get("__annotations__", {}).items():
                if field.startswith("_") or field == "model_config" or "ClassVar" in str(hint):
                    continue
                default = base.__dict__.get(field, MISSING)
                cls.model_fields[field] = default if isinstance(default, FieldInfo) else FieldInfo(default)

    def __new__(mcs, name, bases, space, **_words):
        return super().__new__(mcs, name, bases, space)

    def validators(cls, name, mode):
        found = {}
        for base in reversed(cls.__mro__):
            for key, one in base.__dict__.items():
                marks = getattr(getattr(one, "__func__", one), name, None)
                if marks is not None and marks[0] == mode:
                    found[key] = marks
        return [(getattr(cls, key), marks) for key, marks in found.items()]


class BaseModel(metaclass=ModelMeta):
    """A model: its fields are checked when it is created, and when they are assigned."""

    def __init__(self, **data):
        made_by = type(self)
        for check, _ in made_by.validators(MODEL_CHECK, "before"):
            data = check(data)
        names = {field.alias or name: name for name, field in made_by.model_fields.items()}
        names.update({name: name for name in made_by.model_fields})
        given = {}
        for key, value in data.items():
            if key in names:
                given[names[key]] = value
            elif made_by.settings.get("extra") == "forbid":
                raise ValidationError(f"{made_by.__name__} has no field '{key}'")
        object.__setattr__(self, "model_fields_set", set(given))
        hints = typing.get_type_hints(made_by, include_extras=True)
        for name, field in made_by.model_fields.items():
            if name not in given and field.is_required():
                raise ValidationError(f"{made_by.__name__}: the field '{name}' is required")
            value = given[name] if name in given else field.get_default()
            if name in given or made_by.settings.get("validate_default"):
                value = checked(made_by, name, hints[name], value)
            object.__setattr__(self, name, value)
        for check, _ in made_by.validators(MODEL_CHECK, "after"):
            check(self)

    def __setattr__(self, name, value):
        made_by = type(self)
        if name in made_by.model_fields:
            self.model_fields_set.add(name)
            if made_by.settings.get("validate_assignment"):
                value = checked(made_by, name, typing.get_type_hints(made_by, include_extras=True)[name], value)
        object.__setattr__(self, name, value)

    def model_dump(self, **_words):
        return {name: getattr(self, name) for name in type(self).model_fields}

    dict = model_dump


def checked(made_by, name, hint, value):
    """Returns the converted value of a field. Raises ValidationError if the value is not valid."""
    value = own_checks(made_by, name, value, "before")
    place = f"{made_by.__name__}.{name}"
    value = converted(hint, value, place, made_by.settings.get("use_enum_values"))
    check_limits(made_by.model_fields[name].limits, value, place)
    return own_checks(made_by, name, value, "after")


def own_checks(made_by, name, value, mode):
    for check, (_, fields) in made_by.validators(FIELD_CHECK, mode):
        if name in fields:
            has_info = len(inspect.signature(check).parameters) > 1
            value = check(value, types.SimpleNamespace(field_name=name)) if has_info else check(value)
    return value


def check_limits(limits, value, place):
    for name, limit in limits.items():
        words, holds = LIMITS[name]
        if value is not None and not holds(value, limit):
            raise ValidationError(f"{place} is {value!r}; it must be {words} {limit}")


def converted(hint, value, place, as_values=False):
    """Returns the value in the annotated type, converted as pydantic does."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any or isinstance(hint, (StubMeta, typing.TypeVar)):
        return value
    if origin is typing.Annotated:
        value = converted(parts[0], value, place, as_values)
        for one in parts[1:]:
            check_limits(getattr(one, "limits", {}), value, place)
        return value
    if is_union(hint):
        real = [one for one in parts if one is not type(None)]
        if len(real) == 1:  # an optional value
            return None if value is None else converted(real[0], value, place, as_values)
        exact = [one for one in parts if isinstance(one, type) and type(value) is one]  # pylint: disable=unidiomatic-typecheck
        for one in [*exact, *parts]:
            with contextlib.suppress(ValidationError, TypeError):
                return converted(one, value, place, as_values)
        raise ValidationError(f"{place} is {value!r}; it must be one of {', '.join(map(word_of, parts))}")
    if origin is typing.Literal:
        if value in parts:
            return value
        raise ValidationError(f"{place} is {value!r}; it must be one of {', '.join(map(repr, parts))}")
    if origin in (list, set, tuple) and isinstance(value, (list, set, tuple)):
        return origin(converted(parts[0] if parts else typing.Any, one, place, as_values) for one in value)
    if origin is dict and isinstance(value, dict):
        return {converted(parts[0], key, place): converted(parts[1], one, place, as_values) for key, one in value.items()}
    kind = origin or hint
    if isinstance(kind, ModelMeta) and isinstance(value, dict):
        return kind(**value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        with contextlib.suppress(ValueError):
            found = kind(value)
            return found.value if as_values else found
    elif kind is bool:
        if isinstance(value, (bool, int, str)) and str(value).lower() in TRUTHS:
            return TRUTHS[str(value).lower()]
    elif kind in (int, float):
        with contextlib.suppress(ValueError, TypeError):
            number = float(value) if not isinstance(value, int) else value
            if kind is float or number == int(number):
                return value if isinstance(value, kind) else kind(number)
    elif not isinstance(kind, type) or kind is object or isinstance(value, kind):
        return value
    raise ValidationError(f"{place} is {value!r}; it must be {word_of(hint)}")


def word_of(hint):
    if isinstance(hint, enum.EnumMeta):
        return "one of " + ", ".join(repr(one.value) for one in hint)
    return getattr(hint, "__name__", str(hint))


def fill(module):
    """Fills the module pydantic."""
    module.BaseModel, module.Field, module.ValidationError = BaseModel, FieldInfo, ValidationError
    module.ConfigDict = dict
    module.PositiveInt = typing.Annotated[int, FieldInfo(gt=0)]
    module.NonNegativeInt = typing.Annotated[int, FieldInfo(ge=0)]
    module.field_validator = marked(FIELD_CHECK)
    module.model_validator = marked(MODEL_CHECK)
    module.field_serializer = marked("_tpsim_serializer")
