"""Contracts on what derivatives read, as files of the Open Data Contract Standard: ``spec/plug-ins/contracts.md``."""
