"""odf-node: the I/O shell around the Open Data Fabric protocol and its engines."""

__version__ = "0.1.0"
