"""Replaces modules that are not installed by stubs, so that a configuration can be built without
them.

A finder at the end of sys.meta_path provides every module that no other finder has. Any attribute
of such a module is a stub class. Modules of the standard library, and modules missing in a package
of the checkout, are not replaced, because code tests whether they exist. If a module of the
checkout fails to load with stubs, it becomes a stub itself and is reported.
"""
import importlib.abc
import importlib.machinery
import sys
import types
import typing

OPTIONAL = {"msvcrt", "winreg"}  # standard modules that exist only on Windows
VERSION = "99.0.0"  # newer than all versions that frameworks require


MOST_TRIES = 20
EXCEPTIONS = ("Error", "Exception", "Timeout")
stand_ins = set()  # modules missing in the checkout that others import


def is_standard(name):
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top.startswith("_") or top in OPTIONAL


def is_dunder(name):
    return name.startswith("__") and name.endswith("__")


def annotations_of(cls):
    return {name for base in cls.__mro__ for name in base.__dict__.get("__annotations__", ())}


class Empty:
    """Operators of stub classes and of their instances: an empty container that is greater than everything."""

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __contains__(self, _value):
        return False

    def __setitem__(self, _key, _value):
        pass

    def __lt__(self, _other):
        return False

    __le__ = __lt__

    def __gt__(self, _other):
        return True

    __ge__ = __gt__

    def __format__(self, _form):
        return repr(self)


class StubMeta(Empty, type(typing.Protocol)):
    """Metaclass of stub classes. It derives from Protocol's metaclass, so that classes may inherit
    from stubs, ABCs and protocols.
    """

    def __getattr__(cls, name):
        if is_dunder(name) or name.startswith(("_abc_", "_is_protocol", "_is_runtime", "_proto")):
            raise AttributeError(name)
        if name in annotations_of(cls):  # a dataclass field: a stub would be its default value
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        child = stub_class(f"{cls.__module__}.{cls.__qualname__}", name)
        type.__setattr__(cls, name, child)
        return child

    def __call__(cls, *places, **words):
        if not cls.__dict__.get("_tpsim_stub"):
            return super().__call__(*places, **words)
        if len(places) == 1 and not words and is_decorated(places[0]):
            return places[0]
        made = (Exception if Exception in cls.__mro__ else object).__new__(cls)
        object.__setattr__(made, "_tpsim_given", (places, words))
        return made

    def __getitem__(cls, _key):
        return cls

    def __or__(cls, other):
        return typing.Any

    __ror__ = __or__

    def __bool__(cls):
        return True

    def __add__(cls, other):
        return other if isinstance(other, (list, tuple)) else cls

    __radd__ = __add__

    def register(cls, *places, **_words):
        """Replaces ABC.register() and other registries: returns the class unchanged, or a decorator that does."""
        if len(places) == 1 and isinstance(places[0], type):
            return places[0]
        return lambda decorated: decorated

    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass):
        return type.__subclasscheck__(cls, subclass)

    def __repr__(cls):
        return f"{cls.__module__}.{cls.__qualname__}"


def is_decorated(value):
    real_class = isinstance(value, type) and not isinstance(value, StubMeta)
    return real_class or isinstance(value, (types.FunctionType, classmethod, staticmethod, property))


class Stub(Empty, metaclass=StubMeta):
    """An instance of any stub class. It is falsy, callable and a context manager, and has no effects."""

    _tpsim_stub = True

    def __init__(self, *_places, **_words):
        pass

    def __init_subclass__(cls, **_words):
        super().__init_subclass__()

    def __getattr__(self, name):
        if is_dunder(name) or name == "_tpsim_given":
            raise AttributeError(name)
        if hasattr(type(self), "__dataclass_fields__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return stub_class(repr(type(self)), name)

    def __call__(self, *places, **words):
        if len(places) == 1 and not words and is_decorated(places[0]):
            return places[0]
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False

    def __bool__(self):
        return False

    def __getitem__(self, _key):
        return self

    def __int__(self):
        return 0

    __index__ = __int__

    def __float__(self):
        return 0.0

    def __add__(self, _other):
        return self

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __and__ = __or__ = __ror__ = __matmul__ = __add__

    def __neg__(self):
        return self

    def __eq__(self, other):
        return type(self) is type(other) and getattr(self, "_tpsim_given", None) == getattr(other, "_tpsim_given", None)

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return f"{type(self)!r}()"


def stub_class(module, name):
    bases = (Stub, Exception) if name.endswith(EXCEPTIONS) else (Stub,)  # "except" takes exceptions only
    return StubMeta(name, bases, {"__module__": module, "__qualname__": name, "_tpsim_stub": True})


class StubModule(types.ModuleType):
    """A module in which every attribute exists. Attributes of replaced modules have their own
    values; others are stubs.
    """

    def __getattr__(self, name):
        if name in ("__version__", "VERSION", "version") and name.startswith("__"):
            return VERSION
        if is_dunder(name):
            raise AttributeError(name)
        value = stub_class(self.__name__, name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The first finder in sys.meta_path. Handles replaced modules, and modules of the checkout, whose
    loading may fail. `replaced` contains functions that fill replaced modules, by module name.
    """

    def __init__(self, replaced):
        self.replaced = replaced
        self.failed = {}  # checkout modules that became stubs, with the error

    def find_spec(self, fullname, path=None, _target=None):
        if fullname in self.replaced:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname.partition(".")[0] in sys.stdlib_module_names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return spec
        spec.loader = Forgiving(spec.loader, self.failed)
        return spec

    def create_module(self, spec):
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        self.replaced[module.__name__](module)


class Forgiving(importlib.abc.Loader):
    """Loads a module of the checkout. If loading fails, the module keeps the attributes it has, and
    other attributes are stubs.
    """

    def __init__(self, own, failed):
        self.own = own
        self.failed = failed

    def __getattr__(self, name):
        return getattr(self.own, name)

    def create_module(self, spec):
        return self.own.create_module(spec)

    def exec_module(self, module):
        for _ in range(MOST_TRIES):
            try:
                return self.own.exec_module(module)
            except ModuleNotFoundError as error:
                # The checkout was written for a version of a package that has this missing module.
                if error.name is None or error.name in stand_ins or is_standard(error.name):
                    return self.give_up(module, error)
                stand_ins.add(error.name)
            except Exception as error:  # pylint: disable=broad-except
                return self.give_up(module, error)
        return None

    def give_up(self, module, error):
        self.failed[module.__name__] = f"{type(error).__name__}: {error}"
        module.__class__ = StubModule


class LastFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder in sys.meta_path: provides stubs for modules that are not installed."""

    def find_spec(self, fullname, _path=None, _target=None):
        rest = fullname.partition(".")[2]
        if is_standard(fullname):
            return None
        parent = sys.modules.get(fullname.rpartition(".")[0]) if rest else None
        is_own = parent is not None and getattr(parent, "__file__", None) and not isinstance(parent, StubModule)
        return None if is_own and fullname not in stand_ins else importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def install(replaced):
    """Installs the finders and returns the first one. Its `failed` lists modules of the checkout that became stubs."""
    finder = Finder(replaced)
    sys.meta_path.insert(0, finder)
    sys.meta_path.append(LastFinder())
    if not hasattr(typing, "override"):  # Python 3.11
        typing.override = lambda function: function
    return finder
