//! What CREATE TABLE says of a table: its columns, keys and checks.
//!
//! **Owns** the words only. Expressions stay SQL text: who writes rows computes them.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::{Field, Schema};
use mayfly_types::{COLLATION_KEY, Collation, ColumnType};

/// Most bytes of a key, four for each character of a text: as InnoDB has it.
pub const KEY_BYTES_MAX: usize = 3072;

/// A table as it was declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// The columns, in their order.
    pub columns: Vec<Column>,
    /// The keys in the order in which they are tried and shown: the primary key, then unique ones,
    /// then the others.
    pub keys: Vec<Key>,
    /// The CHECK constraints.
    pub checks: Vec<Check>,
    /// The COMMENT clause; empty if there is none.
    pub comment: String,
    /// ROW_FORMAT=COMPRESSED: pages are compressed on their way to the disk, whatever that costs.
    pub is_compressed: bool,
    /// Options as they were written, in the order in which they are shown.
    pub options: BTreeMap<TableOption, String>,
}

/// An option of a table that is shown as it was written. None of them but ROW_FORMAT=COMPRESSED
/// changes anything here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableOption {
    /// MIN_ROWS.
    MinRows,
    /// MAX_ROWS.
    MaxRows,
    /// AVG_ROW_LENGTH.
    AvgRowLength,
    /// PACK_KEYS.
    PackKeys,
    /// STATS_PERSISTENT.
    StatsPersistent,
    /// STATS_AUTO_RECALC.
    StatsAutoRecalc,
    /// STATS_SAMPLE_PAGES.
    StatsSamplePages,
    /// CHECKSUM.
    Checksum,
    /// DELAY_KEY_WRITE.
    DelayKeyWrite,
    /// ROW_FORMAT.
    RowFormat,
}

impl TableOption {
    /// All of them.
    pub const ALL: [TableOption; 10] = [
        TableOption::MinRows,
        TableOption::MaxRows,
        TableOption::AvgRowLength,
        TableOption::PackKeys,
        TableOption::StatsPersistent,
        TableOption::StatsAutoRecalc,
        TableOption::StatsSamplePages,
        TableOption::Checksum,
        TableOption::DelayKeyWrite,
        TableOption::RowFormat,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            TableOption::MinRows => "MIN_ROWS",
            TableOption::MaxRows => "MAX_ROWS",
            TableOption::AvgRowLength => "AVG_ROW_LENGTH",
            TableOption::PackKeys => "PACK_KEYS",
            TableOption::StatsPersistent => "STATS_PERSISTENT",
            TableOption::StatsAutoRecalc => "STATS_AUTO_RECALC",
            TableOption::StatsSamplePages => "STATS_SAMPLE_PAGES",
            TableOption::Checksum => "CHECKSUM",
            TableOption::DelayKeyWrite => "DELAY_KEY_WRITE",
            TableOption::RowFormat => "ROW_FORMAT",
        }
    }

    /// Whether 0 is as good as nothing.
    pub fn is_unset_by_zero(self) -> bool {
        use TableOption::{PackKeys, StatsAutoRecalc, StatsPersistent};
        !matches!(self, PackKeys | StatsAutoRecalc | StatsPersistent)
    }
}

/// How a key was asked to be kept; every key is a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Using {
    /// USING BTREE.
    BTree,
    /// USING HASH.
    Hash,
}

/// A column as it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it takes NULL.
    pub is_nullable: bool,
    /// The DEFAULT clause as SQL text, if there is one.
    pub default: Option<String>,
    /// The ON UPDATE clause as SQL text: what an UPDATE of other columns gives it.
    pub on_update: Option<String>,
    /// The expression of a generated column.
    pub generated: Option<Generated>,
    /// Whether it was declared AUTO_INCREMENT.
    pub is_auto_increment: bool,
    /// Whether `*` and an INSERT without a list of columns leave it out.
    pub is_invisible: bool,
    /// The collation, if it is not the default one.
    pub collation: Option<Collation>,
    /// The COMMENT clause; empty if there is none.
    pub comment: String,
}

/// How a generated column is computed from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The expression as SQL text.
    pub expression: String,
    /// STORED; all are kept with their row, whatever was declared.
    pub is_stored: bool,
}

/// What a key forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// Equal values and NULL.
    Primary,
    /// Equal values, but for NULL.
    Unique,
    /// Nothing: it is there to be searched.
    Plain,
}

/// A key: columns whose values are kept sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name; `PRIMARY` for the primary key.
    pub name: String,
    /// What it forbids.
    pub kind: KeyKind,
    /// Its columns, most significant first.
    pub parts: Vec<KeyPart>,
    /// The COMMENT clause; empty if there is none.
    pub comment: String,
    /// The USING clause, if there is one.
    pub using: Option<Using>,
}

/// A column of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The place of the column in the table.
    pub column: usize,
    /// Only so much of the beginning: characters of a text, bytes of a binary string.
    pub prefix: Option<u32>,
    /// DESC.
    pub is_descending: bool,
}

impl Key {
    /// A key without further clauses.
    pub fn new(name: impl Into<String>, kind: KeyKind, parts: Vec<KeyPart>) -> Self {
        Self {
            name: name.into(),
            kind,
            parts,
            comment: String::new(),
            using: None,
        }
    }
}

impl KeyPart {
    /// All of a column, the least value first.
    pub fn new(column: usize) -> Self {
        Self {
            column,
            prefix: None,
            is_descending: false,
        }
    }
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The condition as SQL text.
    pub expression: String,
    /// Whether it is NOT ENFORCED when false.
    pub is_enforced: bool,
}

impl From<Vec<Column>> for Definition {
    /// Columns without keys and checks.
    fn from(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }
}

impl Definition {
    /// The primary key.
    pub fn primary_key(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.kind == KeyKind::Primary)
    }

    /// Whether a key tells each row from the others: it is unique, over whole columns without NULL.
    pub fn identifies(&self, key: &Key) -> bool {
        let mut parts = key.parts.iter();
        key.is_unique()
            && parts.all(|part| part.prefix.is_none() && !self.columns[part.column].is_nullable)
    }

    /// The place of the AUTO_INCREMENT column.
    pub fn auto_increment(&self) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.is_auto_increment)
    }

    /// The place of a column; names of columns do not count case.
    pub fn column(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.columns
            .iter()
            .position(|column| column.name.to_lowercase() == name)
    }

    /// The place of a key; names of keys do not count case.
    pub fn key(&self, name: &str) -> Option<usize> {
        self.keys
            .iter()
            .position(|key| key.name.eq_ignore_ascii_case(name))
    }

    /// The schema of the rows: one field a column.
    pub fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(Column::field).collect::<Vec<_>>())
    }
}

impl Key {
    /// Whether two rows cannot have the same values.
    pub fn is_unique(&self) -> bool {
        self.kind != KeyKind::Plain
    }
}

impl Column {
    /// A column without further clauses.
    pub fn new(name: impl Into<String>, column_type: ColumnType, is_nullable: bool) -> Self {
        Self {
            name: name.into(),
            column_type,
            is_nullable,
            default: None,
            on_update: None,
            generated: None,
            is_auto_increment: false,
            is_invisible: false,
            collation: None,
            comment: String::new(),
        }
    }

    /// The Arrow field that holds the column, with its MySQL type and collation in the metadata.
    pub fn field(&self) -> Field {
        let mut field = self.column_type.to_arrow(&self.name, self.is_nullable);
        if let Some(collation) = self.collation.filter(|_| self.column_type.is_text()) {
            let mut metadata: HashMap<String, String> = field.metadata().clone();
            metadata.insert(COLLATION_KEY.to_owned(), collation.name().to_owned());
            field = field.with_metadata(metadata);
        }
        field
    }
}
