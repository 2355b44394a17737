"""Functions that a transform may call, by name, and what pins some of them.

A function that a new version brings is on no list, so it is rejected until it was looked at. ``REJECTED`` says
of those that people miss why they are on none.

Source: clauses FUSION-3 and FUSION-5 in ``spec/extensions/engine-contract.md``.
"""

_LIST_WORDS = (
    "any_value", "append", "cat", "compact", "concat", "contains", "dims", "distance", "distinct", "element", "empty",
    "except", "extract", "has", "has_all", "has_any", "indexof", "intersect", "join", "length", "max", "min", "ndims",
    "normalize", "pop_back", "pop_front", "position", "positions", "prepend", "push_back", "push_front", "remove",
    "remove_all", "remove_n", "repeat", "replace", "replace_all", "replace_n", "resize", "reverse", "slice", "sort",
    "to_string", "union", "zip",
)  # fmt: skip

_DISTANCES = frozenset({"cosine_distance", "dot_product", "inner_product"})
# By tables of letters, calendars or expressions that come with the engine.
_BY_TABLES = frozenset(
    {"date_format", "initcap", "lower", "regexp_count", "regexp_instr", "regexp_like", "regexp_match",
     "regexp_replace", "to_char", "to_local_time", "upper"}
)  # fmt: skip

_PLAIN = frozenset(
    {"abs", "arrays_overlap", "arrays_zip", "arrow_cast", "arrow_try_cast", "arrow_typeof", "ascii", "bit_length",
     "btrim", "cardinality", "cast_to_type", "ceil", "char_length", "character_length", "chr", "coalesce",
     "concat", "concat_ws", "contains", "date_bin", "date_part", "date_trunc", "datepart", "datetrunc", "decode",
     "degrees", "digest", "element_at", "empty", "encode", "ends_with", "factorial", "find_in_set", "flatten",
     "floor", "from_unixtime", "gcd", "generate_series", "get_field", "greatest", "ifnull", "instr", "isnan",
     "iszero", "lcm", "least", "left", "length", "levenshtein", "lpad", "ltrim", "make_array", "make_date",
     "make_list", "make_time", "map", "map_entries", "map_extract", "map_keys", "map_values", "md5",
     "named_struct", "nanvl", "nullif", "nvl", "nvl2", "octet_length", "overlay", "pi", "position", "radians",
     "range", "repeat", "replace", "reverse", "right", "round", "row", "rpad", "rtrim", "sha224", "sha256",
     "sha384", "sha512", "signum", "split_part", "sqrt", "starts_with", "string_to_array", "string_to_list",
     "strpos", "struct", "substr", "substr_index", "substring", "substring_index", "to_date", "to_hex", "to_time",
     "to_timestamp", "to_timestamp_micros", "to_timestamp_millis", "to_timestamp_nanos", "to_timestamp_seconds",
     "to_unixtime", "translate", "trim", "trunc", "try_cast_to_type", "union_extract", "union_tag"}
)  # fmt: skip

_LISTS = {f"{kind}_{word}" for kind in ("array", "list") for word in _LIST_WORDS} - {"array_zip", "list_min"}

FUNCTIONS = _PLAIN | _LISTS | _DISTANCES | _BY_TABLES

# The same whatever the order of rows.
EXACT = frozenset({"bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "grouping", "max", "min"})
# Order of rows, or sums of floating-point numbers.
_BY_ORDER = frozenset(
    {"approx_median", "approx_percentile_cont", "approx_percentile_cont_with_weight", "array_agg", "avg", "corr",
     "covar", "covar_pop", "covar_samp", "first_value", "last_value", "mean", "median", "nth_value",
     "percentile_cont", "quantile_cont", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
     "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum",
     "var", "var_pop", "var_population", "var_samp", "var_sample"}
)  # fmt: skip

AGGREGATES = EXACT | _BY_ORDER

WINDOWS = frozenset(
    {"cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile", "percent_rank",
     "rank", "row_number"}
)  # fmt: skip

# Rows out of nothing, of any number.
TABLE_FUNCTIONS = ("generate_series", "range")

PINNED = {
    **dict.fromkeys(_DISTANCES, "adds floating-point numbers up in an order of its own"),
    **dict.fromkeys(_BY_TABLES, "rests on tables that come with the engine"),
    **dict.fromkeys(_BY_ORDER, "follows from the order of rows, which is that of one plan"),
    **dict.fromkeys(WINDOWS, "follows from the order of rows, which is that of one plan"),
}
"""Why a function's result is sure only under one engine digest."""

_CLOCK = ("it reads the clock", "the event time, or the system time of an input")
_CHANCE = ("it gives something else each time", "a column of the data")
_LIBRARY = (
    "it is computed by the machine's mathematical library, of which the last bit, and the sign of NaN, differ",
    "what needs no more than + - * / and sqrt",
)

REJECTED = {
    **dict.fromkeys(("current_date", "current_time", "current_timestamp", "now", "today"), _CLOCK),
    **dict.fromkeys(("rand", "random", "uuid"), _CHANCE),
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "exp", "ln", "log",
         "log10", "log2", "pow", "power", "sin", "sinh", "tan", "tanh"),
        _LIBRARY,
    ),
    "approx_distinct": ("it hashes by instructions that not every processor has", "count(DISTINCT ...)"),
    "version": ("it names the build", "a text"),
}  # fmt: skip
"""Of functions that a transform may not call, why, and what to write instead."""
