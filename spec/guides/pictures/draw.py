"""Draws the pictures of ``derivatives.md`` from the tables that stand in it; run it after a change of them.

python spec/guides/pictures/draw.py
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
GUIDE = FOLDER.parent / "derivatives.md"

LEFT, RIGHT, TOP, STEP, WIDTH = 70, 660, 46, 104, 960
FIRST_MINUTE, LAST_MINUTE = 9 * 60 - 10, 11 * 60 + 10
STYLE = """
  text { font: 13px sans-serif; fill: #333 } .small { font-size: 11px; fill: #666 }
  .out { font: 12px monospace } .new { fill: #2468b4 } .changed { fill: #d9822b } .late { fill: #c62828 }
  .axis { stroke: #888 } .mark { stroke: #333; stroke-dasharray: 4 3 } .open { fill: #e8eef5 } .given { fill: #cfe3cf }
"""
CLASSES = (
    ("looks at one row of one input at a time?", "map", "each row, whenever it comes"),
    ("window(event_time, …) in its GROUP BY?", "final", "each window once, when a watermark closes it"),
    ("session_window(event_time, …) in its GROUP BY?", "final", "each session once, when a watermark closes it"),
    ("JOIN … FOR SYSTEM_TIME AS OF?", "final", "each row once the reference can say no other"),
    ("anything else", "maintained", "after every step the answer over all rows"),
)


@dataclass(frozen=True)
class Event:
    """A row of an input or of an output, or a watermark."""

    step: int
    op: str
    time: str
    values: tuple[str, ...]

    @property
    def minute(self) -> int:
        """Of the day."""
        hour, minute = self.time.split(":")
        return 60 * int(hour) + int(minute)


def read_table(text: str) -> tuple[tuple[str, ...], list[Event]]:
    """Read the first table of a text: names of its columns behind ``op``, and its rows."""
    lines = [
        line
        for line in text[text.index("| step |") :].split("\n\n", maxsplit=1)[0].splitlines()
        if line.startswith("|")
    ]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    events = [Event(int(step), op, time, tuple(values)) for step, op, time, *values in rows]
    return tuple(head[2:]), events


def read_input(guide: str, name: str) -> tuple[tuple[str, ...], list[Event]]:
    """Read what comes in."""
    return read_table(guide[guide.index(f"`{name}`:\n") :])


@dataclass(frozen=True)
class Example:
    """A query of the guide, and what it says comes out."""

    query: str
    temporal_key: str | None
    picture: str
    columns: tuple[str, ...]
    rows: list[Event]
    late: tuple[int, ...]


def read_examples(guide: str) -> list[Example]:
    """Read every query of the guide with its table."""
    found = []
    for block in re.finditer(r"(?:```yaml\n(?P<yaml>[^`]*)```\n\n)?```sql\n(?P<sql>[^`]*)```", guide):
        rest = guide[block.end("sql") :]
        columns, rows = read_table(rest)
        late = re.search(r"Late rows by step: ([0-9, ]+)\.", rest)
        picture = re.search(r"pictures/([a-z-]+)\.svg", rest)
        key = re.search(r"primaryKey: \[(\w+)\]", block["yaml"] or "")
        assert late
        assert picture
        counts = tuple(int(count) for count in late[1].split(","))
        found.append(Example(block["sql"], key[1] if key else None, picture[1], columns, rows, counts))
    return found


def x_of(minute: int) -> int:
    """Where a time stands."""
    return LEFT + (minute - FIRST_MINUTE) * (RIGHT - LEFT) // (LAST_MINUTE - FIRST_MINUTE)


def known_before(events: list[Event], step: int) -> int:
    """The watermark before a step, in minutes; -1 for none."""
    return max((each.minute for each in events if each.op == "watermark" and each.step < step), default=-1)


@dataclass(frozen=True)
class Span:
    """A window or a session: minutes from and until, the step that brings its first row, and the one that gives it."""

    begin: int
    end: int
    first_step: int
    given_step: int


SPANS = {
    "windows": (Span(540, 600, 1, 2), Span(600, 660, 2, 3)),
    "sessions": (Span(550, 610, 1, 2), Span(620, 650, 2, 3)),
}


def is_late(picture: str, table: str, event: Event, known: int) -> bool:
    """Whether a row comes too late for what the picture shows."""
    if picture == "windows":
        return (event.minute // 60 + 1) * 60 <= known
    if picture == "sessions":
        return event.minute < known
    return picture == "as-of" and table == "rates" and event.minute <= known


def draw_example(guide: str, example: Example) -> str:
    """Draw what comes in over time, step by step, and what comes out."""
    tables = ["orders", "rates"] if "rates" in example.query else ["orders"]
    parts = [f'<text x="{LEFT}" y="20" class="small">event time</text>']
    for hour in (9, 10, 11):
        x = x_of(60 * hour)
        parts.append(f'<text x="{x}" y="36" text-anchor="middle" class="small">{hour:02}:00</text>')
        parts.append(f'<line x1="{x}" y1="40" x2="{x}" y2="{TOP + 3 * STEP}" class="axis" stroke-opacity="0.3"/>')
    parts.append(f'<text x="{RIGHT + 20}" y="36" class="small">what the step gives</text>')
    for step in (1, 2, 3):
        parts += draw_step(guide, example, tables, step)
    height = TOP + 3 * STEP + 10
    return svg(height, f"{example.picture}: what comes in by event time and step, and what comes out", parts)


def draw_step(guide: str, example: Example, tables: list[str], step: int) -> list[str]:
    """Draw one step."""
    top = TOP + (step - 1) * STEP
    parts = [f'<text x="8" y="{top + 22}">step {step}</text>']
    for span in (each for each in SPANS.get(example.picture, ()) if each.first_step <= step):
        shade = "given" if span.given_step <= step else "open"
        x, width = x_of(span.begin), x_of(span.end) - x_of(span.begin)
        parts.append(f'<rect x="{x}" y="{top + 6}" width="{width}" height="{STEP - 30}" rx="6" class="{shade}"/>')
    for place, table in enumerate(tables):
        _, events = read_input(guide, table)
        level = top + 34 + 34 * place
        parts.append(f'<line x1="{LEFT}" y1="{level}" x2="{RIGHT}" y2="{level}" class="axis"/>')
        if len(tables) > 1:
            parts.append(f'<text x="8" y="{level + 4}" class="small">{table}</text>')
        for event in (each for each in events if each.step == step):
            x = x_of(event.minute)
            if event.op == "watermark":
                parts.append(f'<line x1="{x}" y1="{level - 20}" x2="{x}" y2="{level + 10}" class="mark"/>')
                continue
            late = is_late(example.picture, table, event, known_before(events, step))
            kind = "late" if late else "new" if event.op == "+A" else "changed"
            if event.op == "-C":
                continue  # drawn with its other half
            old = [each.values for each in events if each.step == step and each.op == "-C"]
            label = event.values[1] if event.op == "+A" else f"{old[0][1]} → {event.values[1]}"
            parts.append(f'<circle cx="{x}" cy="{level}" r="6" class="{kind}"/>')
            parts.append(f'<text x="{x}" y="{level - 10}" text-anchor="middle" class="small">{label}</text>')
    shown = [each for each in example.rows if each.step == step]
    for line, event in enumerate(shown):
        text = f"{event.op} {event.time}  " + ", ".join(
            f"{name} {value}" for name, value in zip(example.columns[1:], event.values, strict=True)
        )
        parts.append(f'<text x="{RIGHT + 20}" y="{top + 20 + 17 * line}" class="out">{text}</text>')
    if not shown:
        parts.append(f'<text x="{RIGHT + 20}" y="{top + 20}" class="small">nothing</text>')
    if late_rows := example.late[step - 1]:
        below = top + 20 + 17 * max(len(shown), 1)
        words = "row is late" if late_rows == 1 else "rows are late"
        parts.append(f'<text x="{RIGHT + 20}" y="{below}" class="out late">{late_rows} {words}</text>')
    return parts


def draw_classes() -> str:
    """Draw how the class of a query is found."""
    parts = ['<text x="20" y="26">A query that gives the same bits wherever it runs …</text>']
    for place, (query_text, kind, promise) in enumerate(CLASSES):
        y = 44 + 54 * place
        parts += [
            f'<rect x="20" y="{y}" width="380" height="38" rx="6" class="open"/>',
            f'<text x="34" y="{y + 24}">{query_text}</text>',
            f'<line x1="400" y1="{y + 19}" x2="470" y2="{y + 19}" class="axis"/>',
            f'<text x="420" y="{y + 14}" class="small">{"yes" if place < len(CLASSES) - 1 else ""}</text>',
            f'<rect x="470" y="{y}" width="110" height="38" rx="6" class="given"/>',
            f'<text x="525" y="{y + 24}" text-anchor="middle">{kind}</text>',
            f'<text x="600" y="{y + 24}" class="small">{promise}</text>',
        ]
        if place < len(CLASSES) - 1:
            parts.append(f'<line x1="210" y1="{y + 38}" x2="210" y2="{y + 54}" class="axis"/>')
            parts.append(f'<text x="218" y="{y + 51}" class="small">no</text>')
    return svg(44 + 54 * len(CLASSES), "Which class a query falls into", parts)


def svg(height: int, title: str, parts: list[str]) -> str:
    """Put parts together; the ground is white, also where a page is dark."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n<title>{title}</title>\n'
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def draw_all(guide: str) -> dict[str, str]:
    """Draw every picture, by the name of its file."""
    pictures = {f"{each.picture}.svg": draw_example(guide, each) for each in read_examples(guide)}
    return {"classes.svg": draw_classes(), **pictures}


if __name__ == "__main__":
    for name, content in draw_all(GUIDE.read_text(encoding="utf-8")).items():
        (FOLDER / name).write_text(content, encoding="utf-8")
