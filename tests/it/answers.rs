//! What a statement answers, whoever is asked: rows in any order, or the number of an error.

use mayfly_session::Session;
use mayfly_tests::mariadb::{Connection, EMPTY};

use crate::engine::run;

/// Rows in any order, or the number of an error.
pub type Answer = Result<Vec<Vec<String>>, u16>;

/// The number of what no statement should end with.
const INTERNAL: u16 = 1105;

/// What a session of ours answers.
///
/// # Panics
/// If that is an internal error.
pub async fn answer(session: &mut Session, sql: &str) -> Answer {
    let ours = run(session, sql).await;
    let mut rows = ours.map(Option::unwrap_or_default).map_err(|error| {
        assert_ne!(error.code, INTERNAL, "{sql}: {error}");
        error.code
    })?;
    rows.sort();
    Ok(rows)
}

/// What MariaDB answers.
pub fn answer_of(server: &mut Connection, sql: &str) -> Answer {
    let mut rows = server.rows(sql).map_err(|error| error.number)?;
    if !rows.is_empty() {
        rows.remove(0);
    }
    for cell in rows.iter_mut().flatten().filter(|cell| cell.is_empty()) {
        cell.push_str(EMPTY);
    }
    rows.sort();
    Ok(rows)
}
