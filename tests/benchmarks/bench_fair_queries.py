"""How long a small query over Flight SQL waits beside costly ones: ``bench_fair_queries.py [COSTLY]``.

Costly ones come from the same address as the small one, then a small one shows a token, which makes it another caller.
Goals: 10 s beside those of its own address, 2 s beside those of others; on a quiet machine.
"""

import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow.flight as flight

from odf_flight.messages import encode_message
from support.flight_node import serving_flight
from support.secretive_node import FRIEND_TOKEN, SecretiveNode

COSTLY = 20
COSTLY_S = 40.0
SETTLE_S = 15.0  # by then each of twenty has had its short turn
GOALS_S = {"of another": 2.0, "of the same address": 10.0}
SQL = "SELECT sum(a.value * b.value) FROM range(1000000) a CROSS JOIN range(1000000) b"


def ask(url: str, sql: str, token: str | None, timeout_s: float) -> None:
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    options = flight.FlightCallOptions(timeout=timeout_s, headers=headers)
    wanted = flight.FlightDescriptor.for_command(encode_message("CommandStatementQuery", query=sql))
    with flight.connect(url) as client:
        info = client.get_flight_info(wanted, options)
        client.do_get(info.endpoints[0].ticket, options).read_all()


def take_s(url: str, token: str | None) -> float:
    began = time.perf_counter()
    ask(url, "SELECT count(*) AS n FROM shown.data", token, 60)
    return time.perf_counter() - began


def ask_costly(url: str) -> None:
    with suppress(flight.FlightError):
        ask(url, SQL, None, COSTLY_S)


def main(costly: int) -> int:
    good = True
    with tempfile.TemporaryDirectory() as folder:
        made = SecretiveNode.create(Path(folder))
        with serving_flight(made) as served:
            print(f"alone:                          {take_s(served.url, FRIEND_TOKEN):5.2f} s")
            threads = [threading.Thread(target=ask_costly, args=(served.url,)) for _ in range(costly)]
            for thread in threads:
                thread.start()
            at_once_s = take_s(served.url, None)
            print(f"behind {costly} that came with it:      {at_once_s:5.2f} s (goal 10)")
            time.sleep(SETTLE_S)
            for who, token in (("of another", FRIEND_TOKEN), ("of the same address", None)):
                found_s = take_s(served.url, token)
                good &= found_s <= GOALS_S[who]
                print(f"beside them, {who}: {found_s:5.2f} s (goal {GOALS_S[who]:.0f})")
            for thread in threads:
                thread.join()
        made.node.close()
    return 0 if good and at_once_s <= GOALS_S["of the same address"] else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else COSTLY))
