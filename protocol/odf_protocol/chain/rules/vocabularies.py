"""Names of the system columns.

Source: clauses CHAIN-48 to CHAIN-49 of ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import SetVocab
from odf_protocol.vocabulary import Vocabulary


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


RULES = (_vocabulary_names_four_columns, _vocabulary_precedes_the_schema)
