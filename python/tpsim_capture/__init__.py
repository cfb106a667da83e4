"""Captures one training step of a PyTorch program without a GPU and without memory."""
import contextlib

from .guard import CaptureError
from .session import Session

__all__ = ["CaptureError", "Session", "step"]


@contextlib.contextmanager
def step(out="step.json", **options):
    """Runs the body, from the model's creation to its second update, and writes the captured step to `out`.

    Import this package before torch. Options are those of Session: gpu, world, rank, gpus_per_node, step.
    """
    session = Session(**options)
    session.install()
    with session.running():
        yield session
    session.save(out)
