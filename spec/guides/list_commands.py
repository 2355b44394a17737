"""Write ``commands.md``: all commands of this wheel with their lines and examples, made of their modules.

``python spec/guides/list_commands.py`` writes it anew; ``tests/unit/test_readme.py`` compares.
"""

from pathlib import Path
from typing import Final

from odf_node.cli import registry

PAGE: Final = Path(__file__).with_name("commands.md")
_HEAD: Final = """\
# Commands

Made of the modules of the commands by `spec/guides/list_commands.py`. `odf-node help COMMAND` explains every option.
In the examples, `sales` and `totals` are datasets and `peer.example` is another node.
"""


def format_page() -> str:
    """Write a part for each topic: a table of its commands, and their examples."""
    parts = [_HEAD]
    for topic, commands in registry.list_commands().items():
        rows = "".join(f"| `{each.name}` | {each.line} |\n" for each in commands)
        examples = "".join(f"odf-node {line}\n" for each in commands for line in each.examples)
        title = f"{topic[0].upper()}{topic[1:]}"
        parts.append(f"## {title}\n\n| command | does |\n|---|---|\n{rows}\n```sh\n{examples}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(format_page())
