"""Columns that a merge strategy names, looked for among those that a manifest declares.

Source: spec/ingest.md ING-18.
"""

import pyarrow as pa

from odf_engines.ingest.columns import InvalidColumnsError, columns_of
from odf_protocol.events import MergeStrategy
from odf_protocol.manifest.errors import At
from odf_protocol.vocabulary import Vocabulary

_COLUMN_LISTS = {"primary_key": "primaryKey", "compare_columns": "compareColumns"}


def check_merge_columns(columns: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary, at: At) -> None:
    """Refuse a source whose rows lack a column that its merge strategy names, or cannot be rows of a dataset.

    Args:
        columns: Of the rows that are merged.
        merge: How.
        vocabulary: Names of the dataset's system columns.
        at: Where the source stands in its manifest.

    Raises:
        SnapshotError: What is wrong first, with its place.
    """
    names = [*columns.names, *({vocabulary.event_time} - set(columns.names))]
    for attribute, option in _COLUMN_LISTS.items():
        for index, name in enumerate(getattr(merge, attribute, None) or ()):
            if name not in names:
                (at / "merge" / option / index).reject(f"a column of the source ({', '.join(names)})", name, names)
    try:
        columns_of(columns, merge, vocabulary, None)
    except InvalidColumnsError as error:
        (at / "read").reject("columns that the dataset can have", str(error))
