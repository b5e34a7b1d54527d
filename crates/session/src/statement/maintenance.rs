//! ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.
//!
//! Statistics are always up to date, and tables have nothing that could be repaired or made denser.
//! CHECK reads all rows as a query does, so that it stops when it is killed; CHECKSUM adds up
//! checksums of rows, whatever their order. What is wrong with one table is a row of the answer, as
//! in MySQL.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use mayfly_sql::parse;
use mayfly_sql::statement::{Maintenance, MaintenanceKind, Statement, TableName};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::Job;
use super::information::refuse_information;
use super::maintenance_listing::answer;
use super::show::definition::quoted;
use crate::listing::some;
use crate::outcome::Outcome;

/// What reading a page says that does not hold what was written.
const DAMAGED: [ErrorCode; 2] = [ErrorCode::FileRead, ErrorCode::StorageEngine];

/// What is said of a table, beside its name: a type of message and its text.
type Message = (&'static str, String);

fn verb(kind: MaintenanceKind) -> &'static str {
    match kind {
        MaintenanceKind::Analyze => "analyze",
        MaintenanceKind::Check => "check",
        MaintenanceKind::Checksum { .. } => "checksum",
        MaintenanceKind::Optimize => "optimize",
        MaintenanceKind::Repair => "repair",
    }
}

fn ok() -> Vec<Message> {
    vec![("status", "OK".to_owned())]
}

fn unable(kind: MaintenanceKind) -> Vec<Message> {
    let verb = verb(kind);
    let text = format!("The storage engine for the table doesn't support {verb}");
    vec![("note", text)]
}

fn failed(error: &MySqlError) -> Vec<Message> {
    vec![
        ("Error", error.message.clone()),
        ("status", "Operation failed".to_owned()),
    ]
}

/// How many checksums are put together: their text is shorter than the least `max_allowed_packet`,
/// beyond which a text is NULL.
const TOGETHER: usize = 64;

/// The checksum of a row of these columns, as SQL. A value counts by the checksum of its text, NULL
/// as what no checksum is. MD5 makes a change of one value change a row's checksum by another
/// number in each row: CRC32 alone has sums that stay the same when rows exchange values.
fn checksum_of_row(columns: Vec<String>) -> String {
    let together = |checksums: &[String]| {
        let each = checksums.iter().map(|sum| format!("IFNULL({sum}, '-')"));
        let each: Vec<String> = each.collect();
        format!("CONCAT_WS(',', {})", each.join(", "))
    };
    let checksum = |text: String| format!("CRC32({text})");
    let mut checksums: Vec<String> = columns.into_iter().map(checksum).collect();
    while checksums.len() > TOGETHER {
        let parts = checksums.chunks(TOGETHER).map(together);
        checksums = parts.map(checksum).collect();
    }
    format!("CRC32(MD5({}))", together(&checksums))
}

fn damaged(what: String) -> Vec<Message> {
    vec![("error", what), ("error", "Corrupt".to_owned())]
}

impl Job {
    pub(crate) async fn maintain(&self, asked: Maintenance) -> Result<Outcome, MySqlError> {
        let Maintenance { kind, tables } = asked;
        let names = self.full_names(&tables)?;
        let mut listing = answer(kind);
        for (database, table) in names {
            let shown = format!("{database}.{table}");
            if kind != MaintenanceKind::Check {
                refuse_information(&self.connection, &database)?;
            }
            let name = TableName {
                database: Some(database),
                table,
            };
            if let MaintenanceKind::Checksum { quick } = kind {
                let checksum = self.checksum(&name, quick).await?;
                listing.push(vec![some(shown), checksum.map(|sum| sum.to_string())]);
                continue;
            }
            for (level, text) in self.maintained(kind, &name).await? {
                listing.push(vec![
                    some(&shown),
                    some(verb(kind)),
                    some(level),
                    some(text),
                ]);
            }
        }
        Ok(Outcome::ready(listing.batch(None)?))
    }

    /// Databases and tables of a list.
    ///
    /// # Errors
    /// 1046 without a database, 1066 for a table that is named twice.
    fn full_names(&self, tables: &[TableName]) -> Result<Vec<(String, String)>, MySqlError> {
        let mut names: Vec<(String, String)> = Vec::with_capacity(tables.len());
        for name in tables {
            let full = (self.database_of(name)?, name.table.clone());
            if names.contains(&full) {
                return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&name.table]));
            }
            names.push(full);
        }
        Ok(names)
    }

    async fn maintained(
        &self,
        kind: MaintenanceKind,
        name: &TableName,
    ) -> Result<Vec<Message>, MySqlError> {
        if self.is_system_table(name) {
            return Ok(unable(kind));
        }
        if let Some((database, view)) = self.view(name) {
            return match kind {
                MaintenanceKind::Check => match self.view_columns(&database, &view).await {
                    Ok(_) => Ok(ok()),
                    Err(error) => Ok(damaged(error.message)),
                },
                _ => Ok(failed(&Job::not_base_table(&database, &view.name))),
            };
        }
        let table = match self.table(name) {
            Ok(table) => table,
            Err(error) => return Ok(failed(&error)),
        };
        match kind {
            MaintenanceKind::Analyze => Ok(ok()),
            MaintenanceKind::Check => self.check_table(&table, name).await,
            _ => Ok(unable(kind)),
        }
    }

    /// Reads all rows of a table.
    async fn check_table(
        &self,
        table: &Table,
        name: &TableName,
    ) -> Result<Vec<Message>, MySqlError> {
        match self.sum_of_rows(table, name).await {
            Ok(_) => Ok(ok()),
            Err(error) if DAMAGED.iter().any(|code| code.number() == error.code) => {
                Ok(damaged(error.message))
            }
            Err(error) => Err(error),
        }
    }

    /// The checksum of a table; none where it does not exist or is made anew for each statement, or
    /// where one is asked for that is kept: none is.
    async fn checksum(&self, name: &TableName, quick: bool) -> Result<Option<u64>, MySqlError> {
        if self.is_system_table(name) || self.view(name).is_some() {
            return Ok(None);
        }
        let table = match self.table(name) {
            Ok(table) => table,
            Err(error) => {
                let level = Level::Error;
                self.connection.warn(Warning { level, error });
                return Ok(None);
            }
        };
        match quick {
            true => Ok(None),
            false => self.sum_of_rows(&table, name).await.map(Some),
        }
    }

    /// Adds up the checksums of all rows, modulo 2^32.
    async fn sum_of_rows(&self, table: &Table, name: &TableName) -> Result<u64, MySqlError> {
        let columns = table.columns().iter();
        let columns = columns.map(|column| quoted(&column.name)).collect();
        let database = name.database.as_deref().map(quoted);
        let text = format!(
            "DO (SELECT CAST(COALESCE(SUM({}), 0) % 4294967296 AS UNSIGNED) AS sum \
             FROM {}.{})",
            checksum_of_row(columns),
            database.unwrap_or_default(),
            quoted(&name.table)
        );
        let (statement, source) = parse::parse(&text)?;
        let Statement::Do(expressions) = statement else {
            return Err(MySqlError::new(ErrorCode::Unknown, &[]));
        };
        let job = Job {
            source: Arc::new(source),
            ..self.clone()
        };
        let mut sum = ScalarValue::Null;
        for expression in &expressions {
            sum = Box::pin(job.evaluate(expression)).await?;
        }
        match sum.cast_to(&DataType::UInt64) {
            Ok(ScalarValue::UInt64(Some(sum))) => Ok(sum),
            _ => Err(MySqlError::new(ErrorCode::Unknown, &[])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TOGETHER, checksum_of_row};

    #[test]
    fn no_text_of_a_checksum_is_longer_than_a_packet() {
        const PACKET_BYTES: usize = 1024;
        let longest = u32::MAX.to_string().len() + ",".len();
        assert!(TOGETHER * longest <= PACKET_BYTES);
        for count in [1, TOGETHER, TOGETHER + 1, TOGETHER * TOGETHER] {
            let columns = (0..count).map(|index| format!("`{index}`"));
            let text = checksum_of_row(columns.collect());
            // Between two beginnings of a text there are no more checksums than it may have.
            for part in text.split("CONCAT_WS") {
                assert!(part.matches("IFNULL").count() <= TOGETHER + 1, "{part}");
            }
        }
    }
}
