"""Clause SINK-3: the daemon looks where there may be news, and where something waits for its time."""

from odf_node.daemon.repeated_look import RepeatedLook


class Look(RepeatedLook):
    def __init__(self) -> None:
        super().__init__("look", 0.0, lambda: self.state)
        self.state, self.waits, self.looks, self.fails = 1, False, 0, False

    def look(self) -> bool:
        self.looks += 1
        if self.fails:
            raise OSError
        return self.waits


def looks_after(look: Look) -> int:
    before = look.looks
    for _ in range(3):
        try:
            look.look_at_news()
        except OSError:
            continue
    return look.looks - before


def test_without_news_nobody_looks_again() -> None:
    look = Look()
    assert looks_after(look) == 1
    assert looks_after(look) == 0
    look.state = 2
    assert looks_after(look) == 1


def test_what_waits_or_failed_is_looked_at_without_news() -> None:
    look = Look()
    look.waits = True
    assert looks_after(look) == 3
    look.waits, look.fails = False, True
    assert looks_after(look) == 3
    look.fails = False
    assert looks_after(look) == 1


def test_what_happens_during_a_look_is_looked_at_next() -> None:
    class Late(Look):
        def look(self) -> bool:
            self.state = min(self.state + 1, 3)
            return super().look()

    assert looks_after(Late()) == 3
