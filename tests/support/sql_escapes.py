"""The escape suite's SQL part: what a stranger may write into a transform, and what must stop it.

Every query but one is stopped by the gate. ``other`` says which layer stops it where the gate fails: Spark's switches,
the sandbox around Spark, or none, where what it does is confined to a session that serves nobody else.
"""

from dataclasses import dataclass

_QUERY, _NO_FILE = "only a query is allowed", "PATH_NOT_FOUND"
_RESTRICTED = "SQL_RESTRICTED_MODE"

# The first series, tried against Spark 4.3 with three of its own switches: they stopped the first seven.
FIRST_SERIES = (
    "file_as_relation", "csv_file_as_relation", "run_program", "read_environment_by_reflection",
    "read_property_by_reflection", "reflect_quietly", "count_threads_by_reflection", "view_over_text",
    "view_over_binary_file", "view_over_csv", "view_over_json", "table_over_file", "database", "overwrite_folder",
    "add_file", "add_archive", "add_jar", "java_function", "sql_function", "set_setting", "set_time_zone",
    "read_settings", "execute_immediate", "script", "declare_variable", "create_table",
)  # fmt: skip
STOPPED_BY_SWITCHES = 7


@dataclass(frozen=True, slots=True)
class SqlProbe:
    """One query.

    Attributes:
        name: Of the probe.
        sql: With ``;;`` between statements for Spark without the gate, the first of them the one for the gate;
            ``{bait}``, ``{folder}`` and ``{port}`` are filled in.
        complaint: Part of what the gate says; empty where the gate lets it through as harmless text.
        other: Second layer: ``switches``, ``sandbox`` or ``session``.
        proof: Part of what Spark says, or gives, when the second layer stops it; empty for ``session``.
    """

    name: str
    sql: str
    complaint: str
    other: str
    proof: str = ""


SQL_PROBES = (
    SqlProbe(
        "view_over_text",
        "CREATE TEMP VIEW v USING text OPTIONS (path '{bait}');;"
        "SELECT * FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "view_over_folder",
        "CREATE TEMP VIEW v USING binaryFile OPTIONS (path '{folder}');;"
        "SELECT path FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "view_over_binary_file",
        "CREATE TEMP VIEW v USING binaryFile OPTIONS (path '{bait}');;"
        "SELECT length FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "view_over_csv",
        "CREATE TEMP VIEW v USING csv OPTIONS (path '{bait}');;"
        "SELECT * FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "view_over_json",
        "CREATE TEMP VIEW v USING json OPTIONS (path '{bait}', primitivesAsString true);;"
        "SELECT count(*) FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "view_over_address",
        "CREATE TEMP VIEW v USING text OPTIONS (path 'file://{bait}');;"
        "SELECT * FROM v",
        _QUERY, "sandbox", _NO_FILE,
    ),
    SqlProbe(
        "table_over_file",
        "CREATE TABLE over_file USING text LOCATION '{bait}';;"
        "SELECT * FROM over_file",
        _QUERY, "sandbox", "[]",
    ),
    SqlProbe(
        "overwrite_folder",
        "INSERT OVERWRITE DIRECTORY '{folder}/made' USING text SELECT 'x'",
        _QUERY, "sandbox", "[]",
    ),
    SqlProbe(
        "file_as_relation",
        "SELECT * FROM text.`{bait}`",
        "unknown relation", "switches", "TABLE_OR_VIEW_NOT_FOUND",
    ),
    SqlProbe(
        "csv_file_as_relation",
        "SELECT * FROM csv.`{bait}`",
        "unknown relation", "switches", "TABLE_OR_VIEW_NOT_FOUND",
    ),
    SqlProbe(
        "run_program",
        "SELECT TRANSFORM (x) USING '/usr/bin/chmod --version' AS (y) FROM VALUES ('a') AS t(x)",
        "runs a program", "switches", _RESTRICTED,
    ),
    SqlProbe(
        "read_environment_by_reflection",
        "SELECT reflect('java.lang.System', 'getenv', 'ODF_SECRET')",
        "not allowed", "switches", _RESTRICTED,
    ),
    SqlProbe(
        "read_property_by_reflection",
        "SELECT java_method('java.lang.System', 'getProperty', 'java.home')",
        "not allowed", "switches", _RESTRICTED,
    ),
    SqlProbe(
        "reflect_quietly",
        "SELECT try_reflect('java.lang.System', 'getProperty', 'java.home')",
        "not allowed", "switches", _RESTRICTED,
    ),
    SqlProbe(
        "count_threads_by_reflection",
        "SELECT reflect('java.lang.Thread', 'activeCount')",
        "not allowed", "switches", _RESTRICTED,
    ),
    SqlProbe("substitute_environment", "SELECT '${{env:ODF_SECRET}}' AS x", "", "switches", "${env"),
    SqlProbe("substitute_property", "SELECT '${{system:os.version}}' AS x", "", "switches", "${system"),
    SqlProbe("script", "BEGIN DECLARE x INT DEFAULT 1; SELECT x; END", _QUERY, "switches", "SQL_SCRIPTING"),
    SqlProbe(
        "script_with_a_loop",
        "BEGIN DECLARE x INT DEFAULT 0; WHILE x < 2 DO SET x = x + 1; END WHILE; SELECT x; END",
        _QUERY, "switches", "SQL_SCRIPTING",
    ),
    SqlProbe(
        "database",
        "CREATE TEMP VIEW v USING jdbc OPTIONS (url 'jdbc:derby:memory:x;create=true', dbtable '(SELECT * "
        "FROM SYS.SYSTABLES) t', driver 'org.apache.derby.iapi.jdbc.AutoloadedDriver');;"
        "SELECT count(*) FROM v",
        _QUERY, "session",
    ),
    SqlProbe("java_function", "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'", _QUERY, "session"),
    SqlProbe("sql_function", "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1;;SELECT f()", _QUERY, "session"),
    SqlProbe("set_setting", "SET spark.sql.ansi.enabled = false", _QUERY, "session"),
    SqlProbe("set_time_zone", "SET TIME ZONE 'Asia/Tokyo'", _QUERY, "session"),
    SqlProbe("read_settings", "SET -v", _QUERY, "session"),
    SqlProbe("reset_settings", "RESET", _QUERY, "session"),
    SqlProbe("execute_immediate", "EXECUTE IMMEDIATE 'SELECT 1'", _QUERY, "session"),
    SqlProbe("declare_variable", "DECLARE VARIABLE v INT DEFAULT 1;;SELECT v", _QUERY, "session"),
    SqlProbe("create_database", "CREATE DATABASE elsewhere LOCATION '{folder}/elsewhere'", _QUERY, "session"),
    SqlProbe("create_table", "CREATE TABLE made AS SELECT 1 AS x", _QUERY, "session"),
    SqlProbe("cache_table", "CACHE TABLE c AS SELECT 1 AS x", _QUERY, "session"),
    SqlProbe("analyze_table", "ANALYZE TABLE made COMPUTE STATISTICS", _QUERY, "session"),
    SqlProbe("insert", "INSERT INTO made VALUES (2)", _QUERY, "session"),
    SqlProbe("drop_table", "DROP TABLE made", _QUERY, "session"),
    SqlProbe("show_tables", "SHOW TABLES", _QUERY, "session"),
    SqlProbe("describe_function", "DESCRIBE FUNCTION upper", _QUERY, "session"),
    SqlProbe("explain", "EXPLAIN EXTENDED SELECT 1", _QUERY, "session"),
    SqlProbe("use_database", "USE default", _QUERY, "session"),
    SqlProbe("set_catalog", "SET CATALOG spark_catalog", _QUERY, "session"),
    SqlProbe("add_file", "ADD FILE '{bait}'", _QUERY, "sandbox", "does not exist"),
    SqlProbe("add_archive", "ADD ARCHIVE '{bait}'", _QUERY, "sandbox", "NoSuchFile"),
    SqlProbe("add_jar", "ADD JAR '{bait}';;SELECT sum(id) FROM range(3)", _QUERY, "sandbox", "NoSuchFile"),
    SqlProbe("download", "ADD FILE 'http://127.0.0.1:{port}/file'", _QUERY, "sandbox", "Connection refused"),
)  # fmt: skip
