"""Asking questions in SQL: one, a script of several, or a shell on a terminal (QUERY-9, QUERY-10)."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.cli.asking import shell as shell
else:
    __getattr__ = late_modules(__name__)
