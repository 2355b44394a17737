"""The daemon's configuration: where it comes from, and taking a new one while the node runs (DAEMON-5)."""

import logging
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odf_node.composition import Node
from odf_node.configuration import load_configuration
from odf_node.configuration.declaration import LISTS, SECTIONS, Configuration, rule_of, settings_of
from odf_node.daemon.supervisor import notify_supervisor, reloading_states
from odf_node.errors import UsageError
from odf_node.http.access_log import write_line
from odf_node.http.encryption import load_certificate
from odf_node.http.served_node import Live
from odf_node.ports.sources import Commands


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the configuration is read, and what the command line says instead of it (by section and name)."""

    path: Path | None
    environment: Mapping[str, str]
    options: Mapping[str, Mapping[str, Any]]

    def load(self) -> Configuration:
        """Read it.

        Raises:
            ConfigurationError: It cannot be used.
        """
        loaded = load_configuration(self.path, self.environment)
        sections = {name: replace(getattr(loaded, name), **values) for name, values in self.options.items()}
        return replace(loaded, **sections)


def reload(live: Live, setting: Setting, encrypted: Sequence[ssl.SSLContext]) -> None:
    """Take over what can change; a configuration that cannot be used changes nothing, and the log says why.

    The certificate is read again in any case, for every port: it is renewed under the same name.
    """
    notify_supervisor(os.environ, *reloading_states())
    try:
        plan = plan_reload(live.configuration, setting.load())
        files = plan.configuration.tls
        if encrypted and files.certificate is not None and files.key is not None:
            load_certificate(encrypted, files.certificate, files.key)
    except UsageError as error:
        write_line("reload-failed", level=logging.ERROR, text=str(error))
    else:
        live.configuration = plan.configuration
        write_line("reloaded", changed=plan.changed, need_restart=plan.need_restart)
    notify_supervisor(os.environ, "READY=1")


def take_over(node: Node, configuration: Configuration) -> None:
    """Let a node of the daemon keep to a configuration in what begins from now on."""
    node.limit_transfers(configuration.limits.fetch_bytes_per_second, configuration.limits.parallel_transfers)
    node.refused_bytes = configuration.storage.refused_bytes
    node.settings = configuration
    node.engine_roles = configuration.engines
    node.objects.rows.limit_bytes = configuration.storage.rows_bytes
    node.commands = Commands(configuration.ingest.commands)


def open_beside(node: Node, live: Live) -> Node:
    """Open another node on the home of the daemon's, for work beside it; it keeps to the settings in force."""
    beside = Node(node.home.folder, node.clock)
    beside.rate = node.rate  # all that the daemon fetches is bounded together (DAEMON-11)
    beside.warm = node.warm
    take_over(beside, live.configuration)
    return beside


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
    tls_semaphore = (running.tls.certificate is None) != (wanted.tls.certificate is None)
    for section in SECTIONS:
        old, new = getattr(running, section), getattr(wanted, section)
        taken: dict[str, Any] = {}
        for name, declared in settings_of(section).items():
            before, after = getattr(old, name), getattr(new, name)
            if before == after:
                continue
            if rule_of(declared).reloads and not (section == "tls" and tls_semaphore):
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
