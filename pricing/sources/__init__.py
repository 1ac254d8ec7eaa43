"""Live price sources: siblings behind one interface, each listed here.

To add one, write `pricing/sources/<name>.py` with a `Source` and add it to `SOURCES`; the contract test runs it.
"""

from pricing.sources.azure import AZURE
from pricing.sources.base import Fetched, Read, Source
from pricing.sources.gpuhunt_catalog import GPUHUNT

SOURCES = (AZURE, GPUHUNT)
"""All live sources."""

__all__ = ["SOURCES", "Fetched", "Read", "Source"]
