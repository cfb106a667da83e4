"""Expressions of a training recipe in Python, followed without running them: constants, calls, attributes
and what branches ask of them. What is imported is a name; what cannot be told is UNKNOWN."""
import ast
import operator

MOST_STEPS = 200_000
MOST_TIMES = 1000  # that a list is repeated


class Refusal(Exception):
    """Why a recipe is not read, and at which line (0: at none)."""

    def __init__(self, message, line=0, hint=""):
        super().__init__(message)
        self.line = line
        self.hint = hint


class Unknown:
    """What only running the file tells."""


UNKNOWN = Unknown()


class Name:
    """Something of another module, by its path."""

    def __init__(self, path):
        self.path = path


class Made:
    """What a call made: an instance, or what a function of another module returned. Positional arguments
    are the fields 0, 1, ..."""

    def __init__(self, of):
        self.of = of
        self.fields = {}
        self.lines = {}

    def set(self, key, value, line):
        self.fields[key] = value
        self.lines[key] = line


class Function:
    """`places` and `words` are given already: functools.partial."""

    def __init__(self, node, module, places=(), words=()):
        self.node = node
        self.module = module
        self.places = list(places)
        self.words = dict(words)


class Module:
    def __init__(self, file, path=""):
        self.file = file
        self.path = path
        self.names = {}


class Frame:
    """Names of a function that is followed, and those of its module."""

    def __init__(self, module, names=None):
        self.module = module
        self.names = module.names if names is None else names


def last(path):
    return path.rpartition(".")[2]


def is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str))


def all_plain(values):
    return all(is_plain(v) or isinstance(v, (list, tuple)) and all_plain(v) for v in values)


def is_key(value):
    return is_plain(value) or isinstance(value, tuple) and all(map(is_key, value))


def truth(value):
    """None where only running the file tells."""
    if is_plain(value) or isinstance(value, (list, tuple, dict)):
        return bool(value)
    is_instance_of_class = isinstance(value, Made) and last(value.of)[:1].isupper()
    return True if is_instance_of_class or isinstance(value, (Function, Module)) else None


def are_same(a, b):
    if is_plain(a) and is_plain(b):
        return a == b
    if isinstance(a, Name) and isinstance(b, Name):
        return a.path == b.path
    something = (Made, Function, Module, list, tuple, dict)
    if (a is None and isinstance(b, something)) or (b is None and isinstance(a, something)):
        return False
    return None


def is_among(value, values):
    if not isinstance(values, (list, tuple, dict, str)) or not is_key(value) or not all_plain(values):
        return None
    return None if isinstance(values, str) and not isinstance(value, str) else value in values


def is_instance(value, kind):
    if isinstance(kind, (list, tuple)):
        each = [is_instance(value, one) for one in kind]
        return True if True in each else None if None in each else False
    if not isinstance(kind, Name) or not (is_plain(value) or isinstance(value, Made)):
        return None
    if is_plain(value):
        return type(value).__name__ == kind.path
    # Functions of Megatron-Bridge's module of that name return instances of its one class.
    of_precision = ".mixed_precision." in value.of and last(kind.path) == "MixedPrecisionConfig"
    return of_precision or last(value.of) == last(kind.path)


def known_or(holds):
    return UNKNOWN if holds is None else holds


class Expressions:
    """value() of an expression; of_call(), assign(), and imported() for a name, are the program's."""

    OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
                 ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
    ORDER = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}

    def __init__(self):
        self.steps = 0

    def step(self, node):
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Refusal("takes too long to follow", getattr(node, "lineno", 0))

    def value(self, node, frame):
        if node is None:
            return None
        self.step(node)
        follow = getattr(self, "of_" + type(node).__name__.lower(), None)
        return follow(node, frame) if follow else UNKNOWN

    def of_constant(self, node, _frame):
        return node.value if is_plain(node.value) else UNKNOWN

    def of_name(self, node, frame):
        for names in (frame.names, frame.module.names):
            if node.id in names:
                return self.imported(names[node.id])
        return Name(node.id)

    def of_attribute(self, node, frame):
        owner = self.value(node.value, frame)
        if isinstance(owner, Module):
            return self.attribute(owner, node.attr)
        if isinstance(owner, Name):
            return Name(f"{owner.path}.{node.attr}")
        return owner.fields.get(node.attr, UNKNOWN) if isinstance(owner, Made) else UNKNOWN

    def of_subscript(self, node, frame):
        owner, key = self.value(node.value, frame), self.value(node.slice, frame)
        try:
            return owner[key] if isinstance(owner, (dict, list, tuple, str)) else UNKNOWN
        except (KeyError, IndexError, TypeError):
            return UNKNOWN

    def elements(self, nodes, frame):
        elements = []
        for node in nodes:
            unpacks = isinstance(node, ast.Starred)
            value = self.value(node.value if unpacks else node, frame)
            elements.extend(value if unpacks and isinstance(value, (list, tuple, str, dict)) else [value])
        return elements

    def of_list(self, node, frame):
        return self.elements(node.elts, frame)

    of_set = of_list

    def of_tuple(self, node, frame):
        return tuple(self.elements(node.elts, frame))

    def of_listcomp(self, node, frame):
        loop = node.generators[0]
        among = self.value(loop.iter, frame)
        if len(node.generators) > 1 or not isinstance(among, (list, tuple, dict)):
            return UNKNOWN
        made, within = [], Frame(frame.module, dict(frame.names))
        for element in list(among):
            self.assign(loop.target, element, within)
            holds = [truth(self.value(test, within)) for test in loop.ifs]
            if None in holds:
                return UNKNOWN
            if all(holds):
                made.append(self.value(node.elt, within))
        return made

    of_generatorexp = of_listcomp

    def of_dict(self, node, frame):
        made = {}
        for key, value in zip(node.keys, node.values):
            value = self.value(value, frame)
            name = self.value(key, frame)
            if key is None and isinstance(value, dict):
                made.update(value)
            elif key is not None and is_key(name):
                made[name] = value
        return made

    def of_joinedstr(self, node, frame):
        parts = [self.value(part.value if isinstance(part, ast.FormattedValue) else part, frame)
                 for part in node.values]
        is_formatted = any(getattr(part, "format_spec", None) for part in node.values)
        return "".join(map(str, parts)) if all_plain(parts) and not is_formatted else UNKNOWN

    def of_binop(self, node, frame):
        a, b = self.value(node.left, frame), self.value(node.right, frame)
        joins = isinstance(node.op, ast.Add) and type(a) is type(b) and isinstance(a, (str, list, tuple))
        repeats = (isinstance(node.op, ast.Mult) and isinstance(a, (str, list)) and isinstance(b, int)
                   and b <= MOST_TIMES)
        counts = all(isinstance(v, (int, float)) for v in (a, b))
        if type(node.op) not in self.OPERATORS or not (counts or joins or repeats):
            return UNKNOWN
        try:
            return self.OPERATORS[type(node.op)](a, b)
        except ArithmeticError:
            return UNKNOWN

    def of_unaryop(self, node, frame):
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            holds = truth(value)
            return UNKNOWN if holds is None else not holds
        is_negative = isinstance(node.op, ast.USub) and isinstance(value, (int, float))
        return -value if is_negative else UNKNOWN

    def of_boolop(self, node, frame):
        ends_on = isinstance(node.op, ast.Or)
        value, doubts = UNKNOWN, False
        for part in node.values:
            value = self.value(part, frame)
            holds = truth(value)
            if holds is ends_on:
                return UNKNOWN if doubts and not isinstance(value, bool) else value
            doubts |= holds is None
        return UNKNOWN if doubts else value

    def of_ifexp(self, node, frame):
        holds = truth(self.value(node.test, frame))
        return UNKNOWN if holds is None else self.value(node.body if holds else node.orelse, frame)

    def of_compare(self, node, frame):
        left = self.value(node.left, frame)
        for operation, right in zip(node.ops, node.comparators):
            right = self.value(right, frame)
            holds = self.compared(operation, left, right)
            if holds is not True:
                return known_or(holds)
            left = right
        return True

    def compared(self, operation, a, b):
        if type(operation) in self.ORDER:
            counts = all(isinstance(v, (int, float)) for v in (a, b))
            return self.ORDER[type(operation)](a, b) if counts else None
        holds = is_among(a, b) if isinstance(operation, (ast.In, ast.NotIn)) else are_same(a, b)
        negates = isinstance(operation, (ast.NotIn, ast.IsNot, ast.NotEq))
        return holds if holds is None else holds != negates
