"""Finds the packages of frameworks in checkouts, or in the folders above a file."""
import pathlib

# Subfolders of a checkout that may contain its packages.
SOURCES = ("", "src", "3rdparty/Megatron-LM", "Megatron-LM")
# Subfolder that identifies the sources of each framework.
FRAMEWORKS = {"megatron-bridge": "megatron/bridge", "nemo": "nemo/collections", "torchtitan": "torchtitan",
              "olmo-core": "olmo_core", "megatron-lm": "megatron/training", "accelerate": "accelerate/commands",
              "deepspeed": "deepspeed/runtime", "megatron-deepspeed": "megatron/mpu"}


def sources_of(folder):
    """Returns the subfolders that contain packages of a framework, to import from."""
    folder = pathlib.Path(folder).resolve()
    return [place for place in (folder / name for name in SOURCES)
            if any((place / package).is_dir() for package in (*FRAMEWORKS.values(), "megatron/core"))]


def above(path):
    """Returns the source folders above a file, to import from."""
    found = []
    for folder in pathlib.Path(path).resolve().parents:
        found += [place for place in sources_of(folder) if place not in found]
    return found


def module_name(path, sources):
    """Returns the dotted module name of a file in one of the source folders. Empty if the file is
    in none of them, or not in a package.
    """
    path = pathlib.Path(path).resolve()
    for source in sources:
        if source in path.parents:
            parts = path.relative_to(source).with_suffix("").parts
            if len(parts) > 1 and all(part.isidentifier() for part in parts):
                return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return ""


def framework_of(sources):
    for name, package in FRAMEWORKS.items():
        if any((source / package).is_dir() for source in sources):
            return name
    return ""


def framework_of_target(name):
    """Returns the framework to which a module belongs, by the dotted name of the class or function
    that creates the configuration. Empty if unknown.
    """
    return next((framework for framework, package in FRAMEWORKS.items()
                 if name.startswith((package.replace("/", ".") + ".", package.partition("/")[0] + "."))
                 and not name.startswith("megatron.core")), "")
