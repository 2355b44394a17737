"""What a running node takes over from a new configuration, and what waits for a restart (DAEMON-5)."""

from dataclasses import dataclass, replace
from typing import Any

from odf_node.configuration.declaration import LISTS, SECTIONS, Configuration, rule_of, settings_of


@dataclass(frozen=True, slots=True)
class Reload:
    """The outcome: what holds from now on, which settings changed, and which need a restart."""

    configuration: Configuration
    changed: tuple[str, ...]
    need_restart: tuple[str, ...]


def plan_reload(running: Configuration, wanted: Configuration) -> Reload:
    """Decide what changes: what cannot change while the node runs stays as it is, and is named.

    Source: DAEMON-5. Whether the port is encrypted at all cannot change; the files can.
    """
    changed: list[str] = []
    need_restart: list[str] = []
    sections: dict[str, Any] = {}
    tls_turns = (running.tls.certificate is None) != (wanted.tls.certificate is None)
    for section in SECTIONS:
        old, new = getattr(running, section), getattr(wanted, section)
        taken: dict[str, Any] = {}
        for name, declared in settings_of(section).items():
            before, after = getattr(old, name), getattr(new, name)
            if before == after:
                continue
            if rule_of(declared).reloads and not (section == "tls" and tls_turns):
                changed.append(f"{section}.{name}")
                taken[name] = after
            else:
                need_restart.append(f"{section}.{name}")
        sections[section] = replace(old, **taken)
    for section in LISTS:
        sections[section] = getattr(wanted, section)
        if sections[section] != getattr(running, section):
            changed.append(section)
    return Reload(Configuration(**sections), tuple(changed), tuple(need_restart))
