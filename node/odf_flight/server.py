"""The server: which call of Flight does what.

Every error that leaves is one line of one of Flight's own classes: of any other, the library sends the traceback.

Source: https://arrow.apache.org/docs/format/FlightSql.html; clauses FLIGHT-1 to FLIGHT-11 in
``spec/plug-ins/flight-sql.md``.
"""

import logging
from collections.abc import Callable, Iterator
from functools import wraps
from http import HTTPStatus
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from odf_engines.errors import EngineMissingError, InvalidQueryError, LimitExceededError
from odf_engines.host.tables import read_rows
from odf_flight.answers import Answers, KeptResult, PreparedStatements
from odf_flight.callers import MIDDLEWARE, Gate, Handshake
from odf_flight.catalog import LISTS, schema_of_list
from odf_flight.messages import Decoded, decode_message, encode_message
from odf_flight.query_service import AskerGoneError, FlightQueries
from odf_node.composition import Node
from odf_node.http.access_log import write_line
from odf_node.http.callers import Caller
from odf_node.http.problems import problem_of
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError

MESSAGE_BYTES: Final = 4 << 20  # guess: clients take messages of 16 MiB, and others of 4
_MAX_CHARACTERS: Final = 2_000  # guess: of an error
_CLOSED: Final = b"\x08\x01"
"""Flight's CloseSessionResult that says CLOSED. Source: Flight.proto."""

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _explained(handle: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Let no error out but those that Flight sends in one line."""

    @wraps(handle)
    def run(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        try:
            return handle(*given, **named)
        except flight.FlightError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge
            raise _explain(error) from None

    return run


def _explain(error: Exception) -> Exception:
    """Make Flight's error of ours: in the words of the same failure over HTTP, but for what is wrong with a query."""
    made: Exception
    if isinstance(error, AskerGoneError):
        made = flight.FlightCancelledError("no client waits for the answer")
    elif isinstance(error, InvalidQueryError | LimitExceededError | EngineMissingError):
        made = flight.FlightServerError(_one_line(str(error)))
    elif isinstance(error, OdfError):
        problem = problem_of(error)
        kinds = {
            HTTPStatus.SERVICE_UNAVAILABLE: flight.FlightUnavailableError,
            HTTPStatus.INSUFFICIENT_STORAGE: flight.FlightUnavailableError,
            HTTPStatus.INTERNAL_SERVER_ERROR: flight.FlightInternalError,
        }
        made = kinds.get(HTTPStatus(problem.status), flight.FlightServerError)(_one_line(problem.detail))
        if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            write_line("error", error=type(error).__name__, text=str(error))
    else:
        write_line("error", level=logging.ERROR, error=type(error).__name__, text=str(error))
        made = flight.FlightInternalError("this node could not do it: its log has the reason")
    return made


def _one_line(text: str) -> str:
    line = " ".join(text.split())[:_MAX_CHARACTERS]
    # It may quote rows of others, and clients show it on terminals.
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


class FlightSqlServer(flight.FlightServerBase):  # type: ignore[misc]
    """Answers Flight SQL over the datasets of a node; its methods run on the library's threads.

    ``get_schema`` is the library's, which rejects: of an error of that call it would send a traceback with our paths.
    """

    def __init__(
        self,
        location: str,
        node: Node,
        gate: Gate,
        query_service: FlightQueries,
        answers: Answers,
    ) -> None:
        # Before the library's, which takes calls from then on.
        self._node = node
        self._gate = gate
        self._query_service = query_service
        self._answers = answers
        self._statements = PreparedStatements()
        super().__init__(location, auth_handler=Handshake(), middleware={MIDDLEWARE: gate})

    @_explained
    def get_flight_info(self, context: Any, descriptor: Any) -> flight.FlightInfo:
        """Answer a question, or say where a list is: both here."""
        asked, caller = _command_of(descriptor), self._gate.admit(context)
        if asked.name in LISTS:
            return _info(schema_of_list(asked.name, asked.fields), descriptor, descriptor.command)
        ticket, kept = self._ask(context, caller, self._sql_of(asked, caller))
        packed = encode_message("TicketStatementQuery", statement_handle=ticket)
        return _info(kept.schema, descriptor, packed, kept.rows)

    @_explained
    def do_get(self, context: Any, ticket: Any) -> flight.FlightDataStream:
        """Send the rows of an answer, or make a list."""
        asked, caller = decode_message(ticket.ticket), self._gate.admit(context)
        if asked.name in LISTS:
            return flight.RecordBatchStream(LISTS[asked.name][1](self._node, caller.reads, asked.fields))
        if asked.name != "TicketStatementQuery":
            raise UnsupportedError("ticket", found=asked.name)
        kept = self._answers.find(asked.fields.statement_handle, caller.peer)
        if kept is None:
            raise MalformedError("ticket", expected="one that was given to you within the last minute")
        return flight.GeneratorStream(kept.schema, self._iter_batches(caller, pa.OSFile(str(kept.path))))

    @_explained
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Prepare a statement, or close one."""
        caller = self._gate.admit(context)
        if action.type == "CloseSession":
            return iter([_CLOSED])
        asked = decode_message(action.body.to_pybytes())
        if asked.name != f"Action{action.type}Request":
            raise UnsupportedError("action of Flight SQL, or one with another message")
        if asked.name == "ActionClosePreparedStatementRequest":
            self._statements.drop(asked.fields.prepared_statement_handle, caller.peer)
            return iter(())
        if asked.name != "ActionCreatePreparedStatementRequest":
            raise UnsupportedError("action of Flight SQL")
        sql = _without_transaction(asked).query
        schema = self._plan(context, caller, sql)
        handle = self._statements.put(caller.peer, sql)
        made = encode_message(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=handle,
            dataset_schema=schema.serialize().to_pybytes(),
        )
        return iter([made])

    @_explained
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """List what ``do_action`` does."""
        self._gate.admit(context)
        return [
            ("CreatePreparedStatement", "prepare a question without parameters"),
            ("ClosePreparedStatement", "forget it"),
            ("CloseSession", "nothing: there are no sessions"),
        ]

    @_explained
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> NoReturn:  # noqa: ARG002
        """Reject: nothing is written, and queries have no parameters."""
        self._gate.admit(context)
        asked = _command_of(descriptor)
        if asked.name == "CommandPreparedStatementQuery":
            raise UnsupportedError("parameters of prepared statements: write values into the question")
        raise UnsupportedError(f"{asked.name}: datasets are not written with SQL")

    @_explained
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._gate.admit(context)
        raise UnsupportedError("DoExchange: Flight SQL does not use it")

    @_explained
    def list_flights(self, context: Any, criteria: Any) -> NoReturn:  # noqa: ARG002 - the library's signature
        """Refuse."""
        self._gate.admit(context)
        raise UnsupportedError("ListFlights: ask for tables")

    def _iter_batches(self, caller: Caller, opened: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        try:
            with opened:
                for batch in read_rows(opened)[1]:
                    self._gate.note_sent(caller, batch.nbytes)
                    yield from _cut(batch)
        except flight.FlightError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge
            raise _explain(error) from None

    def _ask(self, context: Any, caller: Caller, sql: str, max_rows: int | None = None) -> tuple[bytes, KeptResult]:
        engine = context.get_middleware(MIDDLEWARE).engine
        return self._query_service.answer(caller, sql, engine=engine, is_gone=context.is_cancelled, max_rows=max_rows)

    def _plan(self, context: Any, caller: Caller, sql: str) -> pa.Schema:
        """Return the columns that the answer to a question has."""
        return self._ask(context, caller, sql, max_rows=0)[1].schema

    def _sql_of(self, asked: Decoded, caller: Caller) -> str:
        if asked.name == "CommandStatementQuery":
            text: str = _without_transaction(asked).query
            return text
        if asked.name != "CommandPreparedStatementQuery":
            raise UnsupportedError("command of Flight SQL", found=asked.name)
        found = self._statements.find(asked.fields.prepared_statement_handle, caller.peer)
        if found is None:
            raise MalformedError("handle of a prepared statement", expected="one that was given to you")
        return found


def _command_of(descriptor: Any) -> Decoded:
    if descriptor.descriptor_type != flight.DescriptorType.CMD or descriptor.command is None:
        raise MalformedError("descriptor", expected="a command of Flight SQL", found="another")
    return decode_message(descriptor.command)


def _without_transaction(asked: Decoded) -> Any:
    if asked.fields.HasField("transaction_id"):
        raise UnsupportedError("transaction: a question changes nothing")
    return asked.fields


def _info(schema: pa.Schema, descriptor: Any, ticket: bytes, rows: int = -1) -> flight.FlightInfo:
    # An endpoint without a place means the server that was asked.
    return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], rows, -1)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halve a batch until its parts are small enough, or have one row."""
    if batch.nbytes <= MESSAGE_BYTES or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half))
    yield from _cut(batch.slice(half))
