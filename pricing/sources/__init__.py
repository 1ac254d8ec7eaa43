"""Live price sources behind one interface, and the importers of price files.

To add a source, write `pricing/sources/<name>.py` with a `Source` and add it to `SOURCES`; a contract test runs it.
"""

from pricing.sources.azure import AZURE
from pricing.sources.base import Fetched, Read, Source
from pricing.sources.gpuhunt_catalog import GPUHUNT

SOURCES = (AZURE, GPUHUNT)
"""All live sources."""

__all__ = ["SOURCES", "Fetched", "Read", "Source"]
