//! Every failure of the floors below as an error of MySQL.
//!
//! Errors that were MySQL's from the start travel through DataFusion whole and are found again
//! here. Errors of the temp space get the number that MySQL uses for the same cause. What is left
//! are DataFusion's own errors; those of planning are told apart by their kind and text.

use std::error::Error;

use arrow::array::{Array, AsArray};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use mayfly_exec::{
    RecursionTooDeep, RowGroupRefused, SeveralRows, UngovernedOperator, find_space_error,
};
use mayfly_sql::inner_name::shown_in_error;
use mayfly_sql::view::InvalidView;
use mayfly_table::KEY_BYTES_MAX;
use mayfly_types::spelling::shown_bytes;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use crate::render;

/// Number of "no space left on device".
const ENOSPC: i32 = 28;
const MIB: u64 = 1 << 20;

/// The error that a client sees for a failure inside a plan.
pub(crate) fn from_plan(error: &DataFusionError) -> MySqlError {
    shown_in_error(of_plan(error))
}

fn of_plan(error: &DataFusionError) -> MySqlError {
    if let Some(found) = find::<InvalidView>(error) {
        let (database, view) = &found.name;
        return of_view(database, view, of_plan(&found.cause));
    }
    if let Some(found) = find_mysql(error) {
        return found.clone();
    }
    if let Some(found) = find::<RowGroupRefused>(error) {
        let mut refused = of_plan(&found.cause);
        let needed = size(found.needed_bytes);
        let file = format!("; {needed} of the file '/{}' are read at once", found.file);
        refused.message.push_str(&file);
        return refused;
    }
    if let Some(found) = find_space_error(error) {
        return from_space(&found);
    }
    if let Some(found) = find::<mayfly_table::Error>(error) {
        return from_table(found);
    }
    if let Some(mayfly_table::rows::Error::Stopped) = find::<mayfly_table::rows::Error>(error) {
        return MySqlError::new(ErrorCode::QueryInterrupted, &[]);
    }
    if let Some(found) = find::<SchemaError>(error) {
        return from_schema(found);
    }
    if let Some(found) = find::<RecursionTooDeep>(error) {
        return MySqlError::new(ErrorCode::RecursiveQueryAborted, &[&found.runs]);
    }
    if find::<SeveralRows>(error).is_some() {
        return MySqlError::new(ErrorCode::SubqueryRows, &[]);
    }
    if let Some(found) = find::<UngovernedOperator>(error) {
        return not_supported(&format!("the operator {}", found.name()));
    }
    if let Some(found) = find::<std::io::Error>(error) {
        return from_io(found);
    }
    if let DataFusionError::Collection(errors) = error
        && let Some(first) = errors.first()
    {
        return of_plan(first);
    }
    from_text(error)
}

/// The error of a view's own query: what is gone since the view was made is no name of the
/// statement.
pub(crate) fn of_view(database: &str, view: &str, cause: MySqlError) -> MySqlError {
    let gone = [
        ErrorCode::NoSuchTable,
        ErrorCode::UnknownColumn,
        ErrorCode::NoSuchFunction,
        ErrorCode::ViewWrongList,
    ];
    match gone.iter().any(|code| cause.is(*code)) {
        true => MySqlError::new(ErrorCode::ViewInvalid, &[&database, &view]),
        false => cause,
    }
}

/// The error of a table.
pub(crate) fn from_table(error: &mayfly_table::Error) -> MySqlError {
    use mayfly_table::Error as Table;
    match error {
        Table::Space(error) => from_space(error),
        Table::NullValue { column } => MySqlError::new(ErrorCode::ColumnNull, &[column]),
        Table::TableExists { table } => MySqlError::new(ErrorCode::TableExists, &[table]),
        Table::UnknownTable { database, table } => MySqlError::no_such_table(database, table),
        Table::DatabaseExists { database } => {
            MySqlError::new(ErrorCode::DatabaseExists, &[database])
        }
        Table::UnknownDatabase { database } => {
            MySqlError::new(ErrorCode::UnknownDatabase, &[database])
        }
        Table::RowTooLong { limit_bytes, .. } => {
            MySqlError::new(ErrorCode::RowTooBig, &[limit_bytes])
        }
        Table::DuplicateEntry { key, entry } => {
            MySqlError::new(ErrorCode::DuplicateEntry, &[&entry_text(entry), key])
        }
        Table::Stopped => MySqlError::new(ErrorCode::QueryInterrupted, &[]),
        Table::Changed { .. } => MySqlError::new(ErrorCode::TableChanged, &[]),
        Table::KeyTooLong { .. } => MySqlError::new(ErrorCode::KeyTooLong, &[&KEY_BYTES_MAX]),
        Table::ColumnCount { .. } => MySqlError::new(ErrorCode::ValueCount, &[&1]),
        other => MySqlError::with_message(ErrorCode::StorageEngine, other.to_string()),
    }
}

/// The values of a key as error 1062 shows them.
pub(crate) fn entry_text(entry: &RecordBatch) -> String {
    let schema = entry.schema();
    let columns = entry.columns().iter().zip(schema.fields());
    let values = columns.map(|(column, field)| {
        let of = ColumnType::from_arrow(field);
        if let Some(bytes) = column.as_binary_view_opt().filter(|_| of.is_binary()) {
            return match bytes.is_null(0) {
                true => "NULL".to_owned(),
                false => shown_bytes(bytes.value(0)),
            };
        }
        let cell = render::cell(column, 0, &of);
        cell.unwrap_or_else(|| "NULL".to_owned())
    });
    values.collect::<Vec<_>>().join("-")
}

/// How the text begins where less than the whole budget is missing.
const PROMISED: &str = "Out of memory: other work has been promised the memory budget";

/// The same where there are no others.
const TAKEN: &str = "Out of memory: too little is left of the memory budget";

/// The error of a statement beside which no other one runs.
pub(crate) fn of_one_alone(error: MySqlError) -> MySqlError {
    match error.message.strip_prefix(PROMISED) {
        Some(rest) if error.is(ErrorCode::OutOfResources) => MySqlError {
            message: format!("{TAKEN}{rest}"),
            ..error
        },
        _ => error,
    }
}

/// How the text begins where as many long plans are made as may be.
const MANY_LONG_PLANS: &str = "Too many statements that take long to plan";

/// The error of a statement that takes long to plan beside so many others.
pub(crate) fn many_long_plans(count: usize) -> MySqlError {
    let message = format!("{MANY_LONG_PLANS}: {count} are being planned already");
    MySqlError::with_message(ErrorCode::OutOfResources, message)
}

/// Whether it is the error of [`many_long_plans`].
pub(crate) fn is_many_long_plans(error: &MySqlError) -> bool {
    error.is(ErrorCode::OutOfResources) && error.message.starts_with(MANY_LONG_PLANS)
}

/// Whether a statement may not fail any more when others have ended.
pub(crate) fn may_pass(error: &MySqlError) -> bool {
    error.is(ErrorCode::OutOfSortMemory)
        || error.is(ErrorCode::OutOfResources) && error.message.starts_with(PROMISED)
        || is_many_long_plans(error)
}

/// The error of MySQL that one of the system carries.
pub(crate) fn carried(error: &std::io::Error) -> Option<&MySqlError> {
    error.get_ref()?.downcast_ref()
}

/// What the system says of an error, without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The error of the temp space.
pub(crate) fn from_space(error: &mayfly_space::Error) -> MySqlError {
    use mayfly_space::Error as Space;
    let text = |code, message: String| MySqlError::with_message(code, message);
    match error {
        Space::BudgetExceeded {
            asked_bytes,
            limit_bytes,
            ..
        } => text(
            ErrorCode::OutOfSortMemory,
            format!(
                "Out of memory: the statement asked for {} more, and all of the memory budget of \
                 {} is in use; raise --memory",
                size(*asked_bytes),
                size(*limit_bytes)
            ),
        ),
        Space::MinimumNotMet {
            needed_bytes,
            limit_bytes,
        } if needed_bytes > limit_bytes => text(
            ErrorCode::OutOfResources,
            format!(
                "Out of memory: the statement needs at least {} MiB, and the memory budget is {}; \
                 raise --memory",
                needed_bytes.div_ceil(MIB),
                size(*limit_bytes)
            ),
        ),
        Space::MinimumNotMet {
            needed_bytes,
            limit_bytes,
        } => text(
            ErrorCode::OutOfResources,
            format!(
                "{PROMISED} of {}, and the statement needs {} more; raise --memory",
                size(*limit_bytes),
                size(*needed_bytes)
            ),
        ),
        Space::QuotaReached {
            account,
            limit_bytes,
            ..
        } => {
            let code = if account.starts_with("server") || account.starts_with("root") {
                ErrorCode::GlobalTempSpaceFull
            } else {
                ErrorCode::LocalTempSpaceFull
            };
            text(
                code,
                format!("{} ({account}: {})", code.format(), size(*limit_bytes)),
            )
        }
        Space::DiskFull { dir, needed_bytes } => {
            let dir = dir.display();
            text(
                ErrorCode::DiskFull,
                format!(
                    "Disk full ({dir}): {} more are needed for temporary data (errno: {ENOSPC} - \
                     No space left on device)",
                    size(*needed_bytes)
                ),
            )
        }
        Space::Io {
            operation,
            dir,
            source,
        } => {
            let code = match *operation {
                "read" => ErrorCode::FileRead,
                _ => ErrorCode::FileWrite,
            };
            let number = source.raw_os_error().unwrap_or(0);
            let file = format!("{} (temporary data)", dir.display());
            MySqlError::new(code, &[&file, &number, &reason(source)])
        }
        Space::Corrupt {
            dir,
            offset,
            len_bytes,
        } => {
            let file = format!("{} (temporary data)", dir.display());
            let reason = format!("checksum mismatch in {len_bytes} bytes at offset {offset}");
            MySqlError::new(ErrorCode::FileRead, &[&file, &0, &reason])
        }
        Space::InvalidOption { .. } => text(ErrorCode::WrongArguments, error.to_string()),
        other => text(ErrorCode::StorageEngine, other.to_string()),
    }
}

fn size(bytes: u64) -> String {
    if bytes >= MIB {
        format!("{:.1} MiB", bytes as f64 / MIB as f64)
    } else {
        format!("{bytes} bytes")
    }
}

fn from_io(error: &std::io::Error) -> MySqlError {
    let number = error.raw_os_error().unwrap_or(0);
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            MySqlError::new(ErrorCode::FileNotFound, &[&"(data file)", &number, error])
        }
        _ => MySqlError::new(ErrorCode::FileRead, &[&"(data file)", &number, error]),
    }
}

fn from_schema(error: &SchemaError) -> MySqlError {
    match error {
        SchemaError::FieldNotFound { field, .. } => unknown_column(&field.flat_name()),
        SchemaError::AmbiguousReference { field } => MySqlError::new(
            ErrorCode::AmbiguousColumn,
            &[&plain(&field.flat_name()), &"field list"],
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            MySqlError::new(ErrorCode::DuplicateColumn, &[name])
        }
    }
}

/// What is refused where no plan is found.
const CORRELATED: &str = "this form of correlated subquery";

fn unknown_column(name: &str) -> MySqlError {
    // Columns that the rules for subquery and join did not carry along have names of theirs.
    if ["__correlated_sq", "__scalar_sq", "mayfly "]
        .iter()
        .any(|own| name.contains(own))
    {
        return not_supported(CORRELATED);
    }
    MySqlError::new(ErrorCode::UnknownColumn, &[&plain(name), &"field list"])
}

/// A name without the quotes of the planner and without the schema of files.
fn plain(name: &str) -> String {
    name.replace(['"', '`'], "").replace("mayfly files.", "")
}

/// DataFusion's errors of planning carry their meaning in their text alone.
fn from_text(error: &DataFusionError) -> MySqlError {
    let root = error.find_root();
    let text = plain(&root.strip_backtrace());
    let text = text.trim();
    let quoted = |after: &str| {
        let rest = &text[text.find(after)? + after.len()..];
        let rest = rest.trim_start_matches(['\'', ' ']);
        Some(
            rest.split(['\'', '.', ',', ' ', '\n'])
                .next()
                .unwrap_or(rest)
                .to_owned(),
        )
    };
    if let Some(name) = quoted("Invalid function ") {
        return no_such_function(&name);
    }
    if text.contains("Left side produced no data to spill") {
        // A nested loop join that was refused its first batch says it in this way.
        return MySqlError::new(ErrorCode::OutOfSortMemory, &[]);
    }
    if let Some(name) = quoted("No field named ") {
        return unknown_column(&name);
    }
    if let Some(name) = text
        .strip_prefix("Error during planning: The window ")
        .and_then(|rest| rest.strip_suffix(" is not defined!"))
    {
        return MySqlError::new(ErrorCode::NoSuchWindow, &[&name]);
    }
    if let Some(error) = wrong_position(text)
        .or_else(|| wrong_window(text))
        .or_else(|| wrong_list(text))
    {
        return error;
    }
    if text.contains("names given as column alias") {
        return MySqlError::new(ErrorCode::ViewWrongList, &[]);
    }
    if let Some(name) = quoted("Invalid qualifier ") {
        return MySqlError::new(ErrorCode::UnknownTable, &[&name]);
    }
    if text.contains("SELECT * with no tables specified") {
        return MySqlError::new(ErrorCode::NoTablesUsed, &[]);
    }
    if text.contains("could not be resolved from available columns")
        || text.contains("must appear in the GROUP BY clause")
        || text.contains("must be part of GROUP BY")
    {
        return MySqlError::with_message(ErrorCode::NotInGroupBy, not_grouped(text));
    }
    if text.contains("does not support zero arguments")
        || text.contains("Failed to coerce arguments to satisfy a call to")
        || text.contains("No function matches the given name and argument types")
        || text.contains("expects") && text.contains("arguments") && text.contains("function")
    {
        let name = quoted("satisfy a call to '")
            .or_else(|| quoted("Error during planning: '"))
            .or_else(|| quoted("call to '"))
            .or_else(|| quoted("function '"));
        if let Some(name) = name {
            return MySqlError::new(ErrorCode::ParameterCount, &[&name.to_uppercase()]);
        }
    }
    if text.contains("queries have different number of columns")
        || text.contains("same number of columns")
        || text.contains("must have the same number of columns")
    {
        return MySqlError::new(ErrorCode::ColumnsInUnion, &[]);
    }
    if text.contains("Scalar subquery should only return one column") || text.contains("one column")
    {
        return MySqlError::new(ErrorCode::OperandColumns, &[&1]);
    }
    if text.contains("more than one row") || text.contains("more than 1 row") {
        return MySqlError::new(ErrorCode::SubqueryRows, &[]);
    }
    if text.contains("Aggregate function calls cannot be nested")
        || text.contains("Aggregate functions are not allowed")
        || text.contains("WHERE clause cannot contain aggregate")
    {
        return MySqlError::new(ErrorCode::InvalidGroupFunction, &[]);
    }
    if let Some((_, rest)) = text.split_once("Argument ")
        && let Some((argument, _)) = rest.split_once(" to grouping function is not in grouping")
    {
        return MySqlError::new(ErrorCode::GroupingNotInGroupBy, &[&argument]);
    }
    if let Some(columns) = text
        .split("For SELECT DISTINCT, ORDER BY expressions ")
        .nth(1)
    {
        let column = columns.split(" must appear").next().unwrap_or(columns);
        // A column that depends on what is grouped is wrapped.
        let wrapped = { column.strip_prefix("any_value(") }.and_then(|rest| rest.strip_suffix(')'));
        let column = wrapped.unwrap_or(column);
        let arguments: [&dyn std::fmt::Display; 4] = [&1, &"ORDER BY clause", &column, &"DISTINCT"];
        return MySqlError::new(ErrorCode::NotInDistinct, &arguments);
    }
    if let Some(error) = unequal_line(text) {
        return error;
    }
    if text.contains("Projections require unique expression names") {
        return MySqlError::with_message(ErrorCode::DuplicateColumn, text);
    }
    let code = match root {
        DataFusionError::NotImplemented(_) => ErrorCode::NotSupportedYet,
        DataFusionError::ResourcesExhausted(_) => ErrorCode::OutOfSortMemory,
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::DivideByZero => ErrorCode::DivisionByZero,
            ArrowError::ArithmeticOverflow(_) => {
                return MySqlError::new(ErrorCode::ValueOutOfRange, &[&"BIGINT", &text]);
            }
            ArrowError::CastError(_) => return wrong_cast(text),
            ArrowError::CsvError(_) => ErrorCode::FileRead,
            ArrowError::JsonError(_) => ErrorCode::FileRead,
            ArrowError::ParquetError(_) => ErrorCode::FileRead,
            _ => ErrorCode::Unknown,
        },
        DataFusionError::ParquetError(_) => ErrorCode::FileRead,
        _ => ErrorCode::Unknown,
    };
    if text.contains("Physical plan does not support logical expression")
        || text.contains("Correlated")
        || text.contains("correlated")
        || text.contains("null_aware anti join")
    {
        return not_supported(CORRELATED);
    }
    if code == ErrorCode::NotSupportedYet {
        let what = text.trim_start_matches("This feature is not implemented: ");
        // A text of the planner may go on with the structures that it was given.
        let words = what.split([':', '{', '(', '[']).next().unwrap_or(what);
        return not_supported(words.trim_end());
    }
    MySqlError::with_message(code, text)
}

/// ORDER BY and GROUP BY of a column that the select list does not have.
fn wrong_position(text: &str) -> Option<MySqlError> {
    let unknown = |position: &str, clause: &str| {
        MySqlError::new(ErrorCode::UnknownColumn, &[&position, &clause])
    };
    let number_after = |words: &str| {
        let rest = &text[text.find(words)? + words.len()..];
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.filter(|digits| !digits.is_empty())
    };
    if text.contains("Order by index starts at 1") {
        return Some(unknown("0", "order clause"));
    }
    if let Some(position) = number_after("Order by column out of bounds, specified: ") {
        return Some(unknown(position, "order clause"));
    }
    number_after("Cannot find column with position ")
        .map(|position| unknown(position, "group statement"))
}

/// A window whose frame or arguments are not what MySQL has.
fn wrong_window(text: &str) -> Option<MySqlError> {
    const FRAMES: [(&str, ErrorCode); 5] = [
        (
            "RANGE requires exactly one ORDER BY column",
            ErrorCode::WindowRangeKey,
        ),
        (
            "start bound cannot be UNBOUNDED FOLLOWING",
            ErrorCode::WindowFrameStart,
        ),
        (
            "end bound cannot be UNBOUNDED PRECEDING",
            ErrorCode::WindowFrameEnd,
        ),
        ("cannot be larger than end bound", ErrorCode::WindowFrame),
        ("must be non negative integers", ErrorCode::WindowFrame),
    ];
    const ARGUMENTS: [(&str, &str); 2] = [
        ("NTILE requires a positive integer", "ntile"),
        ("for the second argument of nth_value", "nth_value"),
    ];
    let frame = FRAMES.iter().find(|(words, _)| text.contains(words));
    if let Some((_, code)) = frame {
        return Some(MySqlError::new(*code, &[&"<unnamed window>"]));
    }
    let (_, name) = ARGUMENTS.iter().find(|(words, _)| text.contains(words))?;
    Some(MySqlError::new(ErrorCode::WrongArguments, &[name]))
}

/// Rows of VALUES, or the parts of a recursion, that do not go together.
fn wrong_list(text: &str) -> Option<MySqlError> {
    if let Some((_, rest)) = text.split_once("Inconsistent data length across values list: got ") {
        let (_, row) = rest.split_once(" values in row ")?;
        let row: u64 = row.split(' ').next()?.parse().ok()?;
        return Some(MySqlError::new(ErrorCode::ValueCount, &[&(row + 1)]));
    }
    let begins_with_null =
        text.contains("Cannot automatically convert ") && text.ends_with(" to Null");
    begins_with_null.then(|| not_supported("a recursive column that begins with NULL"))
}

/// A constant that is no value of the type that it is to have.
fn wrong_cast(text: &str) -> MySqlError {
    let value = text.split('\'').nth(1).unwrap_or_default();
    let number = match text.contains("to value of Float") {
        true => "DOUBLE",
        false => "INTEGER",
    };
    MySqlError::new(ErrorCode::TruncatedValue, &[&number, &value])
}

/// A line of a text file with too few or too many fields.
fn unequal_line(text: &str) -> Option<MySqlError> {
    let rest = &text[text.find("Encountered unequal lengths")?..];
    let numbers: Vec<u64> = rest
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let [expected, found, line, ..] = numbers.as_slice() else {
        return None;
    };
    let code = if found < expected {
        ErrorCode::TooFewRecords
    } else {
        ErrorCode::TooManyRecords
    };
    Some(MySqlError::new(code, &[line]))
}

/// The refusal of something that MySQL has.
pub(crate) fn not_supported(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}

fn no_such_function(name: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NoSuchFunction, &[&"FUNCTION", &name])
}

fn not_grouped(text: &str) -> String {
    let column = text
        .split_whitespace()
        .find(|word| word.contains('.'))
        .unwrap_or(text);
    format!(
        "'{}' isn't in GROUP BY; this is incompatible with sql_mode=only_full_group_by",
        column.trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
    )
}

fn find_mysql(error: &DataFusionError) -> Option<&MySqlError> {
    find::<MySqlError>(error)
}

/// Finds an error of one type in whatever was wrapped around it.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => {
                let inner: &(dyn Error + 'static) = inner.as_ref();
                return find(inner);
            }
            Some(DataFusionError::Shared(inner)) => return find::<T>(inner.as_ref()),
            Some(DataFusionError::Collection(errors)) => {
                return errors.iter().find_map(|inner| find::<T>(inner));
            }
            Some(DataFusionError::SchemaError(inner, _)) => {
                let inner: &(dyn Error + 'static) = inner.as_ref();
                if let Some(found) = inner.downcast_ref::<T>() {
                    return Some(found);
                }
            }
            _ => {}
        }
        if let Some(ArrowError::ExternalError(inner)) = error.downcast_ref::<ArrowError>() {
            let inner: &(dyn Error + 'static) = inner.as_ref();
            return find(inner);
        }
        next = error.source();
    }
    None
}
