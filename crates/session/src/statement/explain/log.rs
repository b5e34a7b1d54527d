//! What the log of slow statements says of their plans.

use mayfly_sql::statement::{Explain, ExplainFormat, InsertSource, Statement};

use super::Job;

/// The columns of MariaDB's log. What was met is not known for each table.
const LOGGED: [&str; 13] = [
    "id",
    "select_type",
    "table",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "r_rows",
    "filtered",
    "r_filtered",
    "Extra",
];

impl Job {
    /// Keeps what EXPLAIN says of a statement for the log of slow ones.
    pub(crate) async fn explain_for_log(&self, statement: &Statement) {
        let is_explained = match statement {
            Statement::Query(_) | Statement::Update(_) | Statement::Delete(_) => true,
            // Nothing is planned for rows that stand in the statement.
            Statement::Insert(insert) => matches!(insert.source, InsertSource::Query(_)),
            _ => false,
        };
        if !is_explained {
            return;
        }
        let explain = Explain {
            analyze: false,
            format: Some(ExplainFormat::Traditional),
            statement: Box::new(statement.clone()),
        };
        // Where it cannot be planned, running it says why.
        if let Ok(explanation) = self.explanation(explain).await {
            self.connection.local().explained = Some(explanation.listing.log_lines(&LOGGED));
        }
        // What planning warns of is told when the statement is planned to run.
        let mut values = self.connection.values.lock();
        values.warnings.clear();
        values.warning_count = 0;
        values.refused = None;
    }
}
