//! Reads expressions over one row that give the same whenever they are computed, and finds the
//! constants in them that may be others next time.
//!
//! A constant that is compared or computed with values of its own kind, a whole number beside whole
//! numbers or a text beside texts, is a slot: the expression reads it as a column. Any other
//! constant may decide how MySQL reads the rest, so it is fixed: another one takes another
//! expression.
//!
//! **Never** reads a part without a column (`1 = 1`, `UPPER('a')`): the long way computes such a
//! part once, and warns even where no row is found.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectNamePart, UnaryOperator,
};
use mayfly_sql::change::new_column;
use mayfly_sql::literal::Literal;
use mayfly_sql::repeatable::is_function;
use mayfly_table::Table;
use mayfly_types::{CASELESS, COLLATION_KEY, ColumnType};

use super::compile::{Constants, column_of, named_column};

/// Aggregates, which are no functions of one row.
const AGGREGATES: [&str; 5] = ["avg", "count", "max", "min", "sum"];
/// Functions of texts, as whose argument a constant text is not converted.
const OF_TEXTS: [&str; 8] = [
    "concat", "lcase", "lower", "ltrim", "reverse", "rtrim", "ucase", "upper",
];
/// Functions that give one of their arguments.
const OF_ONE_KIND: [&str; 2] = ["coalesce", "ifnull"];

/// Functions of texts that give numbers, and functions of numbers.
const LENGTHS: [&str; 4] = ["char_length", "character_length", "length", "octet_length"];
const OF_NUMBERS: [&str; 6] = ["abs", "ceil", "ceiling", "floor", "round", "sign"];

/// The column of a slot.
pub(super) fn slot_name(place: usize) -> String {
    format!("\u{1}constant {place}")
}

/// What expressions read.
#[derive(Clone, Default)]
pub(super) struct Reads {
    /// Columns of the row, by their places in the table.
    pub(super) columns: BTreeSet<usize>,
    /// Columns of the row that would have come: `VALUES(a)`.
    pub(super) new_columns: BTreeSet<usize>,
    /// Constants that may be others next time, by their places in the statement.
    pub(super) slots: Vec<(usize, DataType)>,
    /// Those that may not.
    pub(super) fixed: Vec<usize>,
    /// Whether the long way may warn of a constant where no row is found.
    pub(super) may_warn: bool,
    /// Whether a row may warn or fail: as a condition it would tell of which rows it was asked.
    pub(super) row_may_warn: bool,
}

impl Reads {
    pub(super) fn add(&mut self, other: &Reads) {
        self.columns.extend(&other.columns);
        self.new_columns.extend(&other.new_columns);
        self.slots.extend_from_slice(&other.slots);
        self.fixed.extend_from_slice(&other.fixed);
        self.may_warn |= other.may_warn;
        self.row_may_warn |= other.row_may_warn;
    }
}

/// An expression with names of columns alone, slots among them, and what it reads.
#[derive(Clone)]
pub(super) struct RowExpression {
    pub(super) expr: Expr,
    pub(super) reads: Reads,
}

/// The table whose rows expressions read.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) table: &'a Table,
    pub(super) alias: &'a str,
    /// Whether `VALUES(a)` names the row that would have come.
    pub(super) has_new_row: bool,
}

impl Of<'_> {
    /// Reads an expression and adds its constants; `None` if it is of no kind that is known here,
    /// when the constants are of no use any more.
    pub(super) fn read(&self, expr: &Expr, constants: &mut Constants) -> Option<RowExpression> {
        let mut reader = Reader {
            of: *self,
            constants,
            reads: Reads::default(),
        };
        let mut expr = expr.clone();
        let has_column = reader.read(&mut expr, Beside::Anything)?;
        let reads = reader.reads;
        has_column.then_some(RowExpression { expr, reads })
    }

    /// The same for a condition, of which no row may warn: which rows it is asked of depends on the
    /// key that a plan chooses.
    pub(super) fn read_condition(
        &self,
        expr: &Expr,
        constants: &mut Constants,
    ) -> Option<RowExpression> {
        let is_text = self.kind(expr) == Beside::Text;
        let read = self.read(expr, constants)?;
        (!is_text && !read.reads.row_may_warn).then_some(read)
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        column_of(expr, self.table, self.alias)
    }

    /// The column that `VALUES(a)` names.
    fn new_column(&self, expr: &Expr) -> Option<usize> {
        let Expr::Function(function) = expr else {
            return None;
        };
        let [argument] = arguments(function)? else {
            return None;
        };
        let is_it = self.has_new_row && name_of(function)? == "values";
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) if is_it => {
                named_column(column, self.table, self.alias)
            }
            _ => None,
        }
    }

    /// What kind of values an expression has.
    fn kind(&self, expr: &Expr) -> Beside {
        match expr {
            Expr::Nested(inner) => self.kind(inner),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply,
                right,
            } => {
                let is_whole = |side: &Expr| {
                    self.kind(side) == Beside::WholeNumber
                        || matches!(Literal::of(side), Some(Some(of)) if of.integer().is_some())
                };
                match is_whole(left) && is_whole(right) {
                    true => self.kind_of_any([left.as_ref(), right.as_ref()]),
                    false => Beside::Anything,
                }
            }
            Expr::Function(function)
                if name_of(function).is_some_and(|name| OF_TEXTS.contains(&name.as_str())) =>
            {
                Beside::Text
            }
            other => {
                let column = self.column(other).or_else(|| self.new_column(other));
                column.map_or(Beside::Anything, |column| {
                    Beside::values_of(&self.table.columns()[column].column_type)
                })
            }
        }
    }

    /// The kind of the first of some expressions that has one.
    fn kind_of_any<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Beside {
        let mut kinds = exprs.into_iter().map(|expr| self.kind(expr));
        let kind = kinds.find(|kind| *kind != Beside::Anything);
        kind.unwrap_or(Beside::Anything)
    }

    /// Whether any of some expressions is a text that each row has.
    fn has_texts<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
        exprs
            .into_iter()
            .any(|expr| self.kind(expr) == Beside::Text)
    }

    /// Whether texts that each row has are compared as numbers or moments.
    fn mixes<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr> + Clone) -> bool {
        let is_other = |expr: &Expr| match Literal::of(expr) {
            Some(literal) => literal.is_some_and(|literal| !literal.is_text),
            None => self.kind(expr) != Beside::Text,
        };
        self.has_texts(exprs.clone()) && exprs.into_iter().any(is_other)
    }

    /// The kind of an expression among others, if all are of it: a number among texts makes numbers
    /// of all.
    fn kind_among<'e>(&self, expr: &Expr, others: impl IntoIterator<Item = &'e Expr>) -> Beside {
        let kind = self.kind(expr);
        let is_alike = |other: &Expr| match Literal::of(other) {
            Some(Some(literal)) => literal.is_text == (kind == Beside::Text),
            Some(None) => true,
            None => self.kind(other) == kind,
        };
        match others.into_iter().all(is_alike) {
            true => kind,
            false => Beside::Anything,
        }
    }
}

/// What a constant stands beside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    WholeNumber,
    Text,
    /// It is the pattern of a LIKE: a constant of the plan, but never converted.
    Pattern,
    Anything,
}

impl Beside {
    fn values_of(column_type: &ColumnType) -> Beside {
        match column_type {
            ColumnType::TinyInt { .. }
            | ColumnType::SmallInt { .. }
            | ColumnType::MediumInt { .. }
            | ColumnType::Int { .. }
            | ColumnType::BigInt { .. } => Beside::WholeNumber,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text(_) => {
                Beside::Text
            }
            _ => Beside::Anything,
        }
    }
}

/// Whether values of a type are read and written here: those of others are told from what stands
/// beside them, or from the day.
pub(super) fn is_plain_type(column_type: &ColumnType) -> bool {
    let is_other = matches!(
        column_type,
        ColumnType::Decimal { .. }
            | ColumnType::Double { .. }
            | ColumnType::Float { .. }
            | ColumnType::Date
            | ColumnType::DateTime { .. }
    );
    is_other || Beside::values_of(column_type) != Beside::Anything
}

/// Reads the parts of an expression in the order in which they are written: so come the constants.
struct Reader<'a> {
    of: Of<'a>,
    constants: &'a mut Constants,
    reads: Reads,
}

impl Reader<'_> {
    /// Whether an expression has a column in it; `None` if it is of another kind.
    fn read(&mut self, expr: &mut Expr, beside: Beside) -> Option<bool> {
        if let Some(literal) = Literal::of(expr) {
            if let Some(literal) = literal {
                self.constant(expr, literal, beside);
            }
            return Some(false);
        }
        if let Some(place) = self.of.column(expr) {
            self.plain(place)?;
            self.reads.columns.insert(place);
            *expr = named(self.of.table.columns()[place].name.to_lowercase());
            return Some(true);
        }
        if let Some(place) = self.of.new_column(expr) {
            self.plain(place)?;
            self.reads.new_columns.insert(place);
            *expr = named(new_column(&self.of.table.columns()[place].name));
            return Some(true);
        }
        let any = Beside::Anything;
        let has_column = match expr {
            Expr::Nested(inner) => return self.read(inner, beside),
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => self.read(inner, any)?,
            Expr::UnaryOp { op, expr: inner } => {
                self.reads.row_may_warn |= match op {
                    UnaryOperator::Not => self.of.has_texts([inner.as_ref()]),
                    UnaryOperator::Minus => true,
                    _ => return None,
                };
                self.read(inner, any)?
            }
            Expr::BinaryOp { left, op, right } => {
                let sides = [left.as_ref(), right.as_ref()];
                let kind = self.of.kind_of_any(sides);
                self.reads.row_may_warn |= match op {
                    BinaryOperator::And | BinaryOperator::Or => self.of.has_texts(sides),
                    BinaryOperator::Plus
                    | BinaryOperator::Minus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Modulo => true,
                    _ => self.of.mixes(sides),
                };
                let beside = match op {
                    BinaryOperator::Eq
                    | BinaryOperator::NotEq
                    | BinaryOperator::Lt
                    | BinaryOperator::LtEq
                    | BinaryOperator::Gt
                    | BinaryOperator::GtEq
                    | BinaryOperator::Spaceship => kind,
                    BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply
                        if kind == Beside::WholeNumber =>
                    {
                        kind
                    }
                    BinaryOperator::Plus
                    | BinaryOperator::Minus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Modulo
                    | BinaryOperator::And
                    | BinaryOperator::Or => any,
                    _ => return None,
                };
                self.all([left.as_mut(), right.as_mut()], beside)?
            }
            Expr::Between {
                expr, low, high, ..
            } => {
                let all = [expr.as_ref(), low.as_ref(), high.as_ref()];
                self.reads.row_may_warn |= self.of.mixes(all);
                let beside = self.of.kind_among(expr, [low.as_ref(), high.as_ref()]);
                self.all([expr.as_mut(), low, high], beside)?
            }
            Expr::InList { expr, list, .. } => {
                let all = std::iter::once(expr.as_ref()).chain(list.iter());
                self.reads.row_may_warn |= self.of.mixes(all);
                let beside = self.of.kind_among(expr, list.iter());
                self.all(std::iter::once(expr.as_mut()).chain(list), beside)?
            }
            Expr::Like {
                any: false,
                expr,
                pattern,
                escape_char: None,
                ..
            } => {
                let beside = match self.of.kind(expr) {
                    Beside::Text => Beside::Pattern,
                    _ => any,
                };
                self.read(expr, any)? | self.read(pattern, beside)?
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                self.reads.row_may_warn = true;
                let mut has_column = self.all(operand.as_deref_mut(), any)?;
                for when in conditions {
                    has_column |= self.all([&mut when.condition, &mut when.result], any)?;
                }
                has_column | self.all(else_result.as_deref_mut(), any)?
            }
            Expr::Function(function) => self.function(function)?,
            _ => return None,
        };
        has_column.then_some(true)
    }

    fn all<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e mut Expr>,
        beside: Beside,
    ) -> Option<bool> {
        let mut has_column = false;
        for expr in exprs {
            has_column |= self.read(expr, beside)?;
        }
        Some(has_column)
    }

    fn function(&mut self, function: &mut Function) -> Option<bool> {
        let name = name_of(function)?;
        if !is_function(function) || AGGREGATES.contains(&name.as_str()) {
            return None;
        }
        let mut exprs = Vec::new();
        for argument in arguments(function)? {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => exprs.push(expr),
                _ => return None,
            }
        }
        let of_texts = |name: &str| OF_TEXTS.contains(&name) || LENGTHS.contains(&name);
        self.reads.row_may_warn |= match name.as_str() {
            name if of_texts(name) => false,
            name if OF_ONE_KIND.contains(&name) => self.of.mixes(exprs.iter().copied()),
            name if OF_NUMBERS.contains(&name) => self.of.has_texts(exprs.iter().copied()),
            _ => true,
        };
        let beside = match name.as_str() {
            name if OF_TEXTS.contains(&name) => Beside::Text,
            name if OF_ONE_KIND.contains(&name) => self.of.kind_of_any(exprs),
            _ => Beside::Anything,
        };
        let FunctionArguments::List(list) = &mut function.args else {
            return None;
        };
        let mut has_column = false;
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                has_column |= self.read(expr, beside)?;
            }
        }
        Some(has_column)
    }

    fn plain(&self, place: usize) -> Option<()> {
        let column = &self.of.table.columns()[place];
        // How a text without case compares depends on whether the other side is a constant.
        let field = column.field();
        let is_caseless = field
            .metadata()
            .get(COLLATION_KEY)
            .is_some_and(|of| of == CASELESS);
        (is_plain_type(&column.column_type) && !is_caseless).then_some(())
    }

    fn constant(&mut self, expr: &mut Expr, literal: Literal<'static>, beside: Beside) {
        let place = self.constants.0.len();
        let is_text = literal.is_text;
        let is_slot = match beside {
            Beside::WholeNumber => !is_text,
            Beside::Text => is_text,
            Beside::Pattern | Beside::Anything => false,
        };
        let of_type = literal.value().map(|value| value.data_type());
        self.constants.0.push(Some(literal));
        match of_type {
            Some(of_type @ (DataType::Int64 | DataType::Utf8)) if is_slot => {
                self.reads.slots.push((place, of_type));
                *expr = named(slot_name(place));
            }
            _ => {
                self.reads.fixed.push(place);
                self.reads.may_warn |= is_text && beside != Beside::Pattern;
            }
        }
    }
}

fn named(name: String) -> Expr {
    Expr::Identifier(Ident::with_quote('`', name))
}

/// The name of a function, in lower case.
fn name_of(function: &Function) -> Option<String> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// The arguments of a call without anything else.
fn arguments(function: &Function) -> Option<&[FunctionArg]> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let is_plain = function.parameters == FunctionArguments::None
        && !function.uses_odbc_syntax
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty();
    is_plain.then_some(&list.args)
}
