//! What is known of each SELECT.

use datafusion::sql::sqlparser::ast::SetOperator;

/// One SELECT.
#[derive(Debug)]
pub struct Block {
    /// Its number.
    pub id: usize,
    /// What MySQL calls it.
    pub kind: Kind,
    /// Whether it reads rows of the SELECT around it.
    pub is_dependent: bool,
    /// What it reads, in the order of the text.
    pub parts: Vec<Part>,
    /// Whether it has GROUP BY with keys.
    pub is_grouped: bool,
    /// Whether it has DISTINCT.
    pub is_distinct: bool,
    /// Whether it has an ORDER BY that is not that of a set operation.
    pub is_ordered: bool,
    /// What can keep out all of its rows.
    pub exclusion: Option<Exclusion>,
    /// Its windows.
    pub windows: Vec<Window>,
    /// Its subqueries that are SELECTs of their own, in the order of the text.
    pub subqueries: Vec<Subquery>,
}

impl Block {
    /// A SELECT of which nothing more is known yet.
    pub fn new(id: usize, kind: Kind) -> Block {
        Block {
            id,
            kind,
            is_dependent: false,
            parts: Vec::new(),
            is_grouped: false,
            is_distinct: false,
            is_ordered: false,
            exclusion: None,
            windows: Vec::new(),
            subqueries: Vec::new(),
        }
    }
}

/// What can keep all rows out of a SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// WHERE, or ON of a join.
    Condition,
    /// HAVING.
    Having,
    /// LIMIT 0, which does so in any case.
    ZeroLimit,
}

/// A window of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What stands between its parentheses.
    pub text: String,
    /// The functions over it.
    pub functions: Vec<String>,
}

/// A subquery of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subquery {
    /// Where the expression stands.
    pub clause: Clause,
    /// The number of its first SELECT.
    pub id: usize,
}

/// A part of a SELECT that has expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The list.
    List,
    /// WHERE and ON.
    Condition,
    /// GROUP BY.
    GroupBy,
    /// HAVING.
    Having,
}

/// What a SELECT reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A table, by its name and by what the SELECT calls it.
    Table {
        /// The name of the table.
        table: String,
        /// The alias, or the same.
        name: String,
    },
    /// The rows of another SELECT.
    Derived {
        /// Its number.
        id: usize,
        /// What the SELECT calls them.
        name: Option<String>,
    },
}

/// A kind of SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The outermost one.
    Primary,
    /// One of a subquery in an expression.
    Subquery,
    /// One of a derived table.
    Derived,
    /// A second part.
    Set(SetOperator),
    /// A second part that reads what it has given.
    Recursive,
}

/// The rows of several SELECTs together.
#[derive(Debug)]
pub struct SetResult {
    /// `UNION RESULT`.
    pub word: &'static str,
    /// `<union1,2>`.
    pub name: String,
    /// The numbers of the SELECTs.
    pub ids: Vec<usize>,
    /// What the last of them is put together with.
    pub operator: SetOperator,
    /// Whether equal rows become one, of any two of them.
    pub is_distinct: bool,
    /// Whether the rows have an order.
    pub is_ordered: bool,
}

impl SetResult {
    /// Whether the rows are kept before they are shown; others are sent as they come.
    pub fn is_kept(&self) -> bool {
        self.is_distinct || self.is_ordered
    }
}

/// The SELECTs of a statement.
#[derive(Debug, Default)]
pub struct Selects {
    /// Those that are shown, in the order of their numbers.
    pub blocks: Vec<Block>,
    /// What is made of several.
    pub results: Vec<SetResult>,
    /// The names of those that read their own rows.
    pub recursive: Vec<String>,
}
