//! Reads expressions over one row that give the same whenever they are computed, and finds the
//! constants in them that may be others next time.
//!
//! A constant that is compared or computed with values of its own kind, a whole number beside whole
//! numbers or a text beside texts, is a slot: the expression reads it as a column. Any other
//! constant may decide how MySQL reads the rest, so it is fixed: another one takes another
//! expression.
//!
//! **Never** reads a part without a column (`1 = 1`, `UPPER('a')`), nor a text that may warn when
//! it becomes a number or a moment (`k = '1x'`): the long way computes such a part once, and warns
//! whichever rows are found.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    UnaryOperator,
};
use mayfly_sql::call::{name_of, plain_list};
use mayfly_sql::change::new_column;
use mayfly_sql::comparison::is_comparison;
use mayfly_sql::declared::is_aggregate;
use mayfly_sql::literal::Literal;
use mayfly_sql::repeatable::is_function;
use mayfly_sql::slots::Kind;
use mayfly_table::Table;
use mayfly_types::{CASELESS, COLLATION_KEY, ColumnType};

use super::compile::{Constants, column_of, named_column};

/// Functions of texts, as whose argument a constant text is not converted.
const OF_TEXTS: [&str; 8] = [
    "concat", "lcase", "lower", "ltrim", "reverse", "rtrim", "ucase", "upper",
];
/// Functions that give one of their arguments, all of which are of one kind here.
const OF_ONE_KIND: [&str; 2] = ["coalesce", "ifnull"];

/// Functions of texts that give numbers, and functions of numbers that never fail: the ABS of the
/// least BIGINT does.
const LENGTHS: [&str; 4] = ["char_length", "character_length", "length", "octet_length"];
const OF_NUMBERS: [&str; 4] = ["ceil", "ceiling", "floor", "sign"];

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
}

impl Reads {
    pub(super) fn add(&mut self, other: &Reads) {
        self.columns.extend(&other.columns);
        self.new_columns.extend(&other.new_columns);
        self.slots.extend_from_slice(&other.slots);
        self.fixed.extend_from_slice(&other.fixed);
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
    /// Reads a value of a column and adds its constants; `None` if it is of no kind that is known
    /// here, when the constants are of no use any more.
    pub(super) fn read_value(
        &self,
        expr: &Expr,
        column: usize,
        constants: &mut Constants,
    ) -> Option<RowExpression> {
        let beside = match self.kind_of_column(column) {
            Beside::Text => Beside::PlanText,
            _ => Beside::Anything,
        };
        let (read, _) = self.read(expr, beside, constants)?;
        Some(read)
    }

    /// The same for a condition, of which no row may warn: which rows it is asked of depends on the
    /// key that a plan chooses.
    pub(super) fn read_condition(
        &self,
        expr: &Expr,
        constants: &mut Constants,
    ) -> Option<RowExpression> {
        let is_text = self.kind(expr) == Beside::Text;
        let (read, row_may_warn) = self.read(expr, Beside::Anything, constants)?;
        (!is_text && !row_may_warn).then_some(read)
    }

    /// An expression, and whether a row may warn or fail.
    fn read(
        &self,
        expr: &Expr,
        beside: Beside,
        constants: &mut Constants,
    ) -> Option<(RowExpression, bool)> {
        let mut reader = Reader {
            of: *self,
            constants,
            reads: Reads::default(),
            row_may_warn: false,
        };
        let mut expr = expr.clone();
        let has_column = reader.read(&mut expr, beside)?;
        let Reader {
            reads,
            row_may_warn,
            ..
        } = reader;
        has_column.then_some((RowExpression { expr, reads }, row_may_warn))
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        column_of(expr, self.table, self.alias)
    }

    /// The column that `VALUES(a)` names.
    fn new_column(&self, function: &Function) -> Option<usize> {
        let [argument] = arguments(function)? else {
            return None;
        };
        let is_it = self.has_new_row && name_of(&function.name)? == "values";
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) if is_it => {
                named_column(column, self.table, self.alias)
            }
            _ => None,
        }
    }

    fn kind_of_column(&self, place: usize) -> Beside {
        Beside::values_of(&self.table.columns()[place].column_type)
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
                let is_whole =
                    |side: &Expr| self.kind_or_literal(side) == Some(Beside::WholeNumber);
                match is_whole(left) && is_whole(right) {
                    true => Beside::WholeNumber,
                    false => Beside::Anything,
                }
            }
            Expr::Function(function) => self.kind_of_function(function),
            other => {
                let column = self.column(other);
                column.map_or(Beside::Anything, |column| self.kind_of_column(column))
            }
        }
    }

    fn kind_of_function(&self, function: &Function) -> Beside {
        let name = name_of(&function.name).unwrap_or_default();
        if OF_TEXTS.contains(&name.as_str()) {
            return Beside::Text;
        }
        if OF_ONE_KIND.contains(&name.as_str()) {
            let kinds = self.kinds(plain_arguments(function).unwrap_or_default());
            let is_it = |kind: &Beside| kinds.contains(kind);
            let kind = [Beside::Text, Beside::Moment].into_iter().find(is_it);
            return kind.unwrap_or(Beside::Anything);
        }
        let column = self.new_column(function);
        column.map_or(Beside::Anything, |column| self.kind_of_column(column))
    }

    /// The same of a constant, by how it is written; `None` for NULL.
    fn kind_or_literal(&self, expr: &Expr) -> Option<Beside> {
        match Literal::of(expr) {
            Some(Some(literal)) if literal.is_text => Some(Beside::Text),
            Some(Some(literal)) if literal.integer().is_some() => Some(Beside::WholeNumber),
            Some(Some(_)) => Some(Beside::Number),
            Some(None) => None,
            None => Some(self.kind(expr)),
        }
    }

    fn kinds<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<Beside> {
        let kinds = exprs.into_iter().map(|expr| self.kind_or_literal(expr));
        kinds.flatten().collect()
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

    /// Whether texts or moments that each row has are compared with values of another kind. What a
    /// constant text becomes is known when it is read.
    fn mixes<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
        let is_text = |expr: &Expr| Literal::of(expr).flatten().is_some_and(|of| of.is_text);
        let kinds = self.kinds(exprs.into_iter().filter(|expr| !is_text(expr)));
        [Beside::Text, Beside::Moment]
            .iter()
            .any(|kind| kinds.contains(kind) && kinds.iter().any(|other| other != kind))
    }

    /// What constants stand beside among the others of an expression: a number among texts makes
    /// numbers of all, and a text among numbers makes them other numbers.
    fn kind_among<'e>(&self, expr: &Expr, others: impl IntoIterator<Item = &'e Expr>) -> Beside {
        use Beside::{Anything, Moment, Number, Text, WholeNumber};
        let kinds = self.kinds(others);
        let all_are = |of: &[Beside]| kinds.iter().all(|kind| of.contains(kind));
        match self.kind(expr) {
            kind @ (WholeNumber | Text) if all_are(&[kind]) => kind,
            WholeNumber | Number if all_are(&[WholeNumber, Number, Text]) => Number,
            Moment if all_are(&[Moment, Text]) => Moment,
            _ => Anything,
        }
    }
}

/// What a constant stands beside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    WholeNumber,
    /// Another number, or whole ones among others: a constant of the plan.
    Number,
    /// A DATE or a DATETIME.
    Moment,
    Text,
    /// A text that is never converted, but part of the plan: the pattern of LIKE, a result of CASE.
    PlanText,
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
            ColumnType::Decimal { .. } | ColumnType::Double { .. } | ColumnType::Float { .. } => {
                Beside::Number
            }
            ColumnType::Date | ColumnType::DateTime { .. } => Beside::Moment,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text(_) => {
                Beside::Text
            }
            _ => Beside::Anything,
        }
    }

    /// What the results of a choice stand beside that stands here itself.
    fn of_result(self) -> Beside {
        match self {
            Beside::Text | Beside::PlanText => Beside::PlanText,
            _ => Beside::Anything,
        }
    }

    /// Whether a constant never warns here: a number that is written as one, a moment in full.
    fn takes(self, literal: &Literal<'_>) -> bool {
        if !literal.is_text {
            return self != Beside::Moment;
        }
        match self {
            Beside::WholeNumber | Beside::Number => Kind::of(literal) == Some(Kind::QuotedInteger),
            Beside::Moment => matches!(Kind::of(literal), Some(Kind::Day | Kind::Moment)),
            Beside::Text | Beside::PlanText => true,
            Beside::Anything => false,
        }
    }
}

/// Whether values of a type are read and written here: those of others are told from what stands
/// beside them, or from the day.
pub(super) fn is_plain_type(column_type: &ColumnType) -> bool {
    Beside::values_of(column_type) != Beside::Anything
}

/// Reads the parts of an expression in the order in which they are written: so come the constants.
struct Reader<'a> {
    of: Of<'a>,
    constants: &'a mut Constants,
    reads: Reads,
    /// Whether a row may warn or fail: as a condition it would tell of which rows it was asked.
    row_may_warn: bool,
}

impl Reader<'_> {
    /// Whether an expression has a column in it; `None` if it is of another kind.
    fn read(&mut self, expr: &mut Expr, beside: Beside) -> Option<bool> {
        if let Some(literal) = Literal::of(expr) {
            if let Some(literal) = literal {
                self.constant(expr, literal, beside)?;
            }
            return Some(false);
        }
        if let Some(place) = self.of.column(expr) {
            self.plain(place)?;
            self.reads.columns.insert(place);
            *expr = named(self.of.table.columns()[place].name.to_lowercase());
            return Some(true);
        }
        if let Expr::Function(function) = &*expr
            && let Some(place) = self.of.new_column(function)
        {
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
                self.row_may_warn |= match op {
                    UnaryOperator::Not => self.of.has_texts([inner.as_ref()]),
                    UnaryOperator::Minus => true,
                    _ => return None,
                };
                self.read(inner, any)?
            }
            Expr::BinaryOp { left, op, right } => {
                let sides = [left.as_ref(), right.as_ref()];
                let kind = self.of.kind_of_any(sides);
                self.row_may_warn |= match op {
                    BinaryOperator::And | BinaryOperator::Or => self.of.has_texts(sides),
                    BinaryOperator::Plus
                    | BinaryOperator::Minus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Modulo => true,
                    _ => self.of.mixes(sides),
                };
                let beside = match op {
                    op if is_comparison(op) => kind,
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
                self.row_may_warn |= self.of.mixes(all);
                let beside = self.of.kind_among(expr, [low.as_ref(), high.as_ref()]);
                self.all([expr.as_mut(), low, high], beside)?
            }
            Expr::InList { expr, list, .. } => {
                let all = std::iter::once(expr.as_ref()).chain(list.iter());
                self.row_may_warn |= self.of.mixes(all);
                let beside = self.of.kind_among(expr, list.iter());
                self.all(std::iter::once(expr.as_mut()).chain(list), beside)?
            }
            Expr::Like {
                any: false,
                expr,
                pattern,
                escape_char: None,
                ..
            } => self.read(expr, any)? | self.read(pattern, Beside::PlanText)?,
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                self.row_may_warn = true;
                let of_condition = operand.as_deref().map_or(any, |operand| {
                    let values = conditions.iter().map(|when| &when.condition);
                    self.of.kind_among(operand, values).of_result()
                });
                let of_result = beside.of_result();
                let mut has_column = self.all(operand.as_deref_mut(), any)?;
                for when in conditions {
                    has_column |= self.read(&mut when.condition, of_condition)?;
                    has_column |= self.read(&mut when.result, of_result)?;
                }
                has_column | self.all(else_result.as_deref_mut(), of_result)?
            }
            Expr::Function(function) => self.function(function, beside)?,
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

    fn function(&mut self, function: &mut Function, beside: Beside) -> Option<bool> {
        let name = name_of(&function.name)?;
        if !is_function(function) || is_aggregate(&function.name) {
            return None;
        }
        let exprs = plain_arguments(function)?;
        let (mut first, mut others) = (Beside::Anything, Beside::Anything);
        match name.as_str() {
            name if OF_TEXTS.contains(&name) => (first, others) = (Beside::Text, Beside::Text),
            name if LENGTHS.contains(&name) => {}
            name if OF_ONE_KIND.contains(&name) => {
                let kinds = self.of.kinds(exprs.iter().copied());
                let is_text = |kind: &Beside| *kind == Beside::Text;
                // Whether a number among texts becomes one, the long way knows.
                if kinds.iter().any(is_text) && !kinds.iter().all(is_text) {
                    return None;
                }
                self.row_may_warn |= self.of.mixes(exprs.iter().copied());
                first = self.of.kind_of_any(exprs);
                others = first;
            }
            name if OF_NUMBERS.contains(&name) => self.row_may_warn |= self.of.has_texts(exprs),
            "if" => {
                self.row_may_warn = true;
                others = beside.of_result();
            }
            _ => self.row_may_warn = true,
        }
        let FunctionArguments::List(list) = &mut function.args else {
            return None;
        };
        let mut has_column = false;
        for (place, argument) in list.args.iter_mut().enumerate() {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                let beside = if place == 0 { first } else { others };
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

    /// Takes a constant; `None` where it may warn.
    fn constant(
        &mut self,
        expr: &mut Expr,
        literal: Literal<'static>,
        beside: Beside,
    ) -> Option<()> {
        if !beside.takes(&literal) {
            return None;
        }
        let place = self.constants.0.len();
        let is_slot = match beside {
            Beside::WholeNumber => !literal.is_text,
            Beside::Text => literal.is_text,
            _ => false,
        };
        let of_type = literal.value().map(|value| value.data_type());
        self.constants.0.push(Some(literal));
        match of_type {
            Some(of_type @ (DataType::Int64 | DataType::Utf8)) if is_slot => {
                self.reads.slots.push((place, of_type));
                *expr = named(slot_name(place));
            }
            _ => self.reads.fixed.push(place),
        }
        Some(())
    }
}

fn named(name: String) -> Expr {
    Expr::Identifier(Ident::with_quote('`', name))
}

/// The arguments of a call without anything else.
fn arguments(function: &Function) -> Option<&[FunctionArg]> {
    let list = plain_list(function)?;
    list.duplicate_treatment.is_none().then_some(&list.args)
}

/// The same, if all of them are plain expressions.
fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let arguments = arguments(function)?.iter();
    let exprs = arguments.map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    exprs.collect()
}
