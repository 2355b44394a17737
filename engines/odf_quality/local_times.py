"""Times of a place, made times in UTC: what its clocks show twice, or never, is bad unless a rule says what is meant.

Zones are those of the machine (IANA's), or of the package ``tzdata``.

Source: clause CONV-10 in ``spec/plug-ins/quality.md``; IANA Time Zone Database; PEP 495.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from odf_engines.validation.contract import ParameterError

AMBIGUOUS, MISSING = "ambiguous-time", "missing-time"
"""Codes of times that the clocks of a place show twice, and never."""

REJECT, EARLIER, LATER = "Reject", "Earlier", "Later"
_RULES: Final = (REJECT, EARLIER, LATER)


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """A zone, and what is meant where its clocks are put back or forward."""

    zone: ZoneInfo
    ambiguous: str = REJECT
    missing: str = REJECT

    @property
    def faults(self) -> dict[str, str]:
        """Messages by code."""
        return {
            AMBIGUOUS: f"clocks of {self.zone.key} show this time twice; 'ambiguous: Earlier' or 'Later' says which",
            MISSING: f"clocks of {self.zone.key} never show this time; 'missing: Earlier' or 'Later' moves it",
        }

    def to_utc(self, moment: datetime) -> datetime | str:
        """Give the moment in UTC of what clocks show, or the code of why there is none.

        Raises:
            OverflowError: It is outside of the years 1 to 9999.
        """
        before, after = (self.zone.utcoffset(moment.replace(fold=fold)) for fold in (0, 1))
        assert before is not None
        assert after is not None
        plain = moment.replace(tzinfo=UTC)
        if before == after:
            return plain - before
        code, rule = (AMBIGUOUS, self.ambiguous) if before > after else (MISSING, self.missing)
        if rule == REJECT:
            return code
        # The larger offset gives the earlier moment, whichever of both holds first.
        return plain - (max(before, after) if rule == EARLIER else min(before, after))


def read_local_times(zone: str, ambiguous: str, missing: str) -> LocalTimes:
    """Read a declaration.

    Raises:
        ParameterError: There is no such zone or rule.
    """
    for name, rule in (("ambiguous", ambiguous), ("missing", missing)):
        if rule not in _RULES:
            raise ParameterError(name, expected=", ".join(_RULES), found=rule, known=_RULES)
    try:
        # Names without a place, such as that of this machine's own zone, mean something else elsewhere; the two
        # folders have each zone once more, one with leap seconds.
        is_place = "/" in zone and not zone.startswith(("posix/", "right/"))
        found = ZoneInfo(zone) if is_place or zone == "UTC" else None
    except (KeyError, OSError, ValueError):
        found = None
    if found is None:
        known = sorted(each for each in available_timezones() if "/" in each)
        lacking = "" if known else "; this machine knows none, install the package tzdata"
        raise ParameterError("zone", expected=f"a zone such as Europe/Berlin{lacking}", found=zone, known=known)
    return LocalTimes(found, ambiguous, missing)
