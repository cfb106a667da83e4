"""Captures one training step of a PyTorch program without a GPU and without memory."""
from .guard import CaptureError
from .session import Session

__all__ = ["CaptureError", "Session"]
