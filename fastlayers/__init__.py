"""Fast CPU inference for trained networks."""

from . import kernels
from .threads import get_num_threads, set_num_threads

__version__ = "0.1.0"
__all__ = ["__version__", "get_num_threads", "kernels", "set_num_threads"]
