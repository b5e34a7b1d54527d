//! What a statement wrote, and how it is counted.

/// What a statement wrote.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// Rows that came from the source.
    pub(crate) rows: u64,
    /// Rows that are new.
    pub(crate) inserted: u64,
    /// Rows that others took the places of.
    pub(crate) deleted: u64,
    /// Rows that were met by others, and changed or left as they were.
    pub(crate) met: u64,
    /// Those of them that were changed.
    pub(crate) updated: u64,
    /// What a client gets as the number of the insert; see `Counter::insert_id`.
    pub(crate) insert_id: u64,
    /// Whether rows were left out silently: their number is that of the duplicates then.
    pub(super) ignores: bool,
    /// Whether the client counts rows that were found, changed or not: CLIENT_FOUND_ROWS.
    pub(super) counts_found: bool,
    /// Whether the rows are those of VALUES: of a query nobody is told which were found.
    pub(super) of_values: bool,
}

impl Written {
    /// Rows of another table, none of which met one that was there.
    pub(crate) fn all(rows: u64) -> Written {
        Written {
            rows,
            inserted: rows,
            ..Written::default()
        }
    }

    /// Whether the table has other rows than before.
    pub(super) fn has_changed(&self) -> bool {
        self.inserted + self.deleted + self.updated > 0
    }

    /// What the client is told. A changed row counts twice, as in MySQL.
    pub(crate) fn affected(&self) -> u64 {
        self.inserted + self.deleted + self.updated + self.told_of_met()
    }

    /// What the statement says of rows that met others.
    pub(crate) fn duplicates(&self) -> u64 {
        match self.ignores {
            true => self.rows - self.inserted - self.updated,
            false if self.of_values => self.deleted + self.told_of_met(),
            false => self.deleted + self.updated,
        }
    }

    fn told_of_met(&self) -> u64 {
        match self.counts_found {
            true => self.met,
            false => self.updated,
        }
    }
}
