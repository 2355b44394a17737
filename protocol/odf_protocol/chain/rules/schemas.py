"""Schemas of the data, names of the system columns, and how often a dataset may be defined anew.

Source: clauses CHAIN-42 to CHAIN-49 and CHAIN-53 of ``spec/chain.md``.
"""

from collections import Counter

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import DEFINITIONS, ChainState
from odf_protocol.events import Event, SetDataSchema, SetVocab
from odf_protocol.events.equality import means_the_same
from odf_protocol.schema_compat import find_incompatibility
from odf_protocol.vocabulary import Vocabulary, find_system_mismatch


@event_rule("CHAIN-42", SetDataSchema, odf=None)
def _schema_says_something(_state: ChainState, event: SetDataSchema) -> Breach | None:
    if (event.schema is None) is (event.raw_arrow_schema is None):
        return Breach("schema or raw_arrow_schema", "neither" if event.schema is None else "both")
    return None


@event_rule("CHAIN-43", SetDataSchema, odf=None, binds_foreign=False)
def _schema_is_in_odf_form(_state: ChainState, event: SetDataSchema) -> Breach | None:
    if event.raw_arrow_schema is not None:
        return Breach("a schema of ODF types", "a raw Arrow schema")
    return None


@event_rule("CHAIN-44", SetDataSchema, odf=None, binds_foreign=False)
def _column_names_are_distinct(_state: ChainState, event: SetDataSchema) -> Breach | None:
    names = Counter(column.name for column in event.schema.fields) if event.schema else Counter()
    if repeated := [name for name, count in names.items() if count > 1]:
        return Breach("every column once", ", ".join(repeated))
    return None


# The reference implementation warns, too.
@event_rule("CHAIN-45", SetDataSchema, odf="warning only", binds_foreign=False)
def _system_columns_are_there(state: ChainState, event: SetDataSchema) -> Breach | None:
    mismatch = None if event.schema is None else find_system_mismatch(event.schema, state.vocabulary)
    return None if mismatch is None else Breach("the four system columns", mismatch)


@event_rule("CHAIN-46", SetDataSchema, odf="NoOpEvent")
def _schema_changes_something(state: ChainState, event: SetDataSchema) -> Breach | None:
    if event.schema is not None and means_the_same(event.schema, state.schema):
        return Breach("another schema", "the same")
    return None


# A schema in the old Arrow form is not compared: nobody writes it any more, and reading it needs Arrow.
@event_rule("CHAIN-47", SetDataSchema, odf="InvalidEvent: incompatible schema")
def _schema_evolves_compatibly(state: ChainState, event: SetDataSchema) -> Breach | None:
    if event.schema is None or state.schema is None:
        return None
    incompatibility = find_incompatibility(state.schema, event.schema)
    return None if incompatibility is None else Breach("a schema that old rows and readers fit", incompatibility)


@event_rule("CHAIN-48", SetVocab, odf=None, binds_foreign=False)
def _vocabulary_names_four_columns(_state: ChainState, event: SetVocab) -> Breach | None:
    columns = Vocabulary.of(event).columns
    if len(set(columns)) < len(columns) or "" in columns:
        return Breach("four different names", ", ".join(map(repr, columns)))
    return None


# Afterwards the schema would name columns that the vocabulary does not.
@event_rule("CHAIN-49", SetVocab, odf=None, binds_foreign=False)
def _vocabulary_precedes_the_schema(state: ChainState, _event: SetVocab) -> Breach | None:
    if state.has_schema:
        return Breach("SetVocab before SetDataSchema", "after it")
    return None


MAX_DEFINITIONS = 10_000  # guess: one a day for 27 years


# Binds everybody: what is in force follows from all of them, and is asked for by every reader and every step over it.
@event_rule("CHAIN-53", *DEFINITIONS, odf=None)
def _definitions_are_few(state: ChainState, _event: Event) -> Breach | None:
    if state.definitions >= MAX_DEFINITIONS:
        return Breach(f"at most {MAX_DEFINITIONS} definitions over the life of the dataset", "one more")
    return None
