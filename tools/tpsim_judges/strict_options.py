"""Replaces tyro's command line with one that accepts exactly the options of a configuration, for checks.

An option is a dotted path of dataclass fields, with - or _ between words. A Boolean is a switch, --a.b or --a.no-b. A
field that holds one of several dataclasses takes a word "field:variant"; options behind the word belong to that field.
"""
import contextlib
import dataclasses
import typing

from tpsim_recipes.check import Rejected
from tpsim_recipes.pydantic_models import is_union


def cli(_made_by, *_places, args=(), default=None, **_words):
    """Returns a copy of `default` with the options set. All changed dataclasses check their values again."""
    changes, words, inside = {}, list(args), ""
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            inside = chosen(default, word, changes)
            continue
        path, negated, hint = found(default, changes, word.partition("=")[0], inside)
        changes[path] = value_of(word, hint, words, negated)
    return rebuilt(default, changes)


def chosen(config, word, changes):
    """Sets the field of a word "field:variant" to the variant's default, and returns the field's name."""
    name, colon, variant = word.replace("-", "_").partition(":")
    hint = hints_of(config).get(name)
    for one in typing.get_args(hint) if colon and is_choice(hint) else ():
        if variant_name(one) == variant:
            made_by = typing.get_args(one)[0]
            changes[(name,)] = None if made_by is type(None) else made_by()
            return name
    raise Rejected(f"unrecognized argument: {word}")


def found(config, changes, option, inside):
    """Returns the path of an option, whether it switches a Boolean off, and its annotation."""
    *sections, last = option[2:].replace("-", "_").split(".")
    owner = config
    for depth, name in enumerate(sections):
        hint = hints_of(owner).get(name)
        is_open = not is_choice(hint) or (depth == 0 and name == inside)
        owner = changes.get((name,), getattr(owner, name, None)) if depth == 0 else getattr(owner, name, None)
        if hint is None or not is_open or not dataclasses.is_dataclass(owner) or is_hidden(hint):
            raise Rejected(f"unrecognized option: {option}")
    hints = hints_of(owner)
    negated = last not in hints and last.startswith("no_")
    last = last[len("no_"):] if negated else last
    hint = hints.get(last)
    is_last = not inside or sections[:1] == [inside]
    if hint is None or not is_last or is_hidden(hint) or dataclasses.is_dataclass(getattr(owner, last, None)) \
            or negated and hint is not bool:
        raise Rejected(f"unrecognized option: {option}")
    return (*sections, last), negated, hint


def hints_of(owner):
    """Returns the annotations of a dataclass's fields by name. Those that cannot be resolved are Any."""
    made_by = type(owner)
    names = [one.name for one in dataclasses.fields(owner) if one.init] if dataclasses.is_dataclass(owner) else []
    try:
        hints = typing.get_type_hints(made_by, include_extras=True)
    except Exception:  # pylint: disable=broad-except
        hints = {}
    return {name: hints.get(name, typing.Any) for name in names}


def is_choice(hint):
    """Whether a field takes one of several named variants."""
    return is_union(hint) and any(variant_name(one) for one in typing.get_args(hint))


def variant_name(hint):
    for mark in getattr(hint, "__metadata__", ()):
        given = getattr(mark, "_tpsim_given", None)
        if given and given[0] and repr(type(mark)) == "tyro.conf.subcommand":
            return given[0][0].replace("-", "_")
    return ""


def variant_of(config, name):
    """Returns the name of the variant that a field holds. Empty if the field does not take named variants."""
    made_by = type(getattr(config, name, None))
    hints = [one for one in typing.get_args(hints_of(config).get(name)) if variant_name(one)]
    return next((variant_name(one) for one in hints if typing.get_args(one)[0] is made_by), "")


def is_hidden(hint):
    return any(repr(mark) == "tyro.conf.Suppress" for mark in getattr(hint, "__metadata__", ()))


def value_of(word, hint, words, negated):
    """Returns the value of an option, which follows "=" or is the next word. A Boolean has none."""
    option, equals, text = word.partition("=")
    if hint is bool:
        if equals:
            raise Rejected(f"{option} is a switch and does not take a value")
        return not negated
    if not equals:
        if not words or words[0].startswith("--"):
            raise Rejected(f"{option} needs a value")
        text = words.pop(0)
    return converted(hint, text, option)


def converted(hint, text, option):
    """Converts the text to the annotated type. Raises Rejected if the type does not have this value."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return converted(parts[0], text, option)
    if origin is typing.Literal:
        for one in parts:
            if str(one) == text:
                return one
        raise Rejected(f"{option}: invalid choice '{text}' (choose from {', '.join(map(str, parts))})")
    if is_union(hint):
        for one in sorted(parts, key=lambda part: part is str):
            with contextlib.suppress(Rejected):
                return converted(one, text, option)
        raise Rejected(f"{option}: invalid value '{text}'")
    if hint is type(None) or hint is bool:
        known = {"None": None} if hint is type(None) else {"True": True, "False": False}
        if text not in known:
            raise Rejected(f"{option}: invalid value '{text}'")
        return known[text]
    if origin in (list, tuple):
        return origin(converted(parts[0] if parts else str, one, option) for one in text.split(","))
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            raise Rejected(f"{option}: '{text}' is not of type {hint.__name__}") from None
    return text


def rebuilt(owner, changes):
    """Returns a copy of the dataclass with the values at these paths."""
    own, inner = {}, {}
    for path, value in changes.items():
        if len(path) == 1:
            own[path[0]] = value
        else:
            inner.setdefault(path[0], {})[path[1:]] = value
    for name, more in inner.items():
        own[name] = rebuilt(own.get(name, getattr(owner, name)), more)
    return dataclasses.replace(owner, **own)
