"""Where things stand inside the sandbox of an added engine.

Source: clauses ADDED-6 and ADDED-15 in ``spec/extensions/added-engines.md``; ODF "Engine contract".
"""

PROGRAM = "/opt/engine/program"
"""An engine that is one file."""

INPUTS = "/opt/engine/in"
OUTPUTS = "/opt/engine/out"

OWN_PLACES = frozenset({"exchange", "runtime", "scratch"})
"""Folders at the top that are the node's; an archive that has one is refused."""

MOUNT_POINTS = ("opt/engine/in/", "opt/engine/out/", "etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf")
"""What has to be in a root folder, since nothing can be made in it later; those that end with a slash are folders."""
