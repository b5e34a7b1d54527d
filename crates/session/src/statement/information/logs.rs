//! `mysql.general_log` and `mysql.slow_log`: the tables of `mysql` that lists have, always empty.
//!
//! MariaDB's mariadb-dump asks for their definitions, listed or not, and stops without them.

use mayfly_table::{Column, Definition};
use mayfly_types::ColumnType;

use super::super::Job;
use super::system::MYSQL;
use crate::listing::declared_columns;

/// Their names, columns and comments, as in MySQL 8.4.
const LOGS: [(&str, &str, &str); 2] = [
    ("general_log", GENERAL, "General log"),
    ("slow_log", SLOW, "Slow log"),
];

/// The columns of the general log.
pub(super) const GENERAL: &str = "event_time timestamp(6), user_host mediumtext, \
     thread_id bigint unsigned, server_id int unsigned, command_type varchar(64), \
     argument mediumblob";

/// The columns of the slow log.
pub(super) const SLOW: &str = "start_time timestamp(6), user_host mediumtext, \
     query_time time(6), lock_time time(6), rows_sent int, rows_examined int, db varchar(512), \
     last_insert_id int, insert_id int, server_id int unsigned, sql_text mediumblob, \
     thread_id bigint unsigned";

/// When an event was, which a row has by default.
const NOW: &str = "CURRENT_TIMESTAMP(6)";

/// Whether this table of `mysql` is a log.
pub(super) fn is_log(name: &str) -> bool {
    LOGS.iter().any(|(log, ..)| *log == name)
}

fn definition(columns: &'static str, comment: &str) -> Definition {
    let columns = declared_columns(columns).filter_map(|(name, declared)| {
        let column_type: ColumnType = declared.parse().ok()?;
        let is_moment = matches!(column_type, ColumnType::Timestamp { .. });
        let mut column = Column::new(name, column_type, false);
        if is_moment {
            column.default = Some(NOW.to_owned());
            column.on_update = Some(NOW.to_owned());
        }
        Some(column)
    });
    let mut definition = Definition::from(columns.collect::<Vec<Column>>());
    definition.comment = comment.to_owned();
    definition
}

impl Job {
    /// The logs of a database, but for those in whose places somebody made tables.
    pub(crate) fn logs(&self, database: &str) -> Vec<(&'static str, Definition)> {
        if database != MYSQL {
            return Vec::new();
        }
        let names = self.system_names(MYSQL);
        let logs = LOGS.into_iter().filter(|(name, ..)| names.contains(name));
        logs.map(|(name, columns, comment)| (name, definition(columns, comment)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{LOGS, declared_columns, definition};

    #[test]
    fn a_definition_has_each_column() {
        for (_, columns, comment) in LOGS {
            let count = declared_columns(columns).count();
            assert_eq!(definition(columns, comment).columns.len(), count);
        }
    }
}
