//! Numbers that all connections change: what the answers say of them must be what they are.
//!
//! Counters are added to by UPDATE and by INSERT ... ON DUPLICATE KEY UPDATE, with a key and
//! without one; transfers take from the rows of one table what they give to those of another one,
//! in a statement that fails where a balance would be below zero. Statements without an answer did
//! all or nothing.

use std::collections::BTreeMap;

/// The tables: two of balances, and one without a key.
pub const SUMS: [&str; 3] = ["debit", "credit", "tally"];
/// Rows of each.
pub const ACCOUNTS: u64 = 24;
/// What each row begins with.
pub const BEGINNING: i64 = 100;

/// Statements that make and fill the tables.
pub fn setup() -> Vec<String> {
    let rows: Vec<_> = (0..ACCOUNTS)
        .map(|id| format!("({id}, {BEGINNING})"))
        .collect();
    let make = |table: &str| {
        let keys = match table {
            "tally" => "",
            _ => ", PRIMARY KEY (id), KEY balance (balance)",
        };
        [
            format!("CREATE TABLE {table} (id INT, balance BIGINT UNSIGNED{keys})"),
            format!("INSERT INTO {table} VALUES {}", rows.join(", ")),
        ]
    };
    SUMS.into_iter().flat_map(make).collect()
}

/// A statement on some accounts, from the first to the last.
#[derive(Clone, Copy, Debug)]
pub enum SumStatement {
    Count {
        table: usize,
        first: u64,
        last: u64,
        amount: i64,
    },
    Upsert {
        table: usize,
        id: u64,
        amount: i64,
    },
    Transfer {
        from: usize,
        to: usize,
        first: u64,
        last: u64,
        amount: i64,
    },
}

/// What a statement adds to which row of which table.
type Deltas = BTreeMap<(usize, u64), i64>;

impl SumStatement {
    pub fn sql(&self) -> String {
        match *self {
            SumStatement::Count {
                table,
                first,
                last,
                amount,
            } => format!(
                "UPDATE {} SET balance = balance + {amount} WHERE id BETWEEN {first} AND {last}",
                SUMS[table]
            ),
            SumStatement::Upsert { table, id, amount } => format!(
                "INSERT INTO {} VALUES ({id}, 0) ON DUPLICATE KEY UPDATE \
                 balance = balance + {amount}",
                SUMS[table]
            ),
            SumStatement::Transfer {
                from,
                to,
                first,
                last,
                amount,
            } => format!(
                "UPDATE {} a JOIN {} b ON a.id = b.id SET a.balance = a.balance - {amount}, \
                 b.balance = b.balance + {amount} WHERE a.id BETWEEN {first} AND {last}",
                SUMS[from], SUMS[to]
            ),
        }
    }

    fn deltas(&self) -> Deltas {
        match *self {
            SumStatement::Count {
                table,
                first,
                last,
                amount,
            } => (first..=last).map(|id| ((table, id), amount)).collect(),
            SumStatement::Upsert { table, id, amount } => [((table, id), amount)].into(),
            SumStatement::Transfer {
                from,
                to,
                first,
                last,
                amount,
            } => (first..=last)
                .flat_map(|id| [((from, id), -amount), ((to, id), amount)])
                .collect(),
        }
    }

    /// The affected rows that it must tell.
    fn affected(&self) -> u64 {
        match self {
            SumStatement::Upsert { .. } => 2,
            _ => self.deltas().len() as u64,
        }
    }
}

/// What is known of the statements of a history.
#[derive(Default)]
pub struct Tally {
    /// What those add that were acknowledged.
    sums: Deltas,
    /// Those without an answer.
    unknown: Vec<(SumStatement, Deltas)>,
}

impl Tally {
    /// A statement was acknowledged.
    ///
    /// # Errors
    /// If it told a wrong number of rows.
    pub fn done(&mut self, statement: &SumStatement, affected: u64) -> Result<(), String> {
        for (place, amount) in statement.deltas() {
            *self.sums.entry(place).or_default() += amount;
        }
        let expected = statement.affected();
        match affected == expected {
            true => Ok(()),
            false => Err(format!(
                "{}: {affected} rows instead of {expected}",
                statement.sql()
            )),
        }
    }

    /// A statement got no answer.
    pub fn unknown(&mut self, statement: &SumStatement) {
        self.unknown.push((*statement, statement.deltas()));
    }

    /// Compares with what the tables hold at the end.
    ///
    /// # Errors
    /// If no choice among the statements without an answer explains it.
    pub fn check(&self, found: &BTreeMap<(usize, u64), i64>) -> Result<(), String> {
        let mut rest = Deltas::new();
        for (table, name) in SUMS.iter().enumerate() {
            for id in 0..ACCOUNTS {
                let place = (table, id);
                let balance = found
                    .get(&place)
                    .ok_or_else(|| format!("{name} has lost row {id}"))?;
                let acknowledged = self.sums.get(&place).copied().unwrap_or_default();
                rest.insert(place, balance - BEGINNING - acknowledged);
            }
        }
        if found.len() != rest.len() {
            return Err(format!("{} rows instead of {}", found.len(), rest.len()));
        }
        match explains(&mut rest, &self.unknown) {
            true => Ok(()),
            false => {
                let wrong = rest.iter().filter(|(_, amount)| **amount != 0);
                let wrong: Vec<_> = wrong
                    .map(|((table, id), amount)| format!("{} {id}: {amount:+}", SUMS[*table]))
                    .collect();
                let unknown = self.unknown.iter();
                let unknown: Vec<_> = unknown.map(|(statement, _)| statement.sql()).collect();
                Err(format!(
                    "balances are not what was acknowledged:\n{}\nwithout an answer:\n{}",
                    wrong.join("\n"),
                    unknown.join("\n")
                ))
            }
        }
    }
}

/// Whether some of the statements add up to the rest.
fn explains(rest: &mut Deltas, statements: &[(SumStatement, Deltas)]) -> bool {
    let Some(((_, deltas), others)) = statements.split_first() else {
        return rest.values().all(|amount| *amount == 0);
    };
    if explains(rest, others) {
        return true;
    }
    add(rest, deltas, -1);
    if explains(rest, others) {
        return true;
    }
    add(rest, deltas, 1);
    false
}

fn add(rest: &mut Deltas, deltas: &Deltas, sign: i64) {
    for (place, amount) in deltas {
        *rest.get_mut(place).expect("an account") += sign * amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: SumStatement = SumStatement::Count {
        table: 0,
        first: 2,
        last: 3,
        amount: 5,
    };

    fn beginning() -> BTreeMap<(usize, u64), i64> {
        let table = |table| (0..ACCOUNTS).map(move |id| ((table, id), BEGINNING));
        (0..SUMS.len()).flat_map(table).collect()
    }

    #[test]
    fn acknowledged_sums_must_be_there() {
        let mut tally = Tally::default();
        tally.done(&COUNT, 2).unwrap();
        let mut found = beginning();
        assert!(tally.check(&found).is_err());
        *found.get_mut(&(0, 2)).unwrap() += 5;
        assert!(tally.check(&found).is_err());
        *found.get_mut(&(0, 3)).unwrap() += 5;
        assert_eq!(tally.check(&found), Ok(()));
        assert!(tally.done(&COUNT, 1).is_err());
    }

    #[test]
    fn without_an_answer_it_is_all_or_nothing() {
        let mut tally = Tally::default();
        tally.unknown(&COUNT);
        let mut found = beginning();
        assert_eq!(tally.check(&found), Ok(()));
        *found.get_mut(&(0, 2)).unwrap() += 5;
        assert!(tally.check(&found).is_err());
        *found.get_mut(&(0, 3)).unwrap() += 5;
        assert_eq!(tally.check(&found), Ok(()));
    }
}
