//! Which tables a statement changes beside reading.

use mayfly_sql::statement::{Delete, Insert, Update};

/// What an explained statement does with the rows that it finds.
pub(super) enum Target {
    /// It shows them.
    Client,
    /// It changes tables that it reads.
    Changed {
        /// What MySQL says of them: UPDATE or DELETE.
        word: &'static str,
        /// Their names or aliases; empty for the first table.
        names: Vec<String>,
    },
    /// It adds them to a table.
    Filled {
        /// INSERT or REPLACE.
        word: &'static str,
        table: String,
    },
}

impl Target {
    pub(super) fn of_update(update: &Update) -> Target {
        let assigned = update.assignments.iter();
        Target::Changed {
            word: "UPDATE",
            names: { assigned.filter_map(|column| column.table.as_ref()) }
                .map(|table| table.table.clone())
                .collect(),
        }
    }

    pub(super) fn of_delete(delete: &Delete) -> Target {
        let targets = delete.targets.iter();
        Target::Changed {
            word: "DELETE",
            names: targets.map(|target| target.table.clone()).collect(),
        }
    }

    pub(super) fn of_insert(insert: &Insert) -> Target {
        Target::Filled {
            word: match insert.replace {
                true => "REPLACE",
                false => "INSERT",
            },
            table: insert.table.table.clone(),
        }
    }

    /// The word for a table that a SELECT reads at a place of the plan, if it is changed.
    pub(super) fn word_for(
        &self,
        select: Option<usize>,
        index: usize,
        name: &str,
    ) -> Option<&'static str> {
        let Target::Changed { word, names } = self else {
            return None;
        };
        let name = name.rsplit('.').next().unwrap_or(name);
        let is_changed = match names.is_empty() {
            true => index == 0,
            false => names.iter().any(|changed| changed == name),
        };
        (select == Some(1) && is_changed).then_some(*word)
    }

    /// The word for a SELECT that reads no table, if its rows were to change.
    pub(super) fn word_of_empty(&self, select: usize) -> Option<&'static str> {
        match self {
            Target::Changed { word, .. } if select == 1 => Some(*word),
            _ => None,
        }
    }
}
