"""What can go wrong when an engine works, and whose fault it is.

========================  ======================================================  ============================
error                     meaning                                                 what to do
========================  ======================================================  ============================
InvalidQueryError         the query is wrong and fails every time                 the author corrects it
NotReproducibleError        the query runs, but others could not repeat its result  the author rewrites it
InvalidSourceError        a source file is unusable as a whole                    the publisher corrects it
LimitExceededError        the work was stopped at a limit                         give less work or more room
EngineFailureError        the engine broke or answered nonsense                   report it, keep the evidence
EngineMissingError        none of that name is installed, or it does not do this  install it, or reject the data
SandboxUnavailableError   this machine cannot isolate foreign queries             the operator repairs it
ClusterUnavailableError   the cluster that the settings name cannot be used       the operator repairs it
========================  ======================================================  ============================

Source: clauses ENGINE-8 and SANDBOX-1 in ``spec/extensions``.
"""

from collections.abc import Sequence
from typing import Self

from odf_protocol.errors import OdfError, UnavailableError, shown


class EngineError(OdfError):
    """Anything an engine reports instead of a result."""


class InvalidQueryError(EngineError):
    """The query cannot be run: syntax, unknown names, types, a forbidden statement, or a value it fails on.

    Attributes:
        message: What is wrong, in one paragraph.
        position: ``line:column`` in the query, if known.
    """

    def __init__(self, message: str, *, position: str | None = None) -> None:
        self.message = message
        self.position = position
        super().__init__(f"invalid query{'' if position is None else f' at {position}'}: {message}")


class NotReproducibleError(EngineError):
    """A query that runs, but whose result nobody could repeat with certainty.

    Attributes:
        expression: The part at fault, as the engine prints it.
        reason: Why it cannot be repeated.
        rewrite: What would pass instead.
    """

    def __init__(self, expression: str, reason: str, rewrite: str) -> None:
        self.expression = expression
        self.reason = reason
        self.rewrite = rewrite
        super().__init__(f"cannot be re-executed: {expression}: {reason}; instead: {rewrite}")


class InvalidSourceError(EngineError):
    """A source file is unusable as a whole; single bad rows go to quarantine instead.

    Attributes:
        source_name: What people call the file.
        message: What is wrong with it.
    """

    def __init__(self, source_name: str, message: str) -> None:
        self.source_name = source_name
        self.message = message
        super().__init__(f"unusable source {source_name}: {message}")


class LimitExceededError(EngineError):
    """The work was stopped because it reached a limit.

    Attributes:
        limit: Name of the field of ``Limits``.
        allowed: Its value.
        found: How far the work got, if known.
        where: Which of several pieces of work it was, if that is not plain.
    """

    def __init__(self, limit: str, *, allowed: float, found: float | None = None, where: str = "") -> None:
        self.limit = limit
        self.allowed = allowed
        self.found = found
        self.where = where
        place = f" at {where}" if where else ""
        reached = "" if found is None else f", found {found}"
        super().__init__(f"limit {limit} reached{place}: allowed {allowed}{reached}")


class EngineFailureError(EngineError):
    """The engine ended, or its answer or its output breaks the contract.

    Attributes:
        message: What happened.
        log: Last lines that the engine wrote, for the operator; untrusted text.
    """

    def __init__(self, message: str, *, log: str = "") -> None:
        self.message = message
        self.log = log
        super().__init__(f"engine failure: {message}")


class UnusableEngineError(EngineError):
    """An engine of another package is installed and cannot be loaded.

    Attributes:
        engine: Its name.
        reason: What loading it raised.
    """

    def __init__(self, engine: str, package: str, reason: str) -> None:
        self.engine, self.reason = engine, reason
        super().__init__(
            f"engine {engine} of the package {package} cannot be loaded: {reason}; install it again, or remove it"
        )


class EngineMissingError(EngineError):
    """No engine of that name is installed here, or the one that is does not offer what is asked.

    Attributes:
        engine: The name asked for.
        installed: Names of those that are there, or of those that offer it.
        purpose: The step that it was asked for, where not every engine does.
        capability: What was asked for, empty for the engine itself.
        remedy: The command that installs it, empty where none is known.
        cause: Why it was asked for, where nobody named it.
    """

    def __init__(
        self,
        engine: str,
        installed: Sequence[str] = (),
        *,
        purpose: str = "",
        capability: str = "",
        remedy: str = "",
        cause: str = "",
    ) -> None:
        self.engine = engine
        self.installed = tuple(installed)
        self.purpose = purpose
        self.capability = capability
        self.remedy = remedy
        self.cause = cause
        there = ", ".join(self.installed) or "none"
        use = f"installed for {purpose}" if purpose else "installed"
        fix = f"; {remedy} brings it" if remedy else ""
        if purpose and not remedy:
            fix = "; write one of these, and the query in its dialect (add --as-spark translates some)"
        lack = (
            f"does not offer {capability} (offered by: {there})"
            if capability
            else f"is not installed ({use}: {there}){fix}"
        )
        super().__init__(f"{f'{cause}; ' if cause else ''}engine {shown(engine)!r} {lack}")

    def because(self, cause: str) -> Self:
        """Give it with why the engine is asked for."""
        reported = {"purpose": self.purpose, "capability": self.capability, "remedy": self.remedy}
        return type(self)(self.engine, self.installed, **reported, cause=cause)


class SandboxUnavailableError(EngineError):
    """This machine cannot isolate a foreign query, so none is run.

    Attributes:
        reason: What is missing, and how to get it.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no sandbox, so no foreign query is run: {reason}")


class ClusterUnavailableError(EngineError, UnavailableError):
    """The cluster that the operator's settings name cannot be used; nothing was computed, here or there.

    Attributes:
        master: Its address.
        reason: What is wrong, and how to fix it.
    """

    def __init__(self, master: str, reason: str) -> None:
        self.master = master
        self.reason = reason
        super().__init__(f"the cluster {shown(master)} cannot be used: {reason}")
