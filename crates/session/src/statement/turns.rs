//! Whose turn it is to change a shared table.
//!
//! Every statement that changes a table takes its turn before it looks at the table, and has it
//! until it ends: rows and keys are then as the statement left them, whatever it does in between,
//! and the name means the same table. Temporary tables have no turns.
//!
//! **Never** waits for a turn while it has others that come later in the order of all turns, so no
//! two statements wait for each other.
//!
//! Who waits can be killed, since its task is, and gives up after `lock_wait_timeout` seconds,
//! or `innodb_lock_wait_timeout` where that was set to fewer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mayfly_sql::statement::TableName;
use mayfly_table::{Purpose, Table, Turn, Turns};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use crate::profile::Stage;

/// A turn that somebody else has.
#[derive(Clone)]
pub(crate) struct Busy {
    pub(crate) turns: Turns,
    pub(crate) purpose: Purpose,
}

/// Until when a statement waits; known as soon as it waits.
#[derive(Default)]
pub(crate) struct Deadline(Option<Instant>);

/// The turns that a statement has while it finds out what its names mean.
#[derive(Default)]
pub(crate) struct HeldTurns {
    held: Vec<(Busy, Turn)>,
    deadline: Deadline,
}

impl HeldTurns {
    pub(crate) fn into_turns(self) -> Vec<Turn> {
        self.held.into_iter().map(|(_, turn)| turn).collect()
    }
}

/// What a statement that writes rows needs of their table: those with keys have numbers, which
/// follow each other.
pub(crate) fn purpose_of_rows(table: &Table) -> Purpose {
    match table.definition().keys.is_empty() {
        true => Purpose::Append,
        false => Purpose::Change,
    }
}

/// What any other change needs.
pub(crate) fn purpose_of_change(_: &Table) -> Purpose {
    Purpose::Change
}

impl Job {
    /// A table that changes, and the right to change it.
    pub(crate) async fn table_to_change(
        &self,
        name: &TableName,
    ) -> Result<(Arc<Table>, Vec<Turn>), MySqlError> {
        self.one_in_turn(name, purpose_of_change).await
    }

    /// A table that rows are added to, and the right to do so.
    pub(crate) async fn table_to_fill(
        &self,
        name: &TableName,
    ) -> Result<(Arc<Table>, Vec<Turn>), MySqlError> {
        self.one_in_turn(name, purpose_of_rows).await
    }

    async fn one_in_turn(
        &self,
        name: &TableName,
        purpose: fn(&Table) -> Purpose,
    ) -> Result<(Arc<Table>, Vec<Turn>), MySqlError> {
        let find = || Ok(vec![self.table(name)?]);
        let (mut tables, turns) = self.in_turn(purpose, find).await?;
        Ok((tables.swap_remove(0), turns))
    }

    /// Tables that change, and the right to change them: those that `find` finds when all turns
    /// are taken.
    pub(crate) async fn tables_to_change(
        &self,
        find: impl Fn() -> Result<Vec<Arc<Table>>, MySqlError>,
    ) -> Result<(Vec<Arc<Table>>, Vec<Turn>), MySqlError> {
        self.in_turn(purpose_of_change, find).await
    }

    async fn in_turn(
        &self,
        purpose: fn(&Table) -> Purpose,
        find: impl Fn() -> Result<Vec<Arc<Table>>, MySqlError>,
    ) -> Result<(Vec<Arc<Table>>, Vec<Turn>), MySqlError> {
        let mut held = HeldTurns::default();
        loop {
            let found = find()?;
            if self.hold_turns(&mut held, &found, purpose).await? {
                return Ok((found, held.into_turns()));
            }
        }
    }

    /// Takes the turns of some tables, in place of those that are held, unless they are the same.
    /// Whether they are: what was found out before stands then. Otherwise it is to be found out
    /// again, since somebody may have altered, dropped or renamed a table meanwhile.
    pub(crate) async fn hold_turns(
        &self,
        held: &mut HeldTurns,
        tables: &[Arc<Table>],
        purpose: fn(&Table) -> Purpose,
    ) -> Result<bool, MySqlError> {
        let wanted = turns_of(tables, purpose);
        let is_same = |(one, (other, _)): (&Busy, &(Busy, Turn))| {
            one.turns.are(&other.turns) && one.purpose == other.purpose
        };
        if wanted.len() == held.held.len() && wanted.iter().zip(&held.held).all(is_same) {
            return Ok(true);
        }
        held.held.clear();
        for busy in wanted {
            let turn = self.take_turn(&busy, &mut held.deadline).await?;
            held.held.push((busy, turn));
        }
        Ok(false)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// 1205 when it takes too long.
    pub(crate) async fn take_turn(
        &self,
        busy: &Busy,
        deadline: &mut Deadline,
    ) -> Result<Turn, MySqlError> {
        if let Some(turn) = busy.turns.try_take(busy.purpose) {
            return Ok(turn);
        }
        let started = Instant::now();
        let until = *deadline.0.get_or_insert_with(|| {
            let seconds = self.connection.local().variables.lock_wait_seconds();
            started + Duration::from_secs(seconds)
        });
        self.running.enter(Stage::WaitingForTable);
        let taken = busy.turns.take(busy.purpose);
        let taken = tokio::time::timeout_at(until.into(), taken).await;
        self.connection.local().waited += started.elapsed();
        self.running.enter(Stage::Executing);
        taken.map_err(|_| MySqlError::new(ErrorCode::LockWaitTimeout, &[]))
    }
}

/// The turns of some tables, in the order in which they are taken, each once.
fn turns_of(tables: &[Arc<Table>], purpose: fn(&Table) -> Purpose) -> Vec<Busy> {
    let wanted = tables.iter().filter_map(|table| {
        Some(Busy {
            turns: table.turns()?.clone(),
            purpose: purpose(table),
        })
    });
    let mut wanted: Vec<Busy> = wanted.collect();
    wanted.sort_by_key(|busy| busy.turns.address());
    wanted.dedup_by(|one, other| one.turns.are(&other.turns));
    wanted
}
