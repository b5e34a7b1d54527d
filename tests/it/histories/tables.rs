//! The shared tables of a history, and the rows that one connection has in them.
//!
//! Each connection writes rows of its own block of ids only, so its own answers tell what they must
//! be, whatever others do to the same tables meanwhile.

use std::collections::BTreeSet;

/// Ids that belong to one connection.
pub const BLOCK: u64 = 8192;
/// Codes of rows that were given another one lie in this part of the block.
pub const SPARE_CODES: u64 = 4096;

/// What happens to a shared table beside changes of its rows.
pub struct SharedTable {
    pub name: &'static str,
    /// Whether it has a primary key and others.
    pub is_keyed: bool,
    /// Whether TRUNCATE and DELETE of all rows come to it.
    pub is_emptied: bool,
    /// Whether it is dropped and created again.
    pub is_dropped: bool,
    /// Whether it is renamed and comes back.
    pub is_renamed: bool,
}

const KEYED: SharedTable = SharedTable {
    name: "orders",
    is_keyed: true,
    is_emptied: false,
    is_dropped: false,
    is_renamed: false,
};

/// All of them; all are altered.
pub const TABLES: [SharedTable; 5] = [
    KEYED,
    SharedTable {
        name: "items",
        is_emptied: true,
        ..KEYED
    },
    SharedTable {
        name: "heap",
        is_keyed: false,
        is_emptied: true,
        ..KEYED
    },
    SharedTable {
        name: "moving",
        is_renamed: true,
        ..KEYED
    },
    SharedTable {
        name: "fleeting",
        is_dropped: true,
        ..KEYED
    },
];

/// The columns that every statement names; `touched` is changed by everybody.
pub const COLUMNS: &str = "id, block, origin, v, code, filler";

impl SharedTable {
    /// The statement that makes it.
    pub fn definition(&self) -> String {
        let keys = match self.is_keyed {
            true => {
                ", PRIMARY KEY (id), UNIQUE KEY code (code), KEY block (block), KEY v (v, block)"
            }
            false => "",
        };
        format!(
            "CREATE TABLE IF NOT EXISTS {} (id BIGINT, block BIGINT, origin BIGINT, v INT, \
             code BIGINT, filler VARCHAR(500), touched INT DEFAULT 0{keys})",
            self.name
        )
    }

    /// Where it is while it is renamed.
    pub fn other_name(&self) -> String {
        format!("{}_away", self.name)
    }

    /// Conditions that all its rows meet; each is answered another way.
    pub fn all_rows(&self) -> &'static [&'static str] {
        match self.is_keyed {
            true => &[
                "id + 0 >= 0",
                "id >= 0",
                "block >= 0",
                "code >= 0",
                "v >= 0",
                "filler >= ''",
            ],
            false => &["id >= 0", "block >= 0"],
        }
    }
}

/// A row, its id and code counted from the beginning of its block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub slot: u64,
    /// The statement that wrote it and its place there; no two rows of a statement have the same.
    pub origin: u64,
    pub v: i64,
    pub code: u64,
    /// Length of the filler.
    pub filler: u64,
}

/// Why a statement must fail: MySQL's number.
pub const DUPLICATE: u16 = 1062;
/// The same for a value that is too large.
pub const OUT_OF_RANGE: u16 = 1264;

/// The rows that a connection has in one table, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Rows that come in any order.
    pub fn of(mut rows: Vec<Row>) -> Rows {
        rows.sort_unstable();
        Rows(rows)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Changes the rows that are chosen; how many are others than before.
    pub fn change(&mut self, chosen: impl Fn(&Row) -> bool, change: impl Fn(&mut Row)) -> u64 {
        let mut changed = 0;
        for row in self.0.iter_mut().filter(|row| chosen(row)) {
            let before = row.clone();
            change(row);
            changed += u64::from(*row != before);
        }
        self.0.sort_unstable();
        changed
    }

    /// Takes out the rows that are chosen; how many.
    pub fn remove(&mut self, chosen: impl Fn(&Row) -> bool) -> u64 {
        let before = self.0.len();
        self.0.retain(|row| !chosen(row));
        (before - self.0.len()) as u64
    }

    /// Whether a slot is taken.
    pub fn has(&self, slot: u64) -> bool {
        self.at(slot).is_some()
    }

    /// The first row of a slot.
    pub fn at(&self, slot: u64) -> Option<usize> {
        let place = self.0.partition_point(|row| row.slot < slot);
        self.0.get(place).filter(|row| row.slot == slot)?;
        Some(place)
    }

    /// The row at a place, to be changed in what does not order it.
    pub fn get_mut(&mut self, place: usize) -> &mut Row {
        &mut self.0[place]
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        let place = self.0.partition_point(|other| *other < row);
        self.0.insert(place, row);
    }

    /// What its keys and types refuse.
    pub fn check(&self, table: &SharedTable) -> Result<(), u16> {
        if self.iter().any(|row| row.v > i64::from(i32::MAX)) {
            return Err(OUT_OF_RANGE);
        }
        let slots: BTreeSet<_> = self.iter().map(|row| row.slot).collect();
        let codes: BTreeSet<_> = self.iter().map(|row| row.code).collect();
        let is_unique = slots.len() == self.len() && codes.len() == self.len();
        match table.is_keyed && !is_unique {
            true => Err(DUPLICATE),
            false => Ok(()),
        }
    }
}
