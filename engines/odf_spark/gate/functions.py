"""Every built-in function of Spark 4.3, and how far a query that calls it can be repeated.

A list of what is allowed: a function of a later Spark is rejected until somebody has looked at it, and a test compares
this table with what the engine itself lists. The grade is that of a call by name. What also depends on the types or
patterns that a function is given is judged on the analysed plan (``purity``), what depends on the order of rows by
``row_order``.

Source: SQL reference of Spark 4.3, built-in functions; clauses GATE-4 and GATE-17.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class FunctionUse(Enum):
    """What a function may be called in."""

    REPRODUCIBLE = "any query; its result follows from the values"
    PINNED = "any query, whose result then rests on the engine's build too"
    ASKED = "a question, and nothing that others repeat"
    REJECTED = "nothing"


@dataclass(frozen=True, slots=True)
class FunctionGrade:
    """What a function may be called in, and why."""

    use: FunctionUse
    reason: str


_REPRODUCIBLE = {
    "it places, compares and counts items": """
        array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
        array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_union
        arrays_overlap arrays_zip flatten get sequence slice sort_array cardinality concat element_at reverse size
        try_element_at aggregate exists filter forall map_filter map_zip_with reduce transform transform_keys
        transform_values zip_with map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys
        map_values named_struct struct explode explode_outer inline inline_outer posexplode posexplode_outer stack
        range
    """,
    "it compares values, or is arithmetic on bits": """
        & << >> >>> ^ | ~ bit_count bit_get getbit shiftleft shiftright shiftrightunsigned ! < <= <=> = == > >= <>
        != and or not in between equal_null isnan isnotnull isnull like coalesce if ifnull nanvl nullif nullifzero nvl
        nvl2 when zeroifnull assert_true raise_error
    """,
    "it is a cast, which is judged by its types": """
        bigint binary boolean cast date decimal double float int smallint string timestamp tinyint
    """,
    "it is arithmetic on the calendar, in UTC": """
        add_months date_add date_diff date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
        dayofmonth dayofweek dayofyear extract hour last_day make_date make_timestamp_ntz try_make_timestamp_ntz minute
        month months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds trunc unix_date
        unix_micros unix_millis unix_seconds weekday weekofyear year make_interval make_dt_interval make_ym_interval
        try_make_interval window window_time session_window
    """,
    "it reads a time by a pattern, which is judged by itself": """
        to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp try_to_date try_to_timestamp
        unix_timestamp
    """,
    "it searches by a pattern, which is judged by itself": """
        regexp regexp_like rlike regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace
        regexp_substr split str_to_map
    """,
    "it is a function of bytes that a standard fixes": "crc32 md5 sha sha1 sha2 hmac",
    "it is a function of the values' bits; floating-point numbers are judged by their types": "hash xxhash64",
    "it is exact, or rounded once as IEEE 754 says": """
        % * + - / abs bin bround ceil ceiling conv div e factorial floor greatest hex least mod negative pi pmod
        positive rint round sign signum try_add try_divide try_mod try_multiply try_subtract unhex width_bucket
    """,
    "it counts, cuts and joins characters or bytes": """
        ascii base64 bit_length btrim char char_length character_length chr concat_ws contains decode elt encode
        endswith find_in_set instr is_valid_utf8 left len length levenshtein locate lpad ltrim luhn_check
        make_valid_utf8 octet_length overlay position quote repeat replace right rpad rtrim soundex space split_part
        startswith substr substring substring_index to_binary to_number translate trim try_to_binary try_to_number
        try_validate_utf8 unbase64 validate_utf8 url_decode try_url_decode url_encode
    """,
    "it is an aggregate or looks at other rows, which is judged by types and order": """
        any any_value approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list collect_set
        corr count count_if covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric kurtosis
        last last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont
        percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
        skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
        cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """,
}

_PINNED = {
    "its last digit depends on the mathematical library": """
        acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees exp expm1 hypot ln log log10 log1p log2 pow
        power radians sec sin sinh sqrt tan tanh
    """,
    "it uses the table of time zones": """
        convert_timezone from_utc_timestamp to_utc_timestamp make_timestamp make_timestamp_ltz try_make_timestamp
        try_make_timestamp_ltz
    """,
    "it uses the calendar's names": "date_format dayname from_unixtime monthname",
    "it uses the table of letters": "initcap lcase lower ucase upper ilike mask",
    "it writes by the formats of the Java runtime": "format_number format_string printf to_char to_varchar",
    "numbers in JSON are read and written by the engine's library": """
        from_json get_json_object json_array_length json_object_keys json_tuple to_json
    """,
    "it reads addresses by the rules of the Java runtime": "parse_url try_parse_url",
    "which items are compared is up to the sort of the Java runtime": "array_sort",
    "it estimates by tables of the engine's": "approx_count_distinct",
    "it gives the engine's own words": "typeof sql_keywords",
}

_ASKED = {
    "it reads the clock": "curdate current_date current_time current_timestamp localtime localtimestamp now",
    "every run gives another value": "rand randn random randstr shuffle uniform uuid",
    "it depends on how the engine cut the rows": """
        input_file_block_length input_file_block_start input_file_name monotonically_increasing_id spark_partition_id
    """,
    "it depends on who runs the query, and where": """
        current_catalog current_database current_schema current_timezone current_user session_user user version
    """,
}

_SKETCHES = """
    approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bitmap_and_agg bitmap_bit_position
    bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg count_min_sketch hll_sketch_agg
    hll_sketch_estimate hll_union hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float theta_difference theta_intersection theta_intersection_agg theta_sketch_agg
    theta_sketch_estimate theta_union theta_union_agg tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
    tuple_sketch_theta_integer tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer
"""

_REJECTED = {
    "a sketch is bytes of a library of the engine's": _SKETCHES,
    "it calls Java": "java_method reflect try_reflect",
    "a key in a query is no secret, and encryption adds random bytes": "aes_decrypt aes_encrypt try_aes_decrypt",
    "its format is no matter for a query; read it at the source": """
        from_avro from_csv from_protobuf from_xml schema_of_avro schema_of_csv schema_of_json schema_of_xml to_avro
        to_csv to_protobuf to_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
        xpath_short xpath_string
    """,
    "no slice holds a variant": """
        is_valid_variant is_variant_null parse_json schema_of_variant schema_of_variant_agg to_variant_object
        try_parse_json try_variant_array_append try_variant_get try_variant_insert try_variant_set variant_array_append
        variant_delete variant_explode variant_explode_outer variant_get variant_insert variant_set variant_strip_nulls
    """,
    "no slice holds a shape": "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
    "Spark's type of times of day is switched off": """
        make_time time time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
        time_to_millis time_to_seconds time_trunc to_time try_to_time
    """,
    "it adds floating-point numbers in an order of its own": """
        vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize
        vector_sum
    """,
    "it tells about the engine, not about rows": "collation collations current_path python_worker_logs",
    "it splits text by the rules of a language": "sentences",
    "it needs what no query can define": "measure",
    "it is not called but written: text COLLATE NAME, CASE WHEN, a || b": "collate case ||",
    "it is new, and was not examined": """
        collect_union counter_diff from_base32 jaro_winkler_similarity timestamp_nanos to_base32 unix_nanos
    """,
}

FUNCTIONS: Final[dict[str, FunctionGrade]] = {
    name: FunctionGrade(use, reason)
    for use, groups in (
        (FunctionUse.REPRODUCIBLE, _REPRODUCIBLE),
        (FunctionUse.PINNED, _PINNED),
        (FunctionUse.ASKED, _ASKED),
        (FunctionUse.REJECTED, _REJECTED),
    )
    for reason, names in groups.items()
    for name in names.split()
}
"""By name in small letters, as Spark's ``SHOW FUNCTIONS`` lists them."""
