"""The command line: parses words, calls one service, shows what came of it. It decides nothing."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.cli import awaiting as awaiting
    from odf_node.cli import explaining as explaining
    from odf_node.cli import failures as failures
    from odf_node.cli import forecasts as forecasts
    from odf_node.cli import input_files as input_files
    from odf_node.cli import main as main
    from odf_node.cli import parsing as parsing
    from odf_node.cli import progress as progress
    from odf_node.cli import refusal_text as refusal_text
    from odf_node.cli import registry as registry
    from odf_node.cli import rows as rows
    from odf_node.cli import run as run
    from odf_node.cli import wide_letters as wide_letters
else:
    __getattr__ = late_modules(__name__)
