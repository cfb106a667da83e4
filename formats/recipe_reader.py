"""Reads a training recipe in Python as settings; recipe_values.py and recipe_program.py stand before this
file, in one program.

Arguments: PATH [FUNCTION [NAME=VALUE...]]

Prints JSON: {"function", "settings": [[key, value, line]], "given_away": [name]} of the recipe,
{"functions": [...]} where none was named and none or several could be meant, or {"error", "line", "hint"}.
given_away are functions of other files that may have changed it. A key that ends in _target_ has
the name of what was called; a value that only running the file tells is <computed>.
"""
import json
import re
import resource
import sys

COMPUTED = "<computed>"


def flat(key, value, line, above=()):
    if any(value is one for one in above):  # it holds itself
        return
    fields = None
    if isinstance(value, Made):
        yield f"{key}._target_".lstrip("."), value.of, line
        fields = [(field, one, value.lines[field]) for field, one in value.fields.items()]
    elif isinstance(value, dict):
        fields = [(field, one, line) for field, one in value.items()]
    elif isinstance(value, (list, tuple)):
        fields = [(i, one, line) for i, one in enumerate(value)]
    elif isinstance(value, bool) or value is None:
        yield key, "" if value is None else str(value).lower(), line
    elif isinstance(value, Name):
        yield key, value.path, line
    else:
        yield key, str(value) if is_plain(value) else COMPUTED, line
    for field, one, at in fields or []:
        yield from flat(f"{key}.{field}".lstrip("."), one, at, (*above, value))


def argument(text):
    known = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def meant(functions, asked):
    """Those that could be the recipe."""
    if asked:
        return [name for name in functions if name == asked]
    for usual in ("pretrain_recipe", "pretrain_config"):
        if usual in functions:
            return [usual]
    return [name for name in functions if re.fullmatch(r"(?!_)(.*_)?(config|recipe)(_.*)?", name)]


def read(path, asked, given):
    recipe, module = Recipe(path, given), Module(path)
    recipe.is_script = not asked  # which runs what it made
    tree = recipe.read(path.read_text(encoding="utf-8"), module)
    for statement in filter(is_main, tree.body if not asked else []):
        recipe.result(statement.body, Frame(module))
    functions = [name for name, value in module.names.items()
                 if isinstance(value, Function) and value.module is module]
    names = meant(functions, asked)
    if not asked and recipe.started:
        check_arguments(given, recipe.options)
        return answer_of("", recipe.started, recipe)
    if len(names) != 1:
        return {"functions": names or [name for name in functions if not name.startswith("_")]}
    recipe.is_script = False
    function = module.names[names[0]]
    check_arguments(given, arguments_of(function))
    made = recipe.call(function, [], given, 0)
    if not isinstance(made, (Made, dict)):
        raise Refusal(f"returns no configuration in {names[0]}")
    return answer_of(names[0], made, recipe)


def answer_of(function, made, recipe):
    return {"function": function, "settings": list(flat("", made, 0)), "given_away": recipe.given_away}


def arguments_of(function):
    """None where it takes any."""
    arguments = function.node.args
    named = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return None if arguments.kwarg else named


def check_arguments(given, known):
    for name in given if known is not None else []:
        if name not in known:
            raise Refusal(f"its recipe takes no argument '{name}', but {', '.join(sorted(known)) or 'none'}")


def main():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
    sys.setrecursionlimit(5000)
    path, asked = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    given = {key: argument(value) for key, _, value in (text.partition("=") for text in sys.argv[3:])}
    try:
        answer = read(path, asked, given)
    except Refusal as refusal:
        answer = {"error": str(refusal), "line": refusal.line, "hint": refusal.hint}
    except (RecursionError, MemoryError, OverflowError, ValueError, OSError):
        answer = {"error": "cannot be followed", "line": 0, "hint": ""}
    print(json.dumps(answer))


main()
