//! What functions do beyond computing a value.
//!
//! A function that is not listed is *unknown*: anybody may define one, and what it does is not in the text.

use std::collections::HashSet;
use std::sync::LazyLock;

use portcullis_core::effect::{ResourceKind, Verb};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Spanned};
use sqlparser::tokenizer::Span;

use super::names::{self, literal};
use super::output::How;
use super::reading::Reading;

/// Functions that compute a value and do nothing else.
const PURE: &str = "
abs acos acosh add_months age aggregate any_value approx_count_distinct approx_distinct approx_percentile
approx_quantile approx_quantiles approx_top_count approximate arg_max arg_min argmax argmin array ascii asin asinh
atan atan2 atanh atn2 avg bin bin_to_uuid bit_and bit_count bit_length bit_or bit_xor bool_and bool_or boolean
booland_agg boolor_agg btrim cardinality cast cbrt ceil ceiling changes char char_length character_length charindex
chr coalesce collect_list collect_set concat concat_ws contains conv convert convert_from convert_timezone
convert_to convert_tz corr cos cosh cot count count_big count_if countif covar_pop covar_samp crc32 cume_dist currval
curdate current_catalog current_database current_date current_datetime current_role current_schema current_schemas
current_setting current_time current_timestamp current_user curtime database dateadd date datediff datefromparts
datename datepart datetime datetime2fromparts datetime_add datetime_diff datetime_sub datetime_trunc day dayname
dayofmonth dayofweek dayofyear db_name decode degrees dense_rank difference div elt encode endswith ends_with eomonth
epoch epoch_ms equal_null error every exists exp explode explode_outer export_set extract extractvalue factorial
field filter find_in_set first first_value flatten floor format format_date format_datetime format_timestamp
from_base64 from_days from_unixtime gcd gen_random_uuid generate_array generate_date_array generate_series
generate_subscripts generate_timestamp_array getdate getutcdate get_byte get_ddl glob greatest group_concat grouping
grouping_id has_column_privilege has_schema_privilege has_table_privilege hash hashbytes hex histogram hour hstore
if ifnull iff iif ilike inet_aton inet_ntoa initcap instr insert int interval is_nan is_uuid isdate isfinite isinf
isjson isnan isnull isnumeric jaccard jaro_winkler_similarity julianday justify_days justify_hours justify_interval
kurtosis lag last last_day lastval last_insert_id last_insert_rowid last_value lcase lcm lead least left len length levenshtein
like likelihood likely list listagg ln locate log log10 log1p log2 lower lpad ltrim make_date make_interval make_time
make_timestamp make_timestamptz make_set makedate maketime map max max_by maxif md5 median mid min min_by minif minute
mod mode monotonically_increasing_id month monthname months_between newid next_day normalize now
nth_value ntile nullif nullifzero num_nonnulls num_nulls nvl nvl2 object_agg object_construct object_id object_name
object_keys octet_length openjson ord parse_date parse_datetime parse_json parse_timestamp parsename patindex
percent_rank percentile percentile_cont percentile_disc period_add period_diff pi pg_typeof pg_size_pretty
pg_table_size pg_total_relation_size pg_relation_size pg_get_viewdef pg_backend_pid position posexplode pow power
printf product quantile quantile_cont quantile_disc quarter quote quote_ident quote_literal quote_nullable quotename
radians rand random range rank ratio_to_report regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
regexp_replace regexp_matches regexp_match regexp_like regexp_instr regexp_substr regexp_extract regexp_extract_all
regexp_contains regexp_count regexp_split_to_array regexp_split_to_table repeat replace replicate reverse right rint
round row row_count row_number row_to_json rpad rtrim safe_cast safe_divide scope_identity sec_to_time second sequence
session_user sha sha1 sha2 sha224 sha256 sha384 sha512 sign sin sinh size skewness sleep slice smallint sort_array
soundex space split split_part split_to_table sqlite_version sqrt square startswith starts_with stddev stddev_pop
stddev_samp std stdev stdevp stack str str_to_date strcmp strftime string string_agg string_split string_to_array
string_to_table strip_tags strpos strptime struct stuff subdate substr substring substring_index subtime sum sumif
switchoffset sysdate sysdatetime sysdatetimeoffset systimestamp sysutcdatetime tan tanh text time time_add time_bucket
time_diff time_format time_to_sec time_trunc timediff timefromparts timestamp timestamp_add timestamp_diff
timestamp_micros timestamp_millis timestamp_seconds timestamp_sub timestamp_trunc timestampadd timestampdiff
timezone to_base64 to_char to_date to_days to_hex to_json to_jsonb to_number to_seconds to_timestamp to_tsquery
to_tsvector to_variant to_varchar todatetimeoffset total total_changes translate transform trim trunc truncate
try_cast try_convert try_parse_json try_to_date try_to_number try_to_timestamp ts_headline ts_rank ts_rank_cd
plainto_tsquery phraseto_tsquery websearch_to_tsquery typeof ucase uncompress compress unhex unicode unistr unix_date
unix_micros unix_millis unix_seconds unix_timestamp unlikely unnest upper user utc_date utc_time utc_timestamp uuid
uuid_generate_v4 uuid_short uuid_to_bin uuidv7 values var_pop var_samp variance variance_samp version week weekday
weekofyear weight_string width_bucket year yearweek zeroblob zeroifnull zip xmlagg xmlelement xmlforest xpath
similarity word_similarity unaccent width median_absolute_deviation trunc_date date_bucket dateof json jsonb
sys_context isodow try uniform seq1 seq2 seq4 seq8 generator table lateral rows values_list cube rollup
";

/// Beginnings of names whose functions compute values: `json_extract`, `array_agg`.
const PURE_FAMILIES: [&str; 17] = [
    "json_",
    "jsonb_",
    "array_",
    "date_",
    "list_",
    "map_",
    "string_",
    "st_",
    "bit_",
    "is_",
    "range_",
    "struct_",
    "approx_",
    "regr_",
    "hll_",
    "object_",
    "levenshtein_",
];

static PURE_NAMES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| PURE.split_whitespace().collect());

/// Schemas of functions that come with a database.
const BUILT_IN: [&str; 6] = ["pg_catalog", "sys", "information_schema", "safe", "net", "hll_count"];

/// What a function does to the file that it is given.
fn file_function(name: &str) -> Option<(&'static [Verb], usize)> {
    const READ: &[Verb] = &[Verb::Read];
    const WRITE: &[Verb] = &[Verb::Write];
    Some(match name {
        "pg_read_file"
        | "pg_read_binary_file"
        | "pg_ls_dir"
        | "pg_stat_file"
        | "lo_import"
        | "load_file"
        | "readfile"
        | "fsdir"
        | "lsdir"
        | "zipfile"
        | "read_csv"
        | "read_csv_auto"
        | "read_parquet"
        | "parquet_scan"
        | "parquet_metadata"
        | "parquet_schema"
        | "read_json"
        | "read_json_auto"
        | "read_ndjson"
        | "read_ndjson_auto"
        | "read_json_objects"
        | "read_ndjson_objects"
        | "read_text"
        | "read_blob"
        | "read_xlsx"
        | "sniff_csv"
        | "csv_scan"
        | "sqlite_scan"
        | "st_read"
        | "st_read_meta"
        | "st_readosm"
        | "st_readshp"
        | "delta_scan"
        | "iceberg_scan" => (READ, 0),
        "lo_export" => (WRITE, 1),
        "writefile" | "pg_file_write" => (WRITE, 0),
        "pg_file_rename" => (WRITE, 1),
        "pg_file_unlink" => (&[Verb::Delete], 0),
        _ => return None,
    })
}

impl Reading<'_, '_, '_, '_> {
    /// A function in an expression.
    pub(super) fn function_effects(&mut self, name: &ObjectName, arguments: &FunctionArguments) {
        let arguments = match arguments {
            FunctionArguments::List(list) => list.args.as_slice(),
            _ => &[],
        };
        self.call(name, arguments);
    }

    /// A function in a `from`.
    pub(super) fn table_function(&mut self, name: &ObjectName, arguments: &[FunctionArg]) {
        // The files whose names fit; to others the same name compares two texts.
        if let ([argument], Some("glob")) =
            (arguments, names::parts(name).unwrap_or_default().last().map(String::as_str))
        {
            return self.on_files(&[Verb::Read], expression(argument), name.span());
        }
        self.call(name, arguments);
    }

    fn call(&mut self, name: &ObjectName, arguments: &[FunctionArg]) {
        let parts = names::parts(name).unwrap_or_default();
        let Some((last, schema)) = parts.split_last() else { return };
        let expressions: Vec<&Expr> = arguments.iter().filter_map(expression).collect();
        let span = name.span();
        if let Some((verbs, at)) = file_function(last) {
            let file = expressions.get(at).copied();
            let span = file.map_or(span, Spanned::span);
            self.on_files(verbs, file, span);
            return;
        }
        let range = self.output.range(span);
        match last.as_str() {
            "load_extension" => {
                self.on_files(&[Verb::Read], expressions.first().copied(), span);
                self.output.unknown("sql extension", "loads a library into the database", range);
            }
            "query_to_xml"
            | "query_to_xmlschema"
            | "query_to_xml_and_xmlschema"
            | "ts_stat"
            | "cursor_to_xml" => match expressions.first().and_then(|expression| literal(expression)) {
                Some(text) => self.output.nested(text, range),
                None => self.output.unknown("sql", "runs SQL that is computed", range),
            },
            "table_to_xml" | "table_to_xmlschema" | "table_to_xml_and_xmlschema" => {
                self.table_in_text(expressions.first().copied(), span);
            }
            "set_config" => {
                let setting = expressions.first().and_then(|expression| literal(expression)).unwrap_or("*");
                self.output.setting(&setting.to_lowercase(), span);
            }
            // Computing the value changes the sequence; no rollback brings it back.
            "setval" | "nextval" => self.output.setting("sequence", span),
            "json_execute_serialized_sql" => {
                self.output.unknown("sql", "runs SQL that is computed", range);
            }
            // Columns by a pattern: any of them may fit.
            "columns" => self.read_all(&[], None, span),
            "pg_reload_conf" | "pg_rotate_logfile" | "pg_promote" | "pg_switch_wal" => {
                self.output.setting(last, span);
            }
            "pg_terminate_backend" | "pg_cancel_backend" => {
                self.output.other(Verb::Delete, ResourceKind::Process, "sql session", How::default(), span);
            }
            "pg_sleep" | "benchmark" | "randomblob" => {}
            pragma if pragma.starts_with("pragma_") => {}
            _ if is_pure(last, schema) => {}
            _ => {
                let called = parts.join(".");
                self.output.unknown(
                    "sql function",
                    format!("`{called}` is not a function that is known"),
                    range,
                );
            }
        }
    }

    /// Files that an argument names: one, or a list.
    fn on_files(&mut self, verbs: &[Verb], file: Option<&Expr>, span: Span) {
        match file {
            Some(Expr::Array(array)) if !array.elem.is_empty() => {
                for element in &array.elem {
                    self.on_file(verbs, literal(element), element.span());
                }
            }
            Some(file) => {
                // A name in double quotes is a string to some.
                let quoted = match file {
                    Expr::Identifier(ident) if ident.quote_style == Some('"') => Some(ident.value.as_str()),
                    other => literal(other),
                };
                self.on_file(verbs, quoted, span);
            }
            None => self.on_file(verbs, None, span),
        }
    }

    fn table_in_text(&mut self, argument: Option<&Expr>, span: Span) {
        let range = self.output.range(span);
        let Some(text) = argument.and_then(literal) else {
            self.output.unknown("sql", "the name of a table is computed", range);
            return;
        };
        let parts: Vec<String> =
            text.split('.').map(|part| part.trim().trim_matches('"').to_lowercase()).collect();
        for table in names::tables(self.settings, &parts) {
            self.output.table(Verb::Read, &table, How::default(), span);
            self.output.all_columns(Verb::Read, &table, span);
        }
    }
}

fn is_pure(name: &str, schema: &[String]) -> bool {
    let built_in = match schema {
        [] => true,
        [.., last] => BUILT_IN.contains(&last.as_str()),
    };
    built_in && (PURE_NAMES.contains(name) || PURE_FAMILIES.iter().any(|family| name.starts_with(family)))
}

fn expression(argument: &FunctionArg) -> Option<&Expr> {
    let (FunctionArg::Unnamed(value)
    | FunctionArg::Named { arg: value, .. }
    | FunctionArg::ExprNamed { arg: value, .. }) = argument;
    match value {
        FunctionArgExpr::Expr(expression) => Some(expression),
        _ => None,
    }
}
