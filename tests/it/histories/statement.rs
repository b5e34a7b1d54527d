//! The statements of a history: their text, and what each must do to the rows of its connection.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::sums::SumStatement;
use super::tables::{BLOCK, COLUMNS, DUPLICATE, Row, Rows, SPARE_CODES, TABLES};

/// The filler of rows from files: of the same letter as all, since a model keeps its length only.
const LOADED: &str = "xxxxxx";

/// What becomes of rows that meet others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Ignore,
    Replace,
    OnDuplicate,
}

impl Verb {
    fn begin(self) -> &'static str {
        match self {
            Verb::Insert | Verb::OnDuplicate => "INSERT",
            Verb::Ignore => "INSERT IGNORE",
            Verb::Replace => "REPLACE",
        }
    }

    fn end(self) -> &'static str {
        match self {
            Verb::OnDuplicate => " ON DUPLICATE KEY UPDATE v = VALUES(v), origin = VALUES(origin)",
            _ => "",
        }
    }
}

/// Which rows of its own a statement means.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    Slot(u64),
    /// From the first to the last.
    Slots(u64, u64),
    /// Those whose value leaves this when divided by three.
    Remainder(i64),
    All,
}

impl Choice {
    fn takes(self, row: &Row) -> bool {
        match self {
            Choice::Slot(slot) => row.slot == slot,
            Choice::Slots(first, last) => (first..=last).contains(&row.slot),
            Choice::Remainder(rest) => row.v % 3 == rest,
            Choice::All => true,
        }
    }

    /// The condition on the columns of a table that goes by this name.
    fn sql(self, table: &str, block: u64) -> String {
        let id = |slot| block * BLOCK + slot;
        match self {
            Choice::Slot(slot) => format!("{table}.id = {}", id(slot)),
            Choice::Slots(first, last) => {
                format!("{table}.id BETWEEN {} AND {}", id(first), id(last))
            }
            Choice::Remainder(rest) => {
                format!("{table}.block = {block} AND {table}.v % 3 = {rest}")
            }
            Choice::All => format!("{table}.block = {block}"),
        }
    }
}

/// What an UPDATE sets.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    Add(i64),
    Filler(u64),
    /// To a spare code, the same for all rows.
    Code(u64),
    /// To another id, and the code of that.
    Shift(u64),
}

impl Set {
    fn apply(self, row: &mut Row) {
        match self {
            Set::Add(more) => row.v += more,
            Set::Filler(length) => row.filler = length,
            Set::Code(code) => row.code = SPARE_CODES + code,
            Set::Shift(by) => {
                row.slot += by;
                row.code = row.slot;
            }
        }
    }

    fn sql(self, table: &str, block: u64) -> String {
        match self {
            Set::Add(more) => format!("{table}.v = {table}.v + {more}"),
            Set::Filler(length) => format!("{table}.filler = REPEAT('x', {length})"),
            Set::Code(code) => format!("{table}.code = {}", block * BLOCK + SPARE_CODES + code),
            Set::Shift(by) => {
                format!("{table}.code = {table}.id + {by}, {table}.id = {table}.id + {by}")
            }
        }
    }
}

/// How a connection looks at its rows.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Ids,
    Block,
    Scan,
}

/// How all rows of a table go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptying {
    Truncate,
    Delete,
    /// It is created again at once.
    Drop,
}

/// A change of a definition, which keeps the rows.
#[derive(Clone, Copy, Debug)]
pub enum Alteration {
    AddColumn,
    AddFirstColumn,
    DropColumn,
    AddKey,
    DropKey,
    AddBlockKey,
    DropBlockKey,
}

impl Alteration {
    pub const ALL: [Alteration; 7] = [
        Alteration::AddColumn,
        Alteration::AddFirstColumn,
        Alteration::DropColumn,
        Alteration::AddKey,
        Alteration::DropKey,
        Alteration::AddBlockKey,
        Alteration::DropBlockKey,
    ];
}

/// One statement; tables are given by their numbers.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Slots and values.
    Insert {
        table: usize,
        verb: Verb,
        rows: Vec<(u64, i64)>,
        filler: u64,
    },
    /// The same from a file.
    Load {
        table: usize,
        verb: Verb,
        rows: Vec<(u64, i64)>,
    },
    /// Many rows from the slot `first` on.
    Fill {
        table: usize,
        verb: Verb,
        first: u64,
        rows: u64,
        filler: u64,
    },
    /// INSERT ... SELECT from one table into another one or itself.
    Copy {
        from: usize,
        to: usize,
        verb: Verb,
        choice: Choice,
        shift: u64,
    },
    Update {
        table: usize,
        choice: Choice,
        set: Set,
    },
    Delete {
        table: usize,
        choice: Choice,
    },
    /// Adds to the values of the first table, sets something in the second, where both have a row.
    UpdateTwo {
        tables: [usize; 2],
        choice: Choice,
        set: Set,
    },
    DeleteTwo {
        tables: [usize; 2],
        choice: Choice,
    },
    Read {
        table: usize,
        way: Way,
    },
    /// Changes a column of everybody's rows that nobody accounts for.
    Touch {
        table: usize,
        rest: Option<u64>,
    },
    Empty {
        table: usize,
        how: Emptying,
    },
    Alter {
        table: usize,
        what: Alteration,
    },
    Rename {
        table: usize,
        is_back: bool,
    },
    Kill {
        session: usize,
        only_query: bool,
    },
    /// Bytes that the temp files of the session may have from now on.
    Quota(u64),
    /// Makes an operation of the space fail soon, where the history is one with faults.
    Fault(u64),
    Sum(SumStatement),
}

/// Where a statement is written.
pub struct Place<'a> {
    pub block: u64,
    /// The origin of its first row.
    pub origin: u64,
    /// The file of LOAD DATA.
    pub file: &'a Path,
}

impl Place<'_> {
    fn id(&self, slot: u64) -> u64 {
        self.block * BLOCK + slot
    }
}

/// The rows of a connection in all tables; what does not change is shared.
pub type Model = [Arc<Rows>; TABLES.len()];

impl Statement {
    /// The text; none of what is not said in SQL.
    pub fn sql(&self, place: &Place<'_>) -> String {
        match self {
            Statement::Insert {
                table,
                verb,
                rows,
                filler,
            } => {
                let values: Vec<_> = { rows.iter().enumerate() }
                    .map(|(number, (slot, v))| {
                        let (id, filler) = (place.id(*slot), "x".repeat(*filler as usize));
                        let origin = place.origin + number as u64;
                        format!("({id}, {}, {origin}, {v}, {id}, '{filler}')", place.block)
                    })
                    .collect();
                let (begin, table) = (verb.begin(), TABLES[*table].name);
                let (values, end) = (values.join(", "), verb.end());
                format!("{begin} INTO {table} ({COLUMNS}) VALUES {values}{end}")
            }
            Statement::Load { table, verb, .. } => {
                let verb = match verb {
                    Verb::Ignore => "IGNORE ",
                    Verb::Replace => "REPLACE ",
                    Verb::Insert | Verb::OnDuplicate => "",
                };
                let (file, table) = (place.file.display(), TABLES[*table].name);
                format!("LOAD DATA INFILE '{file}' {verb}INTO TABLE {table} ({COLUMNS})")
            }
            Statement::Fill {
                table,
                verb,
                first,
                rows,
                filler,
            } => {
                let (begin, end, table) = (verb.begin(), verb.end(), TABLES[*table].name);
                let (id, block, origin) = (place.id(*first), place.block, place.origin);
                format!(
                    "{begin} INTO {table} ({COLUMNS}) SELECT {id} + n, {block}, {origin} + n, \
                     n % 100, {id} + n, REPEAT('x', {filler}) FROM numbers WHERE n < {rows}{end}"
                )
            }
            Statement::Copy {
                from,
                to,
                verb,
                choice,
                shift,
            } => {
                let (begin, end, to) = (verb.begin(), verb.end(), TABLES[*to].name);
                let (from, origin) = (TABLES[*from].name, place.origin);
                let (base, choice) = (place.id(0), choice.sql("s", place.block));
                format!(
                    "{begin} INTO {to} ({COLUMNS}) SELECT s.id + {shift}, s.block, \
                     {origin} + s.id - {base}, s.v, s.id + {shift}, s.filler FROM {from} s \
                     WHERE {choice}{end}"
                )
            }
            Statement::Update { table, choice, set } => {
                let table = TABLES[*table].name;
                let (set, choice) = (set.sql(table, place.block), choice.sql(table, place.block));
                format!("UPDATE {table} SET {set} WHERE {choice}")
            }
            Statement::Delete { table, choice } => {
                let table = TABLES[*table].name;
                format!(
                    "DELETE FROM {table} WHERE {}",
                    choice.sql(table, place.block)
                )
            }
            Statement::UpdateTwo {
                tables: [one, two],
                choice,
                set,
            } => {
                let (one, two) = (TABLES[*one].name, TABLES[*two].name);
                let (set, choice) = (set.sql("b", place.block), choice.sql("a", place.block));
                format!(
                    "UPDATE {one} a JOIN {two} b ON a.id = b.id SET a.v = a.v + 1, {set} \
                     WHERE {choice}"
                )
            }
            Statement::DeleteTwo {
                tables: [one, two],
                choice,
            } => {
                let (one, two) = (TABLES[*one].name, TABLES[*two].name);
                let choice = choice.sql("a", place.block);
                format!("DELETE a, b FROM {one} a JOIN {two} b ON a.id = b.id WHERE {choice}")
            }
            Statement::Read { table, way } => {
                let (first, last) = (place.id(0), place.id(BLOCK - 1));
                let choice = match way {
                    Way::Ids => format!("id BETWEEN {first} AND {last}"),
                    Way::Block => format!("block = {}", place.block),
                    Way::Scan => format!("block + 0 = {}", place.block),
                };
                let table = TABLES[*table].name;
                format!("SELECT id, origin, v, code, LENGTH(filler) FROM {table} WHERE {choice}")
            }
            Statement::Touch { table, rest } => {
                let mut sql = format!("UPDATE {} SET touched = touched + 1", TABLES[*table].name);
                if let Some(rest) = rest {
                    write!(sql, " WHERE v % 7 = {rest}").expect("a text takes everything");
                }
                sql
            }
            Statement::Empty { table, how } => {
                let table = TABLES[*table].name;
                match how {
                    Emptying::Truncate => format!("TRUNCATE TABLE {table}"),
                    Emptying::Delete => format!("DELETE FROM {table}"),
                    Emptying::Drop => format!("DROP TABLE {table}"),
                }
            }
            Statement::Alter { table, what } => {
                let table = TABLES[*table].name;
                match what {
                    Alteration::AddColumn => format!("ALTER TABLE {table} ADD COLUMN extra INT"),
                    Alteration::AddFirstColumn => format!(
                        "ALTER TABLE {table} ADD COLUMN extra VARCHAR(20) DEFAULT 'more' FIRST"
                    ),
                    Alteration::DropColumn => format!("ALTER TABLE {table} DROP COLUMN extra"),
                    Alteration::AddKey => format!("CREATE INDEX filler ON {table} (filler(20))"),
                    Alteration::DropKey => format!("DROP INDEX filler ON {table}"),
                    Alteration::AddBlockKey => {
                        format!("ALTER TABLE {table} ADD KEY block (block)")
                    }
                    Alteration::DropBlockKey => format!("ALTER TABLE {table} DROP KEY block"),
                }
            }
            Statement::Rename { table, is_back } => {
                let table = &TABLES[*table];
                let (here, away) = (table.name, table.other_name());
                match is_back {
                    true => format!("RENAME TABLE {away} TO {here}"),
                    false => format!("RENAME TABLE {here} TO {away}"),
                }
            }
            Statement::Quota(bytes) => format!("SET max_tmp_session_space_usage = {bytes}"),
            Statement::Sum(sum) => sum.sql(),
            // Whoever runs them knows the number of the connection, or the faults.
            Statement::Kill { .. } | Statement::Fault(_) => String::new(),
        }
    }

    /// The lines of the file that LOAD DATA reads.
    pub fn file(&self, place: &Place<'_>) -> Option<String> {
        let Statement::Load { rows, .. } = self else {
            return None;
        };
        let mut text = String::new();
        for (number, (slot, v)) in rows.iter().enumerate() {
            let (id, origin) = (place.id(*slot), place.origin + number as u64);
            let block = place.block;
            writeln!(text, "{id}\t{block}\t{origin}\t{v}\t{id}\t{LOADED}").expect("as above");
        }
        Some(text)
    }

    /// The table that it names, and the second one.
    pub fn tables(&self) -> Vec<usize> {
        match self {
            Statement::Insert { table, .. }
            | Statement::Load { table, .. }
            | Statement::Fill { table, .. }
            | Statement::Update { table, .. }
            | Statement::Delete { table, .. }
            | Statement::Read { table, .. }
            | Statement::Touch { table, .. }
            | Statement::Empty { table, .. }
            | Statement::Alter { table, .. }
            | Statement::Rename { table, .. } => vec![*table],
            Statement::Copy { from, to, .. } => vec![*from, *to],
            Statement::UpdateTwo { tables, .. } | Statement::DeleteTwo { tables, .. } => {
                tables.to_vec()
            }
            Statement::Kill { .. }
            | Statement::Quota(_)
            | Statement::Fault(_)
            | Statement::Sum(_) => Vec::new(),
        }
    }

    /// Does to a model what the statement must do to the tables; the affected rows that it must
    /// tell.
    ///
    /// # Errors
    /// The number of the error that it must fail with.
    pub fn apply(&self, model: &mut Model, origin: u64) -> Result<u64, u16> {
        match self {
            Statement::Insert {
                table,
                verb,
                rows,
                filler,
            } => {
                let rows = { rows.iter().zip(origin..) }
                    .map(|((slot, v), origin)| new_row(*slot, origin, *v, *filler));
                insert(model, *table, *verb, rows)
            }
            Statement::Load { table, verb, rows } => {
                let filler = LOADED.len() as u64;
                let rows = { rows.iter().zip(origin..) }
                    .map(|((slot, v), origin)| new_row(*slot, origin, *v, filler));
                insert(model, *table, *verb, rows)
            }
            Statement::Fill {
                table,
                verb,
                first,
                rows,
                filler,
            } => {
                let rows = (0..*rows)
                    .map(|n| new_row(first + n, origin + n, (n % 100).cast_signed(), *filler));
                insert(model, *table, *verb, rows)
            }
            Statement::Copy {
                from,
                to,
                verb,
                choice,
                shift,
            } => {
                let chosen = model[*from].iter().filter(|row| choice.takes(row));
                let rows: Vec<_> = chosen
                    .map(|row| new_row(row.slot + shift, origin + row.slot, row.v, row.filler))
                    .collect();
                insert(model, *to, *verb, rows.into_iter())
            }
            Statement::Update { table, choice, set } => {
                let rows = Arc::make_mut(&mut model[*table]);
                let changed = rows.change(|row| choice.takes(row), |row| set.apply(row));
                rows.check(&TABLES[*table])?;
                Ok(changed)
            }
            Statement::Delete { table, choice } => {
                Ok(Arc::make_mut(&mut model[*table]).remove(|row| choice.takes(row)))
            }
            Statement::UpdateTwo {
                tables: [one, two],
                choice,
                set,
            } => {
                let joined = joined(model, [*one, *two], *choice);
                let joined = |row: &Row| joined.contains(&row.slot);
                let mut changed =
                    Arc::make_mut(&mut model[*two]).change(joined, |row| set.apply(row));
                let takes = |row: &Row| joined(row) && choice.takes(row);
                changed += Arc::make_mut(&mut model[*one]).change(takes, |row| row.v += 1);
                model[*one].check(&TABLES[*one])?;
                model[*two].check(&TABLES[*two])?;
                Ok(changed)
            }
            Statement::DeleteTwo {
                tables: [one, two],
                choice,
            } => {
                let joined = joined(model, [*one, *two], *choice);
                let joined = |row: &Row| joined.contains(&row.slot);
                let removed = Arc::make_mut(&mut model[*two]).remove(joined);
                let takes = |row: &Row| joined(row) && choice.takes(row);
                Ok(removed + Arc::make_mut(&mut model[*one]).remove(takes))
            }
            // What they do to these rows is a matter of all connections, or nothing.
            _ => Ok(0),
        }
    }

    /// Whether `apply` tells the affected rows.
    pub fn counts_rows(&self) -> bool {
        matches!(
            self,
            Statement::Insert { .. }
                | Statement::Load { .. }
                | Statement::Fill { .. }
                | Statement::Copy { .. }
                | Statement::Update { .. }
                | Statement::Delete { .. }
                | Statement::UpdateTwo { .. }
                | Statement::DeleteTwo { .. }
        )
    }
}

fn new_row(slot: u64, origin: u64, v: i64, filler: u64) -> Row {
    Row {
        slot,
        origin,
        v,
        code: slot,
        filler,
    }
}

/// The slots of rows that a join of two tables by id finds, the first one's rows being chosen.
fn joined(model: &Model, [one, two]: [usize; 2], choice: Choice) -> Vec<u64> {
    let chosen = model[one].iter().filter(|row| choice.takes(row));
    let slots = chosen.map(|row| row.slot);
    slots.filter(|slot| model[two].has(*slot)).collect()
}

/// Inserts rows one after the other. New rows have the codes of their slots, and codes that were
/// set are never those of slots: a row meets at most one other.
fn insert(
    model: &mut Model,
    table: usize,
    verb: Verb,
    new: impl Iterator<Item = Row>,
) -> Result<u64, u16> {
    let rows = Arc::make_mut(&mut model[table]);
    let mut affected = 0;
    for row in new {
        let met = rows.at(row.slot).filter(|_| TABLES[table].is_keyed);
        let Some(met) = met else {
            rows.push(row);
            affected += 1;
            continue;
        };
        match verb {
            Verb::Insert => return Err(DUPLICATE),
            Verb::Ignore => {}
            Verb::Replace => {
                *rows.get_mut(met) = row;
                affected += 2;
            }
            Verb::OnDuplicate => {
                let old = rows.get_mut(met);
                (old.v, old.origin) = (row.v, row.origin);
                affected += 2;
            }
        }
    }
    Ok(affected)
}
