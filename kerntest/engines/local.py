"""The old name of the engine of this process, for as long as it is imported from here."""

from kerntest.engines.base import Engine as LocalEngine

__all__ = ["LocalEngine"]
