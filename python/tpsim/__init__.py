"""tpsim plans the training of large language models over many GPUs.

    >>> import tpsim
    >>> report = tpsim.plan("bloom-176b", gpus=384)
    >>> report.best.tp, report.best.predicted.step_s
    >>> run = tpsim.campaign(report.best, tokens=366e9)
    >>> run.cost.gpu_hours

The functions are the commands of the program tpsim, and their keywords are its options. Results are
the same: report.to_dict() is the command's --json document. Errors are tpsim.Error with the
command's text. See docs/python.md.
"""

from tpsim import _reports, _tables  # _tables: what print() and notebooks show
from tpsim._calls import (
    calibrate, campaign, check_log, clusters, compare, explain, export, import_plan, load_plan, models,
    plan, profiles, run, scaling, simulate, stacks, validate)
from tpsim._errors import Error
from tpsim._options import VERSION
from tpsim._reports import *

__version__: str = VERSION

__all__ = [
    "Error", "calibrate", "campaign", "check_log", "clusters", "compare", "explain", "export",
    "import_plan", "load_plan", "models", "plan", "profiles", "run", "scaling", "simulate", "stacks",
    "validate"]
__all__ += _reports.__all__
