"""Which of Spark's functions a query may call.

An allow-list, so that a function of a later Spark is refused until somebody has looked at it. Left out are those that
read a clock, a random source, files, the user, the engine's own state, or Java classes, and those whose formats reach
for the network or are rarely used in tables (Avro, Protobuf, XML, sketches, geometry, variants).

Source: SQL reference of Spark 4.3, built-in functions; clause GATE-4.
"""

__all__ = ["AGGREGATES", "GENERATORS", "IMPURE", "PINNED", "SCALARS", "WINDOWS"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Arrays, maps, structs
_NESTED = _names("""
    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_union
    arrays_overlap arrays_zip flatten get sequence slice sort_array cardinality concat element_at reverse size
    try_element_at aggregate array_sort exists filter forall map_filter map_zip_with reduce transform
    transform_keys transform_values zip_with map map_concat map_contains_key map_entries map_from_arrays
    map_from_entries map_keys map_values str_to_map named_struct struct
""")

# Bits, comparison, conditions, conversion
_BASIC = _names("""
    & << >> >>> ^ | ~ bit_count bit_get getbit shiftleft shiftright shiftrightunsigned ! < <= <=> = == > >= <>
    != and or not in between equal_null ilike isnan isnotnull isnull like regexp regexp_like rlike coalesce if
    ifnull nanvl nullif nullifzero nvl nvl2 when zeroifnull bigint binary boolean cast date decimal double float
    int smallint string timestamp tinyint
""")

# Dates and times, without those that read the clock
_TIMES = _names("""
    add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime
    from_utc_timestamp hour last_day make_date make_timestamp make_timestamp_ltz make_timestamp_ntz minute month
    monthname months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds to_date
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_timestamp unix_date unix_micros unix_millis
    unix_seconds unix_timestamp weekday weekofyear year make_interval make_dt_interval make_ym_interval
    try_make_interval
""")

# Hashes, JSON
_HASHES = _names("""
    crc32 hash md5 sha sha1 sha2 xxhash64 hmac from_json get_json_object json_array_length json_object_keys
    to_json
""")

# Numbers, without random ones
_NUMBERS = _names("""
    % * + - / abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc
    degrees div e exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi
    pmod positive pow power radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod
    try_multiply try_subtract unhex width_bucket
""")

# Text, without random and collated
_TEXT = _names("""
    ascii base64 bit_length btrim char char_length character_length chr concat_ws contains decode elt encode
    endswith find_in_set format_number format_string initcap instr is_valid_utf8 lcase left len length
    levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay position printf
    quote regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr repeat
    replace right rpad rtrim soundex space split split_part startswith substr substring substring_index
    to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8 ucase
    unbase64 upper validate_utf8 parse_url try_parse_url url_decode try_url_decode url_encode
""")

# Rest
_REST = _names("""
    assert_true raise_error typeof
""")

SCALARS = _NESTED | _BASIC | _TIMES | _HASHES | _NUMBERS | _TEXT | _REST

# Pass, but their result rests on tables or libraries that come with the engine: zones, names of months, letters,
# fdlibm.
_MATHEMATICS = _names("""
    acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc exp expm1 hypot ln log log10 log1p log2 pow
    power sec sin sinh tan tanh
""")
_ZONES = _names("""
    convert_timezone from_utc_timestamp to_utc_timestamp make_timestamp make_timestamp_ltz try_make_timestamp
    try_make_timestamp_ltz
""")
_CALENDAR = _names("""
    date_format dayname from_unixtime monthname
""")
_LETTERS = _names("""
    initcap lcase lower ucase upper ilike
""")
PINNED = {
    **dict.fromkeys(_MATHEMATICS, "its last digit depends on the mathematical library"),
    **dict.fromkeys(_ZONES, "it uses the table of time zones"),
    **dict.fromkeys(_CALENDAR, "it uses the calendar's names"),
    **dict.fromkeys(_LETTERS, "it uses the table of letters"),
}

# Harmless, but never twice the same: a person may ask, a transform may not. ``purity`` says why.
IMPURE = _names("""
    curdate current_catalog current_database current_date current_schema current_time current_timestamp
    current_timezone current_user input_file_block_length input_file_block_start input_file_name localtime
    localtimestamp monotonically_increasing_id now rand randn random randstr session_user shuffle
    spark_partition_id uniform user uuid version
""")

AGGREGATES = _names("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping
    grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum
    try_avg try_sum var_pop var_samp variance
""")

WINDOWS = _names("""
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number window window_time session_window
""")

GENERATORS = _names("""
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack range sql_keywords
""")
