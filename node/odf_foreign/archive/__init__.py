"""Engines as files that strangers pack: a program, the root folder of a container as a tar, or an image of one.

An archive is read twice. First without writing anything: every entry is checked and put into a *root tree*, the folder
as it will be when all layers lie on each other. So every path is one that this program made, and links lead nowhere
while files are written. Then the files of that tree are copied out, each once.

Source: clauses ADDED-11 to ADDED-17 in ``spec/plug-ins/foreign.md``; OCI image-spec 1.1, "layer" and "config".
"""

from odf_foreign.archive.root_folder import MAX_FILE_BYTES, Places, opened_archive
from odf_foreign.archive.taking import TakenEngine, take_engine

__all__ = ["MAX_FILE_BYTES", "Places", "TakenEngine", "opened_archive", "take_engine"]
