"""What a training recipe in Python does, followed without running it: its statements and calls, and those of
modules that lie in a folder above it, as in a checkout. recipe_values.py stands before this file."""
import pathlib

MOST_CALLS = 40  # inside of each other
# Given a recipe, or the parts of one: pretrain(...), run.run(...), an experiment's add(...).
STARTS = {"pretrain", "train", "run", "finetune", "add"}
LOOKS_UP = {"get_mixed_precision_config"}  # functions by their names
SAYS = {"print", "pprint", "log", "debug", "info", "warning"}
FLEX = "apply_flex_dispatcher_backend"  # of Megatron-Bridge: asks which GPU it runs on
BUILTINS = {f.__name__: f for f in (int, float, str, bool, len, min, max, abs, list, tuple, sum, range)}
METHODS = {"append", "extend", "insert", "update", "get", "pop", "setdefault", "keys", "values", "items",
           "lower", "upper", "strip", "split", "startswith", "endswith", "replace", "copy"}
CHANGES = {"append", "extend", "insert", "update"}


class Imported:
    """`name` of the module at `path`, or that module: looked up when something asks for it."""

    def __init__(self, path, name=None):
        self.path = path
        self.name = name


class Returned(Exception):
    def __init__(self, value):
        super().__init__()
        self.value = value


def is_recipe_like(value):
    names_one = isinstance(value, Made) and last(value.of).endswith(("_recipe", "_config"))
    return names_one or isinstance(value, Made) and bool({"model", "trainer", "train"} & value.fields.keys())


def is_main(statement):
    test = getattr(statement, "test", None)
    return (isinstance(statement, ast.If) and isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name) and test.left.id == "__name__")


def nodes_in(statements):
    return (node for statement in statements for node in ast.walk(statement))


def targets_in(statements):
    """What any of the statements would set, whichever of them run."""
    for node in nodes_in(statements):
        if isinstance(node, ast.Assign):
            yield from node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
            yield node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            yield node.func.value


class Recipe(Expressions):
    def __init__(self, path, given):
        super().__init__()
        self.path = path
        self.given = given  # arguments of the recipe, or of the script
        self.options = set()  # that a script's argparse knows
        self.modules = {}
        self.calls = 0
        self.is_script = False
        self.started = None  # what a script ran
        self.given_away = []  # functions of other modules that were given what they may change

    # Modules

    def read(self, source, module):
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise Refusal(f"is no Python: {error.msg}", error.lineno or 0) from None
        self.result([s for s in tree.body if not is_main(s)], Frame(module))
        return tree

    def module(self, path):
        """The module of that name in a folder above the file; None where there is none."""
        if path not in self.modules:
            self.modules[path] = None
            parts = pathlib.Path(*path.split("."))
            places = [file for folder in self.path.resolve().parents
                      for file in (folder / parts.with_suffix(".py"), folder / parts / "__init__.py")]
            file = next((place for place in places if place.is_file()), None)
            if file is not None:
                self.follow(Module(file, path))
        return self.modules[path]

    def follow(self, module):
        self.modules[module.path] = module
        try:
            self.read(module.file.read_text(encoding="utf-8"), module)
        except (Refusal, OSError, ValueError):
            self.modules[module.path] = None  # its names are all that is known

    def imported(self, value):
        if not isinstance(value, Imported):
            return value
        if value.name is None:
            return self.module(value.path) or Name(value.path)
        path = f"{value.path}.{value.name}"
        if value.name in LOOKS_UP or value.name == FLEX:
            return Name(path)
        module = self.module(value.path)
        if module and value.name in module.names:
            return self.imported(module.names[value.name])
        return self.module(path) or Name(path)

    def attribute(self, module, name):
        return self.imported(module.names.get(name, Imported(module.path, name)))

    def run_import(self, node, frame):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            frame.names[alias.asname or whole] = Imported(whole)

    def run_importfrom(self, node, frame):
        path = node.module or ""
        if node.level:
            folder = frame.module.file.resolve().parents[node.level - 1]
            path = f"{folder.name}.{path}" if path else folder.name
        for alias in node.names:
            frame.names[alias.asname or alias.name] = Imported(path, alias.name)

    # Statements

    def block(self, statements, frame):
        for statement in statements:
            self.step(statement)
            follow = getattr(self, "run_" + type(statement).__name__.lower(), None)
            if follow:
                follow(statement, frame)

    def run_functiondef(self, node, frame):
        frame.names[node.name] = Function(node, frame.module)

    def run_classdef(self, node, frame):
        path = frame.module.path
        frame.names[node.name] = Name(f"{path}.{node.name}" if path else node.name)

    def run_return(self, node, frame):
        raise Returned(self.value(node.value, frame))

    def run_raise(self, node, _frame):
        if self.is_script:  # of where it runs, say, which nobody asks here
            raise Returned(UNKNOWN)
        raise Refusal("refuses its arguments", node.lineno, "--set NAME=VALUE says another")

    def run_expr(self, node, frame):
        """Of a call whose result nobody takes the effect counts."""
        made = self.value(node.value, frame)
        fields = [*made.fields.values()] if isinstance(made, Made) else []
        if not any(isinstance(one, Made) for one in fields) or made is self.started:
            return
        if last(made.of) == FLEX:
            self.use_flex(*fields)
        elif last(made.of) not in {*STARTS, *SAYS, *self.given_away}:
            self.given_away.append(last(made.of))

    @staticmethod
    def use_flex(model, backend=None):
        """As on GPUs that have the backend."""
        if backend in ("deepep", "hybridep"):
            for key, value in (("moe_token_dispatcher_type", "flex"), ("moe_flex_dispatcher_backend", backend),
                               ("moe_shared_expert_overlap", False)):
                model.set(key, value, 0)

    def run_assign(self, node, frame):
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)

    def run_annassign(self, node, frame):
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)

    def run_augassign(self, node, frame):
        both = ast.copy_location(ast.BinOp(left=node.target, op=node.op, right=node.value), node)
        self.assign(node.target, self.value(both, frame), frame)

    def run_with(self, node, frame):
        self.block(node.body, frame)

    def run_try(self, node, frame):
        self.block(node.body + node.orelse + node.finalbody, frame)

    def run_if(self, node, frame):
        holds = truth(self.value(node.test, frame))
        if holds is None:
            self.forget(node.body + node.orelse, frame)
        else:
            self.block(node.body if holds else node.orelse, frame)

    def run_for(self, node, frame):
        among = self.value(node.iter, frame)
        if not isinstance(among, (list, tuple, dict)):
            self.forget([node], frame)
            return
        for element in list(among):
            self.assign(node.target, element, frame)
            self.block(node.body, frame)

    def run_while(self, node, frame):
        self.forget([node], frame)

    def forget(self, statements, frame):
        """Whether they run nobody knows, nor what they leave."""
        for node in nodes_in(statements):
            if isinstance(node, ast.Return) and (self.is_script or self.calls > 1):
                raise Returned(UNKNOWN)
            if isinstance(node, ast.Return):
                raise Refusal("returns from a branch that only running it tells", node.lineno)
        for target in targets_in(statements):
            self.assign(target, UNKNOWN, frame)

    def assign(self, target, value, frame):
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            each = value if isinstance(value, (list, tuple)) and len(value) == len(target.elts) else None
            for i, part in enumerate(target.elts):
                of_call = Made(value.of) if isinstance(value, Made) else UNKNOWN
                self.assign(part, each[i] if each else of_call, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.owner(target.value, frame)
            if isinstance(owner, Made):
                owner.set(target.attr, value, target.lineno)
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value, frame), self.value(target.slice, frame)
            if isinstance(owner, dict) and is_plain(key):
                owner[key] = value

    def owner(self, node, frame):
        """The object whose attribute is set: made where a recipe of another module has it."""
        if not isinstance(node, ast.Attribute):
            return self.value(node, frame)
        above = self.owner(node.value, frame)
        if not isinstance(above, Made):
            return self.value(node, frame)
        there = above.fields.get(node.attr)
        if not isinstance(there, (Made, dict, list)):
            of = there.path if isinstance(there, Name) else there if isinstance(there, str) else ""
            above.set(node.attr, Made(of), node.lineno)
        return above.fields[node.attr]

    # Calls

    def of_call(self, node, frame):
        places = self.elements(node.args, frame)
        words, lines = {}, {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            several = value if keyword.arg is None and isinstance(value, dict) else {}
            words.update(several if keyword.arg is None else {keyword.arg: value})
            lines[keyword.arg] = keyword.value.lineno
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, frame)
            if isinstance(owner, Made):
                return self.method_of_made(owner, node.func.attr, places, words)
            if isinstance(owner, (list, tuple, dict, str)):
                return self.method(owner, node.func.attr, places, words)
        callee = self.value(node.func, frame)
        if isinstance(callee, Function):
            return self.call(callee, [*callee.places, *places], {**callee.words, **words}, node.lineno)
        if isinstance(callee, Made):  # of functools.partial
            for key, value in words.items():
                callee.set(key, value, node.lineno)
            return callee
        if not isinstance(callee, Name):
            return UNKNOWN
        return self.made(callee.path, places, words, lambda key: lines.get(key, node.lineno))

    def method_of_made(self, owner, name, places, words):
        """A bridge hands on its model's provider, a parser its defaults; what others return is their own."""
        if name == "add_argument" and places and all(isinstance(one, str) for one in places):
            option = max(places, key=len)
            default = False if words.get("action") == "store_true" else words.get("default")
            key = option.lstrip("-").replace("-", "_")
            self.options.add(key)
            owner.set(key, self.given.get(key, default if option.startswith("-") else UNKNOWN), 0)
        hands_on = name.startswith(("to_", "parse_args", "parse_known_args", "add_argument_group"))
        return (owner, []) if name == "parse_known_args" else owner if hands_on else UNKNOWN

    @staticmethod
    def method(owner, name, places, words):
        try:
            value = getattr(owner, name)(*places, **words) if name in METHODS else UNKNOWN
        except (AttributeError, TypeError, LookupError, ValueError):
            return UNKNOWN
        return list(value) if type(value).__name__.startswith("dict_") else value

    def made(self, path, places, words, line):
        if path in BUILTINS or path in ("isinstance", "getattr", "hasattr"):
            return self.builtin(path, places, words)
        if last(path) == "deepcopy" and places:
            return places[0]
        starts = last(path) in STARTS
        # run.Config(A, ...), run.Partial(f, ...) and partial(f, ...) make one of what they name.
        if last(path) in ("Config", "Partial", "partial") and places and isinstance(places[0], (Name, Function)):
            first = places.pop(0)
            if isinstance(first, Function) and last(path) == "partial":
                return Function(first.node, first.module, places, words)
            path = first.path if isinstance(first, Name) else first.node.name
        whole = Made(path)
        for key, value in [*enumerate(places), *words.items()]:
            whole.set(str(key), value, line(key))
        if starts:
            self.start(whole)
        return whole

    @staticmethod
    def builtin(name, places, words):
        if name == "isinstance":
            return known_or(is_instance(*places)) if len(places) == 2 else UNKNOWN
        if name in ("getattr", "hasattr"):
            has = len(places) > 1 and isinstance(places[0], Made) and str(places[1]) in places[0].fields
            return UNKNOWN if not has else places[0].fields[str(places[1])] if name == "getattr" else True
        if not all_plain([*places, *words.values()]):
            return UNKNOWN
        try:
            value = BUILTINS[name](*places, **words)
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN
        is_long = name == "range" and len(value) > MOST_TIMES
        return UNKNOWN if is_long else list(value) if name == "range" else value

    def start(self, call):
        """Keeps what is run: a recipe that is given, or the parts of one."""
        if "trainer" in call.fields:
            self.started = call
            return
        given = [call.fields.get("config"), *call.fields.values()]
        self.started = next(filter(is_recipe_like, given), self.started)

    def call(self, function, places, words, line):
        if self.calls >= MOST_CALLS:
            raise Refusal("calls itself", line)
        self.calls += 1
        try:
            return self.result(function.node.body, Frame(function.module, self.bound(function, places, words)))
        finally:
            self.calls -= 1

    def result(self, statements, frame):
        try:
            self.block(statements, frame)
        except Returned as returned:
            return returned.value
        return None

    def bound(self, function, places, words):
        arguments = function.node.args
        named = arguments.posonlyargs + arguments.args
        own = [argument.arg for argument in named + arguments.kwonlyargs]
        names = dict.fromkeys(own, UNKNOWN)
        defaults = [*zip(reversed(named), reversed(arguments.defaults)),
                    *zip(arguments.kwonlyargs, arguments.kw_defaults)]
        for argument, default in defaults:
            if default is not None:
                names[argument.arg] = self.value(default, Frame(function.module))
        names.update(zip(own, places))
        names.update({key: value for key, value in words.items() if key in own})
        if arguments.kwarg:
            names[arguments.kwarg.arg] = {k: v for k, v in words.items() if k not in own}
        return names
