//! The columns of FROM: what `*` stands for, and which names mean one column of several tables.
//!
//! A join by name shows its common columns first and once, then what is left of its first table,
//! then what is left of the other one. The first table is the left one, but for RIGHT JOIN, which
//! is a LEFT JOIN with its sides exchanged.

use std::collections::HashSet;
use std::rc::Rc;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, ObjectNamePart, Value,
};
use mayfly_types::{ErrorCode, MySqlError};

/// A column of a table of FROM.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name as it was declared.
    pub(super) name: String,
    /// Its name in lower case.
    key: String,
    /// What its table is called.
    table: Rc<[Ident]>,
    /// Whether `*` and NATURAL JOIN look at it.
    is_visible: bool,
}

impl Column {
    /// The column, qualified.
    pub(super) fn expr(&self) -> Expr {
        self.spelled(Ident::with_quote('`', &self.name))
    }

    /// The column, qualified, with its name as it is written.
    pub(super) fn spelled(&self, name: Ident) -> Expr {
        let mut parts = self.table.to_vec();
        parts.push(name);
        Expr::CompoundIdentifier(parts)
    }

    /// What its table is called in front of a column, without the database.
    pub(super) fn table(&self) -> Option<&str> {
        self.table.last().map(|part| part.value.as_str())
    }
}

/// A table of FROM.
#[derive(Debug)]
struct Relation {
    name: Rc<[Ident]>,
    /// All of its columns, those that a join shows but once included.
    columns: Vec<Column>,
}

/// Tables of FROM, joined.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Its columns in the order of `*`, invisible ones included.
    columns: Vec<Column>,
    relations: Vec<Relation>,
    /// The names, in lower case, of columns that tables are joined by.
    common: HashSet<String>,
    /// Why its columns are not known, if they are not.
    unknown: Option<MySqlError>,
}

impl Joined {
    /// One table: its columns, and whether `*` shows them.
    pub(super) fn table(
        name: Vec<Ident>,
        columns: impl IntoIterator<Item = (String, bool)>,
    ) -> Joined {
        let name: Rc<[Ident]> = name.into();
        let columns = columns.into_iter().map(|(column, is_visible)| Column {
            key: column.to_lowercase(),
            name: column,
            table: Rc::clone(&name),
            is_visible,
        });
        let columns: Vec<Column> = columns.collect();
        Joined {
            columns: columns.clone(),
            relations: vec![Relation { name, columns }],
            ..Joined::default()
        }
    }

    /// A table of which nothing is known.
    pub(super) fn unknown(reason: MySqlError) -> Joined {
        Joined {
            unknown: Some(reason),
            ..Joined::default()
        }
    }

    /// With other tables on its right side.
    pub(super) fn and(mut self, right: Joined) -> Joined {
        self.columns.extend(right.columns);
        self.relations.extend(right.relations);
        self.common.extend(right.common);
        self.unknown = self.unknown.or(right.unknown);
        self
    }

    /// Joined by the columns that USING names, or by all that both sides show, and the condition of
    /// the join.
    ///
    /// # Errors
    /// 1052 when a side has several columns of one of the names, 1054 when it has none, and the
    /// reason for which columns are not known.
    pub(super) fn by_name(
        self,
        right: Joined,
        using: Option<&[String]>,
        is_right: bool,
    ) -> Result<(Joined, Expr), MySqlError> {
        if let Some(reason) = self.unknown.or(right.unknown) {
            return Err(reason);
        }
        let asked: Option<Vec<String>> =
            using.map(|names| names.iter().map(|name| name.to_lowercase()).collect());
        let is_asked = |column: &Column| match &asked {
            Some(names) => names.contains(&column.key),
            None => column.is_visible,
        };
        let mut common: HashSet<String> = HashSet::new();
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut condition = None;
        for (index, column) in self.columns.iter().enumerate() {
            if !is_asked(column) {
                continue;
            }
            let others = right.columns.iter().enumerate();
            let mut others = others.filter(|(_, other)| other.key == column.key && is_asked(other));
            let Some((other_index, other)) = others.next() else {
                continue;
            };
            if others.next().is_some() || !common.insert(column.key.clone()) {
                return Err(ambiguous(&column.name, "from clause"));
            }
            pairs.push((index, other_index));
            condition = Some(both(condition, equal(column.expr(), other.expr())));
        }
        for name in using.unwrap_or_default() {
            if !common.contains(&name.to_lowercase()) {
                let code = ErrorCode::UnknownColumn;
                return Err(MySqlError::new(code, &[name, &"from clause"]));
            }
        }
        let of_left = pairs.iter().map(|(index, _)| *index).collect();
        let of_right = pairs.iter().map(|(_, index)| *index).collect();
        let (mut columns, left_rest) = parted(self.columns, &of_left);
        let (right_common, right_rest) = parted(right.columns, &of_right);
        if is_right {
            columns = right_common;
            columns.extend(right_rest);
            columns.extend(left_rest);
        } else {
            columns.extend(left_rest);
            columns.extend(right_rest);
        }
        common.extend(self.common);
        common.extend(right.common);
        let mut relations = self.relations;
        relations.extend(right.relations);
        let joined = Joined {
            columns,
            relations,
            common,
            unknown: None,
        };
        let condition = condition.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into()));
        Ok((joined, condition))
    }

    /// The columns that `*` shows.
    ///
    /// # Errors
    /// The reason for which they are not known.
    pub(super) fn shown(&self) -> Result<Vec<&Column>, MySqlError> {
        match &self.unknown {
            Some(reason) => Err(reason.clone()),
            None => Ok(self.columns.iter().filter(|c| c.is_visible).collect()),
        }
    }

    /// The columns that `table.*` shows; `None` if there is no such table.
    pub(super) fn shown_of(&self, table: &ObjectName) -> Option<Vec<&Column>> {
        let mut relations = self.relations.iter();
        let relation = relations.find(|relation| ends_with(&relation.name, table))?;
        Some(relation.columns.iter().filter(|c| c.is_visible).collect())
    }

    /// Whether `*` is other than all columns of all tables.
    pub(super) fn leaves_out(&self) -> bool {
        let mut relations = self.relations.iter();
        !self.common.is_empty()
            || relations.any(|relation| relation.columns.iter().any(|c| !c.is_visible))
    }

    /// Whether a name, in lower case, is that of a column that tables are joined by.
    pub(super) fn is_common(&self, name: &str) -> bool {
        self.common.contains(name)
    }

    /// Whether there may be a column of this name, in lower case.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.unknown.is_some() || self.columns.iter().any(|column| column.key == name)
    }

    /// Whether a table goes by this name.
    pub(super) fn has_table(&self, name: Option<&str>) -> bool {
        let mut relations = self.relations.iter();
        relations.any(|relation| relation.name.last().map(|part| part.value.as_str()) == name)
    }

    /// The column that a common name, in lower case, means.
    ///
    /// # Errors
    /// 1052 when it means several, and the reason for which columns are not known.
    pub(super) fn common_column(
        &self,
        name: &str,
        clause: &str,
    ) -> Result<Option<&Column>, MySqlError> {
        if let Some(reason) = &self.unknown {
            return Err(reason.clone());
        }
        let mut found = self.columns.iter().filter(|column| column.key == name);
        let first = found.next();
        match found.next() {
            Some(second) => Err(ambiguous(&second.name, clause)),
            None => Ok(first),
        }
    }
}

/// Those at some places, and the others.
fn parted(columns: Vec<Column>, places: &HashSet<usize>) -> (Vec<Column>, Vec<Column>) {
    let mut at = Vec::with_capacity(places.len());
    let mut rest = Vec::with_capacity(columns.len() - places.len());
    for (place, column) in columns.into_iter().enumerate() {
        match places.contains(&place) {
            true => at.push(column),
            false => rest.push(column),
        }
    }
    (at, rest)
}

/// Error 1052.
pub(in crate::rewrite) fn ambiguous(name: &str, clause: &str) -> MySqlError {
    MySqlError::new(ErrorCode::AmbiguousColumn, &[&name, &clause])
}

fn ends_with(whole: &[Ident], part: &ObjectName) -> bool {
    let part: Vec<&Ident> = part.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let mut pairs = whole.iter().rev().zip(part.iter().rev());
    part.len() <= whole.len() && pairs.all(|(whole, part)| whole.value == part.value)
}

fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Eq,
        right: Box::new(right),
    }
}

fn both(left: Option<Expr>, right: Expr) -> Expr {
    match left {
        None => right,
        Some(left) => Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        },
    }
}
