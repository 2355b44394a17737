"""How an Avro file, which says its columns itself, is to be read.

Source: clauses READ-4 and READ-6 in ``spec/plug-ins/quality.md``; ING-24 in ``spec/plug-ins/drafts.md``.
"""

from functools import partial
from typing import Any, BinaryIO

from odf_engines.sampling.plans import ReadPlan, texts_of
from odf_quality.readers.avro import Avro, open_blocks

_AVRO_TYPES = {
    "boolean": "Bool",
    "int": "Int64",
    "long": "Int64",
    "float": "Float64",
    "double": "Float64",
    "date": "Date",
    "timestamp-millis": "Timestamp",
    "timestamp-micros": "Timestamp",
}


def plan_avro(file: BinaryIO) -> ReadPlan:
    """Take the fields of the schema.

    Raises:
        BrokenFileError: It is no Avro file of records.
    """
    types = {str(each["name"]): _avro_type(each["type"]) for each in open_blocks(file).writer_schema["fields"]}
    reader = Avro(Avro.Parameters(), tuple(types))
    return ReadPlan(names=tuple(types), iter_texts=partial(texts_of, reader), types=types)


def _avro_type(declared: Any) -> str:
    if isinstance(declared, list):
        values = [each for each in declared if each != "null"]
        return _avro_type(values[0]) if len(values) == 1 else "String"
    if isinstance(declared, dict):
        if declared.get("logicalType") == "decimal" and isinstance(scale := declared.get("scale", 0), int):
            precision = declared.get("precision")
            return f"Decimal({scale})" if isinstance(precision, int) and 0 <= scale <= precision <= 18 else "String"
        return _AVRO_TYPES.get(str(declared.get("logicalType", declared.get("type"))), "String")
    return _AVRO_TYPES.get(str(declared), "String")
