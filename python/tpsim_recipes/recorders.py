"""Objects that stand in for those that a framework would build. They record the given arguments."""
import inspect

# The number of GPUs and the name of the GPU that code finds when it asks for them. "stated": the number that a script
# requests from a scheduler.
world = {"gpus": 1, "gpu": "h100"}


class Recorder:
    """Records a call of the class or function `target`. Its arguments are attributes that can be read and changed."""

    def __init__(self, target, made_by=None, words=None):
        state = self.__dict__
        state["target"] = target
        state["_made_by"] = made_by
        state["_given"] = dict(words or {})
        state["_defaults"] = defaults_of(made_by)

    def fields(self):
        return {**{k: v for k, v in self._defaults.items() if k not in self._given}, **self._given}

    def unset(self):
        return [name for name in self._defaults if name not in self._given]

    def __getattr__(self, name):
        if name == "__fn_or_cls__":  # of nemo_run's Config and Partial
            return self._made_by
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._given:
            return self._given[name]
        if name in self._defaults:
            return self._defaults[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self._given[name] = value

    def __delattr__(self, name):
        self._given.pop(name, None)


def defaults_of(made_by):
    """Returns the default values of the parameters by name, for a class or function. Empty for a stub."""
    from .stubs import StubMeta  # pylint: disable=import-outside-toplevel
    if made_by is None or isinstance(made_by, StubMeta):
        return {}
    try:
        parameters = inspect.signature(made_by).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: one.default for one in parameters
            if one.default is not inspect.Parameter.empty and type(one.default).__name__ != "_HAS_DEFAULT_FACTORY_CLASS"}


class Refusal(Exception):
    """An error that the user can fix. `choices` are valid names, such as recipes of the file."""

    def __init__(self, message, hint="", choices=()):
        super().__init__(message)
        self.hint = hint
        self.choices = list(choices)


class Started(BaseException):
    """Raised instead of starting training; contains the configuration."""

    def __init__(self, config, framework):
        super().__init__()
        self.config = config
        self.framework = framework
