//! The terms of a condition, and the rows of a batch that they leave open.
//!
//! Owns: [`Terms`], which terms are cheap and which may warn, and their order. Never: computes a
//! value itself; DataFusion's expressions do, but for short texts (`words`).
//!
//! A condition is a list of terms that are all to be true. A row for which one is false or NULL is
//! closed. Cheap terms are evaluated for the whole batch. A term that may warn or fail is evaluated
//! for the open rows and no others, in its place: terms that were written behind it stay behind it.
//! So are the sides of an OR that may: each for the rows that the sides before it do not pass.
//! Costly terms that cannot warn are evaluated behind the cheap ones, for the open rows if those
//! are few.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NotExpr,
};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::silent::{Kind, SilentFunction};
use super::words::{Words, valid_only};
use crate::other_columns::over_read_columns;
use crate::selection::Selection;
use crate::slots::is_slot;
use crate::subquery_value::SubqueryValue;

/// Where at least one of so many rows is open, a copy of the open ones saves nothing.
const ROWS_PER_OPEN: usize = 2;
/// ANDs and ORs within each other that are evaluated bit by bit; deeper ones are left to
/// DataFusion.
pub(super) const NESTING_MAX: usize = 16;

type Expr = Arc<dyn PhysicalExpr>;

/// A condition, term by term.
#[derive(Debug)]
pub(crate) struct Terms(Vec<Term>);

#[derive(Debug)]
enum Term {
    Cheap(Mask),
    Costly(Costly),
    /// An OR of which a side may warn.
    Either(Vec<Terms>),
}

impl Terms {
    /// The terms of a condition over rows of a schema.
    pub(crate) fn of(condition: &Expr, schema: &Schema) -> Terms {
        Terms::nested(condition, schema, 0)
    }

    /// Those of a condition within so many ANDs and ORs.
    fn nested(condition: &Expr, schema: &Schema, nesting: usize) -> Terms {
        let terms = in_order(condition, schema, nesting).into_iter();
        Terms(terms.map(|(_, term)| term).collect())
    }

    /// The only term of a condition that is one side of an AND.
    pub(super) fn one(condition: &Expr, schema: &Schema) -> Terms {
        Terms(vec![term(condition, schema, 0)])
    }

    /// Those columns of a batch that are chosen, of the rows for which the condition is true;
    /// `None` where it is true for none.
    ///
    /// # Errors
    /// As [`Terms::open_rows`].
    pub(crate) fn filtered(
        &self,
        batch: RecordBatch,
        columns: Option<&[usize]>,
    ) -> Result<Option<RecordBatch>> {
        Ok(match self.open_rows(&batch)? {
            Selection::None => None,
            Selection::All => Some(chosen(batch, columns)?),
            Selection::Some { bits, .. } => {
                let mask = BooleanArray::new(bits, None);
                Some(filter_record_batch(&chosen(batch, columns)?, &mask)?)
            }
        })
    }

    /// The rows of a batch for which the condition is true.
    ///
    /// # Errors
    /// As the terms that are evaluated.
    pub(crate) fn open_rows(&self, batch: &RecordBatch) -> Result<Selection> {
        let open = match batch.num_rows() {
            0 => Selection::None,
            _ => Selection::All,
        };
        self.narrow(batch, open)
    }

    /// Closes the open rows for which the condition is not true.
    ///
    /// # Errors
    /// As [`Terms::open_rows`].
    pub(super) fn narrow(&self, batch: &RecordBatch, mut open: Selection) -> Result<Selection> {
        for term in &self.0 {
            if matches!(open, Selection::None) {
                break;
            }
            open = match term {
                Term::Cheap(mask) => open.and(mask.true_rows(batch)?),
                Term::Costly(term) => term.narrow(batch, open)?,
                Term::Either(sides) => passed_by_any(sides, batch, open)?,
            };
        }
        Ok(open)
    }
}

/// The sides of an AND as terms, in the order in which they are evaluated. Costly terms that cannot
/// warn let cheap ones pass.
fn in_order(condition: &Expr, schema: &Schema, nesting: usize) -> Vec<(Expr, Term)> {
    let mut terms = Vec::new();
    let mut costly = Vec::new();
    for expr in sides(condition, Operator::And) {
        let term = term(&expr, schema, nesting);
        match &term {
            Term::Cheap(_) => terms.push((expr, term)),
            Term::Costly(silent) if silent.is_silent => costly.push((expr, term)),
            Term::Costly(_) | Term::Either(_) => {
                terms.append(&mut costly);
                terms.push((expr, term));
            }
        }
    }
    terms.append(&mut costly);
    terms
}

/// The same, and whether a term is cheap: those beside each other may change places.
pub(super) fn sides_in_order(condition: &Expr, schema: &Schema) -> Vec<(Expr, bool)> {
    let terms = in_order(condition, schema, 0).into_iter();
    let is_cheap = |term| matches!(term, Term::Cheap(_));
    terms.map(|(expr, term)| (expr, is_cheap(term))).collect()
}

/// The term that one side of an AND is.
fn term(expr: &Expr, schema: &Schema, nesting: usize) -> Term {
    if let Some(mask) = mask(expr, schema, 0) {
        return Term::Cheap(mask);
    }
    match asked_in_turn(expr, schema, nesting) {
        Some(sides) => Term::Either(sides),
        None => Term::Costly(Costly::of(Arc::clone(expr), schema)),
    }
}

/// The sides of an OR that are to be asked in turn; `None` for another expression, for one of which
/// nobody notices for which rows its sides are evaluated, and for one in the depth.
fn asked_in_turn(expr: &Expr, schema: &Schema, nesting: usize) -> Option<Vec<Terms>> {
    let sides = match sides(expr, Operator::Or) {
        sides if sides.len() > 1 && nesting < NESTING_MAX => sides,
        _ => return None,
    };
    if sides.iter().all(|side| is_silent(side, schema)) {
        return None;
    }
    let terms = { sides.iter() }.map(|side| Terms::nested(side, schema, nesting + 1));
    Some(terms.collect())
}

/// The open rows for which one of the sides of an OR is true, each asked for those that the sides
/// before it have not passed.
fn passed_by_any(sides: &[Terms], batch: &RecordBatch, open: Selection) -> Result<Selection> {
    let rows = batch.num_rows();
    let mut passed = BooleanBuffer::new_unset(rows);
    let mut left = open.bits(rows);
    for side in sides {
        let passing = side.narrow(batch, Selection::of(left.clone()))?.bits(rows);
        left = &left & &!&passing;
        passed = &passed | &passing;
        if !left.has_true() {
            break;
        }
    }
    Ok(Selection::of(passed))
}

/// Some columns of a batch, or all of them.
///
/// # Errors
/// If the batch does not have them.
pub(crate) fn chosen(batch: RecordBatch, columns: Option<&[usize]>) -> Result<RecordBatch> {
    match columns {
        Some(columns) => Ok(batch.project(columns)?),
        None => Ok(batch),
    }
}

/// The sides of a chain of ANDs or ORs, in the order in which they are written. Chains may be long,
/// so this is a loop.
fn sides(expr: &Expr, of: Operator) -> Vec<Expr> {
    let mut sides = Vec::new();
    let mut waiting = vec![Arc::clone(expr)];
    while let Some(expr) = waiting.pop() {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(both) if *both.op() == of => {
                waiting.push(Arc::clone(both.right()));
                waiting.push(Arc::clone(both.left()));
            }
            _ => sides.push(expr),
        }
    }
    sides
}

/// A term that is evaluated for the rows that are open.
#[derive(Debug)]
struct Costly {
    /// The term over whole batches.
    expr: Expr,
    /// The same over the columns that it reads.
    over_columns: Expr,
    columns: Vec<usize>,
    /// Whether nobody notices for which rows it is evaluated.
    is_silent: bool,
}

impl Costly {
    fn of(expr: Expr, schema: &Schema) -> Costly {
        let is_silent = is_silent(&expr, schema);
        // An expression that cannot be moved reads all columns, as it stands.
        let (over_columns, columns) = over_read_columns(&expr)
            .unwrap_or_else(|_| (Arc::clone(&expr), (0..schema.fields().len()).collect()));
        Costly {
            expr,
            over_columns,
            columns,
            is_silent,
        }
    }

    /// Closes the open rows for which the term is not true.
    fn narrow(&self, batch: &RecordBatch, open: Selection) -> Result<Selection> {
        let rows = batch.num_rows();
        match open {
            Selection::None => Ok(Selection::None),
            Selection::All => Ok(Selection::of(true_rows(&self.expr, batch)?)),
            Selection::Some { bits, count } if self.is_silent && count * ROWS_PER_OPEN >= rows => {
                Ok(Selection::of(&bits & &true_rows(&self.expr, batch)?))
            }
            Selection::Some { bits, .. } => {
                let mask = BooleanArray::new(bits.clone(), None);
                let few = filter_record_batch(&batch.project(&self.columns)?, &mask)?;
                let passing = Selection::of(true_rows(&self.over_columns, &few)?);
                Ok(Selection::of_few(bits, passing))
            }
        }
    }
}

/// A cheap condition that is evaluated for all rows of a batch, as a bit for each: whether it is
/// true. An AND is true where both sides are, an OR where one is; of NOT that tells nothing, since
/// what is not true may be NULL.
#[derive(Debug)]
enum Mask {
    Words(Words),
    Plain(Expr),
    Every(Vec<Mask>),
    Any(Vec<Mask>),
}

impl Mask {
    fn true_rows(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        match self {
            Mask::Words(words) => words.true_rows(batch),
            Mask::Plain(expr) => true_rows(expr, batch),
            Mask::Every(masks) => {
                let mut bits = BooleanBuffer::new_set(batch.num_rows());
                for mask in masks {
                    if !bits.has_true() {
                        break;
                    }
                    bits = &bits & &mask.true_rows(batch)?;
                }
                Ok(bits)
            }
            Mask::Any(masks) => {
                let mut bits = BooleanBuffer::new_unset(batch.num_rows());
                for mask in masks {
                    if !bits.has_false() {
                        break;
                    }
                    bits = &bits | &mask.true_rows(batch)?;
                }
                Ok(bits)
            }
        }
    }
}

/// The mask that an expression is, if it is cheap and cannot warn.
fn mask(expr: &Expr, schema: &Schema, nesting: usize) -> Option<Mask> {
    if nesting > NESTING_MAX {
        return None;
    }
    let plain = || Some(Mask::Plain(Arc::clone(expr)));
    if let Some(both) = expr.downcast_ref::<BinaryExpr>() {
        let masks = |of| {
            let sides = sides(expr, of).into_iter();
            sides
                .map(|side| mask(&side, schema, nesting + 1))
                .collect::<Option<Vec<_>>>()
        };
        return match both.op() {
            Operator::And => masks(Operator::And).map(Mask::Every),
            Operator::Or => masks(Operator::Or).map(Mask::Any),
            operator if is_comparison(*operator) => compared(both, schema)
                .map(Mask::Words)
                .or_else(|| is_cheap_comparison(both, schema).then(plain).flatten()),
            _ => None,
        };
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let (column, column_type) = column_of(list.expr(), schema)?;
        let literals = { list.list().iter() }.map(|item| item.downcast_ref::<Literal>());
        let literals: Vec<&Literal> = literals.collect::<Option<_>>()?;
        let words = Words::of((column, &column_type), literals.into_iter(), list.negated());
        return match words {
            Some(words) => Some(Mask::Words(words)),
            None if has_fixed_width(&column_type) => plain(),
            None => None,
        };
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        // Evaluated as it stands: where its argument is not true it may be NULL.
        return mask(not.arg(), schema, nesting + 1).and_then(|_| plain());
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return matches!(literal.value(), ScalarValue::Boolean(_))
            .then(plain)
            .flatten();
    }
    let tested = { expr.downcast_ref::<IsNullExpr>() }.map(IsNullExpr::arg);
    let tested = tested.or(expr.downcast_ref::<IsNotNullExpr>().map(IsNotNullExpr::arg));
    if let Some(tested) = tested {
        return tested.is::<Column>().then(plain).flatten();
    }
    let (_, column_type) = column_of(expr, schema)?;
    (column_type == DataType::Boolean).then(plain).flatten()
}

fn column_of(expr: &Expr, schema: &Schema) -> Option<(usize, DataType)> {
    let column = expr.downcast_ref::<Column>()?.index();
    let field = schema.fields().get(column)?;
    Some((column, field.data_type().clone()))
}

fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// The words that a column of texts is to be equal to, or is not to be.
fn compared(both: &BinaryExpr, schema: &Schema) -> Option<Words> {
    let is_negated = match both.op() {
        Operator::Eq => false,
        Operator::NotEq => true,
        _ => return None,
    };
    let of = |column: &Expr, literal: &Expr| {
        let (column, column_type) = column_of(column, schema)?;
        let literal = literal.downcast_ref::<Literal>()?;
        Words::of((column, &column_type), std::iter::once(literal), is_negated)
    };
    of(both.left(), both.right()).or_else(|| of(both.right(), both.left()))
}

/// Whether an expression has one value for all rows, which it only reads. Subqueries have theirs
/// before a filter over them reads its input.
fn is_constant(expr: &Expr) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    expr.is::<Literal>()
        || expr.is::<ScalarSubqueryExpr>()
        || expr.is::<SubqueryValue>()
        || call.is_some_and(|call| is_slot(call.fun()))
}

/// Whether columns of fixed width are compared with each other or with constants, or columns of
/// texts with constants.
fn is_cheap_comparison(both: &BinaryExpr, schema: &Schema) -> bool {
    let (left, right) = (both.left(), both.right());
    let is_side = |side: &Expr, other: &Expr| {
        if is_constant(side) {
            return true;
        }
        let column = match side.downcast_ref::<CastExpr>() {
            Some(cast) if widens(cast, schema) => cast.expr(),
            _ => side,
        };
        let Some((_, column_type)) = column_of(column, schema) else {
            return false;
        };
        has_fixed_width(&column_type) || (has_texts(&column_type) && is_constant(other))
    };
    is_side(left, right) && is_side(right, left)
}

/// The type of the values, which a dictionary has one of each of.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        data_type => data_type,
    }
}

fn has_fixed_width(data_type: &DataType) -> bool {
    let data_type = value_type(data_type);
    data_type.is_primitive() || *data_type == DataType::Boolean
}

fn has_texts(data_type: &DataType) -> bool {
    let data_type = value_type(data_type);
    data_type.is_string() || data_type.is_binary()
}

/// Whether a cast of integers has a value for each of them.
fn widens(cast: &CastExpr, schema: &Schema) -> bool {
    let Ok(from) = cast.expr().data_type(schema) else {
        return false;
    };
    let to = cast.cast_type();
    from.is_integer()
        && to.is_integer()
        && from.primitive_width() < to.primitive_width()
        && (to.is_signed_integer() || from.is_unsigned_integer())
}

/// Whether an expression neither warns nor fails: it compares, and calls no function that may.
pub(super) fn is_silent(expr: &Expr, schema: &Schema) -> bool {
    let is_loud = |part: &Expr| {
        let is_silent = match part.downcast_ref::<BinaryExpr>() {
            Some(both) => {
                let is_logic = matches!(both.op(), Operator::And | Operator::Or);
                is_logic || is_comparison(*both.op())
            }
            None => {
                let is_cast = part.downcast_ref::<CastExpr>();
                let is_call = part.downcast_ref::<ScalarFunctionExpr>();
                // A pattern of a column may be one that LIKE refuses.
                let is_like = part.downcast_ref::<LikeExpr>();
                part.is::<Column>()
                    || is_constant(part)
                    || part.is::<CaseExpr>()
                    || part.is::<InListExpr>()
                    || part.is::<IsNotNullExpr>()
                    || part.is::<IsNullExpr>()
                    || part.is::<NotExpr>()
                    || is_cast.is_some_and(|cast| widens(cast, schema))
                    || is_call.is_some_and(|call| is_silent_call(call, schema))
                    || is_like.is_some_and(|like| like.pattern().is::<Literal>())
            }
        };
        Ok(!is_silent)
    };
    !expr.exists(is_loud).unwrap_or(true)
}

/// Whether an expression may warn. Nothing but functions does; arithmetic is functions too, but of
/// integers it only fails. DataFusion's own division counts as well: it fails where MySQL's warns.
pub(crate) fn may_warn(expr: &Expr, schema: &Schema) -> bool {
    let is_loud = |part: &Expr| {
        let call = part.downcast_ref::<ScalarFunctionExpr>();
        let is_loud = |call: &ScalarFunctionExpr| {
            !is_silent_call(call, schema)
                && !is_integer_arithmetic(call, schema)
                && !is_part_of_sum(call, schema)
        };
        Ok(call.is_some_and(is_loud) || is_division(part))
    };
    expr.exists(is_loud).unwrap_or(true)
}

/// Whether an expression is DataFusion's division, in whose programs a zero is an error.
fn is_division(part: &Expr) -> bool {
    let both = part.downcast_ref::<BinaryExpr>();
    both.is_some_and(|both| matches!(both.op(), Operator::Divide | Operator::Modulo))
}

/// Whether a function never warns of the values that it is called with, nor fails.
fn is_silent_call(call: &ScalarFunctionExpr, schema: &Schema) -> bool {
    if is_slot(call.fun()) {
        return true;
    }
    let Some(function) = SilentFunction::named(call.fun().name()) else {
        return false;
    };
    let kind = |argument: &Expr| Kind::of(argument.return_field(schema).ok()?.as_ref());
    function.is_silent(call.args().iter().map(kind))
}

/// Whether a function computes with integers, and divides by no zero.
fn is_integer_arithmetic(call: &ScalarFunctionExpr, schema: &Schema) -> bool {
    let is_integer = |part: &Expr| {
        let of_type = part.data_type(schema);
        of_type.is_ok_and(|of_type| of_type.is_integer())
    };
    let is_zero = |value: &ScalarValue| {
        let zero = ScalarValue::new_zero(&value.data_type());
        zero.is_ok_and(|zero| zero == *value)
    };
    let is_whole = match call.fun().name() {
        // One operator, or several on more operands.
        name if !name.is_empty() && name.bytes().all(|symbol| b"+-*.".contains(&symbol)) => true,
        "mod" => {
            let divisor = call.args().last();
            let divisor = divisor.and_then(|divisor| divisor.downcast_ref::<Literal>());
            divisor.is_some_and(|divisor| !is_zero(divisor.value()))
        }
        _ => false,
    };
    is_whole && call.args().iter().all(is_integer)
}

/// Whether a function is a part of SUM or AVG of numbers: what is added up, or what comes of it.
fn is_part_of_sum(call: &ScalarFunctionExpr, schema: &Schema) -> bool {
    // A mark in front says that no statement writes the name.
    let name = call.fun().name().trim_start_matches(char::is_control);
    let is_number = |part: &Expr| part.data_type(schema).is_ok_and(|of| of.is_numeric());
    matches!(name, "sum_argument" | "sum_result" | "avg_result")
        && call.args().iter().all(is_number)
}

/// A bit for each row for which an expression is true, which NULL is not.
pub(crate) fn true_rows(expr: &Expr, batch: &RecordBatch) -> Result<BooleanBuffer> {
    let rows = batch.num_rows();
    let value = match expr.evaluate(batch)? {
        ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => {
            return Ok(BooleanBuffer::new_set(rows));
        }
        ColumnarValue::Scalar(ScalarValue::Boolean(_)) => {
            return Ok(BooleanBuffer::new_unset(rows));
        }
        value => value.into_array(rows)?,
    };
    let truth = as_boolean_array(&value)?;
    if truth.len() != rows {
        let found = truth.len();
        return internal_err!("a condition has {found} values for {rows} rows");
    }
    Ok(valid_only(truth.values().clone(), truth.nulls()))
}
