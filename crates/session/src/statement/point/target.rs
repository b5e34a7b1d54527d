//! The table of a statement on few rows at one moment.

use std::cell::{self, RefCell};
use std::sync::Arc;

use mayfly_exec::TableReads;
use mayfly_table::{Dictionary, Table, Turn};

use super::known::{Action, OnDuplicate, PointStatement};
use crate::commands::Command;
use crate::local::Local;
use crate::settings::Settings;
use crate::statement::Busy;
use crate::status::Status;

/// A turn, and whose it is.
pub(crate) type HeldTurn = (Busy, Turn);

/// The table of a statement at one moment.
pub(super) struct Target {
    pub(super) table: Arc<Table>,
    /// Whether it is a temporary table of the session.
    pub(super) is_own: bool,
    /// Whether the transaction may not change it.
    pub(super) is_read_only: bool,
    pub(super) settings: Settings,
    /// The right to write it, if the caller has it already.
    pub(super) held: RefCell<Option<HeldTurn>>,
    /// What it needs, where that was somebody else's turn.
    pub(super) busy: RefCell<Option<Busy>>,
    /// What was read of it.
    pub(super) reads: cell::Cell<TableReads>,
}

impl PointStatement {
    /// The table, if the name still means the one that the statement was compiled for, or another
    /// that was made as that one.
    pub(super) fn target(&self, local: &mut Local, shared: &Dictionary) -> Option<Target> {
        let database = self.name.database.as_ref().or(local.database.as_ref())?;
        let own = local.temporary.table(database, &self.name.table);
        let is_own = own.is_some();
        let table = match own {
            Some(own) => own,
            None => shared.table(database, &self.name.table).ok()?,
        };
        if !self.meant.is(&table, database) {
            return None;
        }
        Some(Target {
            table,
            is_own,
            is_read_only: !is_own && local.only_reads(),
            settings: local.settings(),
            held: RefCell::default(),
            busy: RefCell::default(),
            reads: cell::Cell::default(),
        })
    }

    /// Whether a change may be refused, be there rows that it changes or not: the long way knows.
    pub(super) fn may_be_refused(&self, target: &Target) -> bool {
        match self.action {
            Action::Insert { .. } | Action::Upsert { .. } => target.is_read_only,
            Action::Update { .. } | Action::Delete { .. } => {
                target.is_read_only || target.settings.safe_updates
            }
            Action::Select { .. } | Action::Compute { .. } => false,
        }
    }

    /// Counts the statement.
    pub(super) fn count(&self, status: &mut Status) {
        match self.action {
            Action::Insert {
                on_duplicate: OnDuplicate::Replace,
                ..
            } => status.commands.add(Command::Replace),
            Action::Insert { .. } | Action::Upsert { .. } => status.inserts += 1,
            Action::Update { .. } => status.updates += 1,
            Action::Delete { is_multi: true, .. } => status.commands.add(Command::DeleteSeveral),
            Action::Delete { .. } => status.deletes += 1,
            Action::Select { .. } | Action::Compute { .. } => status.selects += 1,
        }
    }
}
