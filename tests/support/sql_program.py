"""Strangers' SQL given to Spark without the gate, inside a sandbox; answers with one line of JSON.

Run: sql_program.py '{"queries": {"name": "SQL"}, "analysed": {}, "settings": {"changed": "value"}}'
"""

import json
import os
import sys

sys.path[:0] = ["/runtime/ours", "/runtime/site"]


def main() -> None:
    """Run every query in a session of its own."""
    asked = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from odf_spark import connection, launch

    launch.SETTINGS.update(asked["settings"])
    options = [*asked["options"], "-XX:TieredStopAtLevel=1"]
    java = launch.start_java(heap_bytes=512 * 1024**2, cores=1, options=options)
    root = connection.connect_spark(java)
    listed = {"functions": [row[0] for row in root.sql("SHOW ALL FUNCTIONS").collect()]}
    if not asked["settings"]:
        listed["settings"], listed["defaults"] = _list_settings(root)
    found = {name: _analyse(root.newSession(), query) for name, query in asked["analysed"].items()}
    found |= {name: _run(root.newSession(), query) for name, query in asked["queries"].items()}
    print(json.dumps(found | listed), file=answers, flush=True)
    java.stdin.close()
    java.wait()


def _list_settings(root):
    """Every setting that Spark declares: what it stands at here, and its default."""
    from odf_spark.java_side import scala_object

    entries = {row["key"]: row["value"] for row in root.sql("SET -v").collect()}
    known = scala_object("org.apache.spark.internal.config.ConfigEntry$").knownConfigs()
    defaults = {str(name): str(known[name].defaultValueString()) for name in known}
    # Those of Hive, which is not here, are told by the command alone.
    defaults = entries | defaults
    return {**defaults, **dict(root.sparkContext.getConf().getAll()), **root.conf.getAll}, defaults


def _analyse(spark, query):
    """Say what the gate says of an analysed plan, whatever it said before."""
    from odf_engines.errors import InvalidQueryError
    from odf_spark.gate.statement import check_analysed

    for name in ("declared", "undeclared"):
        spark.range(3).createOrReplaceTempView(name)
    spark.udf.register("mine", lambda value: value, "bigint")
    try:
        check_analysed(spark.sql(query)._jdf.queryExecution().analyzed(), ["declared"])
    except InvalidQueryError as error:
        return {"outcome": "refused", "said": str(error)}
    return {"outcome": "done"}


def _run(spark, query):
    try:
        for each in query.split(";;"):
            rows = spark.sql(each).limit(3).collect() if each.startswith("SELECT") else spark.sql(each).collect()
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return {"outcome": "refused", "said": str(error).split("JVM stacktrace")[0][:400]}
    return {"outcome": "done", "got": repr(rows)[:400]}


if __name__ == "__main__":
    main()
