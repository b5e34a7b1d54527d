//! Constant expressions of one shape, which differ in their literals: the cells of
//! `INSERT ... VALUES (CONCAT('a', 1)), (CONCAT('b', 2))`.
//!
//! A shape is planned once, with the literals of one cell in it, so that it has the types of that
//! cell. Then these literals become columns, and the cells are the rows of a batch:
//!
//! ```text
//!   CONCAT('a', 1)   CONCAT('b', 2)
//!          \            /
//!        CONCAT($0, $1)          | $0 | $1 |
//!               |                | a  |  1 |
//!        typed as one cell       | b  |  2 |
//! ```
//!
//! A literal is taken out of a shape only where its value decides nothing but the result
//! (`functions/any_constant.rs`); all others are part of the shape. What of a literal may decide a
//! type is in the name that stands for it: its own type, and how many digits it has.
//!
//! **Never** warns or fails: a cell that would is left to who computes cells one by one, and so is
//! one that has another value each time. **Cost**: a shape is planned in some tens of microseconds,
//! a cell is computed in one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast;
use mayfly_exec::batch_of;

use crate::change::refuse_groups;
use crate::compute::{TypedValue, deciding, is_column_value, is_query};
use crate::declared::mentions;
use crate::functions::any_constant::takes_any_constant;
use crate::functions::arithmetic::refusing_zero_in;
use crate::functions::own::MARK;
use crate::functions::{LongTexts, aside, define, scalar_function};
use crate::in_turn::asked;
use crate::literal::Literal;
use crate::plan::{Planner, raise};
use crate::planning;
use crate::references::{References, Variable, is_clock, variable};
use crate::rewrite::expression::type_literal;
use crate::walk::finds;

/// Cells that are computed at once, and bytes from which on fewer are.
const AT_ONCE: usize = 128;
const AT_ONCE_BYTES: usize = 256 << 10;

/// Bytes of values that are made before any of them is used.
const AHEAD_BYTES: usize = 4 << 20;

/// Shapes that are kept planned.
const SHAPES_MAX: usize = 1024;

/// What stands in a literal for the number of its column.
const PLACE_KEY: &str = "mayfly_place";

/// A constant expression, its literals apart.
#[derive(Debug)]
pub struct Constant {
    shape: ast::Expr,
    literals: Vec<ScalarValue>,
    reads_variables: bool,
}

impl Constant {
    /// Takes an expression apart; `None` for one that names columns, asks a subquery, or reads
    /// what may change while its statement runs.
    pub fn of(expression: &ast::Expr) -> Option<Constant> {
        let mut names = false;
        let mut reads_variables = false;
        let refused = finds(expression, &mut |part| match part {
            ast::Expr::Value(value) => is_long(&value.value),
            ast::Expr::Identifier(name) => match variable(part) {
                Some(Variable::User(_)) => {
                    reads_variables = true;
                    false
                }
                Some(Variable::System(_)) => true,
                None => {
                    names |= !is_clock(name);
                    false
                }
            },
            ast::Expr::CompoundIdentifier(_) => true,
            part => is_query(part) || is_assignment(part),
        });
        // Units of time stand there as columns do.
        if refused || names && !mentions(expression).is_empty() {
            return None;
        }
        let mut shape = expression.clone();
        let mut literals = Vec::new();
        Taker(&mut literals).parts(&mut shape);
        Some(Constant {
            shape,
            literals,
            reads_variables,
        })
    }

    /// Whether it has the value of a variable of the user.
    pub fn reads_variables(&self) -> bool {
        self.reads_variables
    }
}

/// Whether an expression may give variables of the user other values.
pub fn may_assign(expression: &ast::Expr) -> bool {
    !matches!(expression, ast::Expr::Value(_))
        && finds(expression, &mut |part| {
            is_query(part) || is_assignment(part)
        })
}

fn is_assignment(expression: &ast::Expr) -> bool {
    use ast::BinaryOperator::Assignment;
    matches!(expression, ast::Expr::BinaryOp { op: Assignment, .. })
}

/// Whether a literal is one that plans do not copy.
fn is_long(value: &ast::Value) -> bool {
    match value {
        ast::Value::SingleQuotedString(text)
        | ast::Value::DoubleQuotedString(text)
        | ast::Value::HexStringLiteral(text)
        | ast::Value::SingleQuotedByteStringLiteral(text)
        | ast::Value::NationalStringLiteral(text) => LongTexts::is_one(text),
        _ => false,
    }
}

/// Takes literals out of an expression, from the left to the right.
struct Taker<'a>(&'a mut Vec<ScalarValue>);

impl Taker<'_> {
    /// An expression in whose place any constant may stand.
    fn any(&mut self, expr: &mut ast::Expr) {
        if let ast::Expr::Nested(inner) = expr {
            return self.any(inner);
        }
        match literal(expr) {
            Some(value) => *expr = self.column(value),
            None => self.parts(expr),
        }
    }

    /// The parts of an expression that stays as it is.
    fn parts(&mut self, expr: &mut ast::Expr) {
        use ast::Expr::{
            BinaryOp, Case, Cast, Convert, Extract, Function, Nested, Position, Substring, Trim,
            TypedString, UnaryOp,
        };
        use ast::UnaryOperator::Plus;
        match expr {
            Nested(inner) => self.parts(inner),
            UnaryOp { op: Plus, expr } => self.any(expr),
            UnaryOp { expr, .. } => self.parts(expr),
            BinaryOp { left, op, right } if computes(op) => {
                self.argument(left);
                self.argument(right);
            }
            BinaryOp { left, right, .. } => {
                self.parts(left);
                self.parts(right);
            }
            Cast { expr, .. } | Convert { expr, .. } | Extract { expr, .. } => self.any(expr),
            Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                self.any(expr);
                let bounds = [substring_from, substring_for].into_iter().flatten();
                bounds.for_each(|bound| self.any(bound));
            }
            Trim {
                expr, trim_what, ..
            } => {
                self.any(expr);
                trim_what.iter_mut().for_each(|what| self.any(what));
            }
            Position { expr, r#in } => {
                self.any(expr);
                self.any(r#in);
            }
            Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                operand.iter_mut().for_each(|operand| self.parts(operand));
                for when in conditions {
                    self.parts(&mut when.condition);
                    self.parts(&mut when.result);
                }
                else_result.iter_mut().for_each(|other| self.parts(other));
            }
            Function(function) => self.call(function),
            TypedString(_) => self.moment(expr),
            _ => {}
        }
    }

    fn call(&mut self, call: &mut ast::Function) {
        let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_mut_slice() else {
            return;
        };
        name.value.make_ascii_lowercase();
        let Some(function) = scalar_function(&name.value) else {
            return;
        };
        let ast::FunctionArguments::List(list) = &mut call.args else {
            return;
        };
        for (index, argument) in list.args.iter_mut().enumerate() {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) = argument else {
                continue;
            };
            match takes_any_constant(&function, index) {
                true => self.argument(argument),
                false => self.parts(argument),
            }
        }
    }

    /// An argument in whose place any constant may stand, or any interval of a unit.
    fn argument(&mut self, argument: &mut ast::Expr) {
        match argument {
            ast::Expr::Interval(interval) => self.any(&mut interval.value),
            argument => self.any(argument),
        }
    }

    /// `DATE '2026-01-01'`, which is the conversion of a text.
    fn moment(&mut self, expr: &mut ast::Expr) {
        use ast::DataType::{Date, Datetime, Time};
        let ast::Expr::TypedString(literal) = expr else {
            return;
        };
        let mut typed = literal.clone();
        // One that is no such value is an error of its own.
        if type_literal(&mut typed).is_err() {
            return;
        }
        if let (Date | Datetime(_) | Time(..), ast::Value::SingleQuotedString(text)) =
            (&typed.data_type, typed.value.value)
        {
            *expr = ast::Expr::Cast {
                kind: ast::CastKind::Cast,
                expr: Box::new(self.column(ScalarValue::Utf8(Some(text)))),
                data_type: typed.data_type,
                array: false,
                format: None,
            };
        }
    }

    /// The column of a literal.
    fn column(&mut self, value: ScalarValue) -> ast::Expr {
        let name = column_name(self.0.len(), &value);
        self.0.push(value);
        ast::Expr::Identifier(ast::Ident::with_quote('`', name))
    }
}

/// The name of the column of a literal: its place, and all of it that may decide a type.
fn column_name(place: usize, value: &ScalarValue) -> String {
    match value {
        ScalarValue::Int64(Some(number)) => {
            format!("{MARK}{place} i{}", digits(number.unsigned_abs()))
        }
        ScalarValue::UInt64(Some(number)) => format!("{MARK}{place} u{}", digits(*number)),
        ScalarValue::Utf8(Some(text)) => format!("{MARK}{place} t{}", second_digits(text)),
        other => format!("{MARK}{place} {}", other.data_type()).to_lowercase(),
    }
}

/// The number of the column of a name.
fn place_of(name: &str) -> Option<usize> {
    let (place, _) = name.strip_prefix(MARK)?.split_once(' ')?;
    place.parse().ok()
}

fn digits(number: u64) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// The digits behind the last point of a text, of which a time shows six at most.
fn second_digits(text: &str) -> usize {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    digits.take(6).count()
}

/// Whether an operator takes numbers and makes one.
fn computes(operator: &ast::BinaryOperator) -> bool {
    use ast::BinaryOperator::{
        BitwiseAnd, BitwiseOr, BitwiseXor, Divide, Minus, Modulo, Multiply, MyIntegerDivide,
        PGBitwiseShiftLeft, PGBitwiseShiftRight, Plus,
    };
    matches!(operator, Plus | Minus | Multiply | Divide)
        || matches!(operator, Modulo | MyIntegerDivide)
        || matches!(operator, BitwiseAnd | BitwiseOr | BitwiseXor)
        || matches!(operator, PGBitwiseShiftLeft | PGBitwiseShiftRight)
}

/// The value of a number or a text, as the planner reads it; `None` for what it makes something
/// else of: NULL, and numbers with an exponent.
fn literal(expr: &ast::Expr) -> Option<ScalarValue> {
    let literal = Literal::of(expr)??;
    let has_exponent = !literal.is_text && literal.spelled.contains(['e', 'E']);
    literal.value().filter(|_| !has_exponent)
}

/// Cells by their shapes.
#[derive(Debug, Default)]
pub struct Constants {
    cells: HashMap<ast::Expr, Cells>,
    count: usize,
}

/// The cells of one shape.
#[derive(Debug, Default)]
struct Cells {
    places: Vec<usize>,
    /// The literals of the first cell, of the second, ...
    literals: Vec<Vec<ScalarValue>>,
}

impl Constants {
    /// Adds a cell, with a number by which its value is found.
    pub fn add(&mut self, place: usize, constant: Constant) {
        let cells = self.cells.entry(constant.shape).or_default();
        cells.places.push(place);
        cells.literals.push(constant.literals);
        self.count += 1;
    }

    /// How many cells there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What the cells mention.
    pub fn references(&self) -> References {
        let mut references = References::default();
        for shape in self.cells.keys() {
            references.add(References::of_expression(shape));
        }
        references
    }
}

/// The shapes of a statement that are planned.
#[derive(Debug, Default)]
pub struct Shapes {
    /// `None` for those whose cells are computed one by one.
    planned: HashMap<ast::Expr, Option<Shape>>,
    made: usize,
}

impl Shapes {
    /// How many shapes were planned.
    pub fn made(&self) -> usize {
        self.made
    }
}

/// An expression over literals as columns, ready to run.
#[derive(Debug, Clone)]
struct Shape {
    expression: Arc<dyn PhysicalExpr>,
    /// The MySQL type of its values, where that decides.
    field: Option<FieldRef>,
    columns: SchemaRef,
}

/// The values of cells.
#[derive(Debug)]
pub struct Computed {
    /// The values with the numbers of their cells. Those are left out that are to be computed one
    /// by one: they warn, fail or change, or there are too many bytes before them.
    pub values: Vec<(usize, TypedValue)>,
    /// The bytes of long values.
    pub bytes: usize,
}

impl Planner<'_> {
    /// The values of cells.
    ///
    /// # Errors
    /// Those of the watch.
    pub fn constants(&self, constants: Constants, shapes: &mut Shapes) -> Result<Computed> {
        let mut computed = Computed {
            values: Vec::with_capacity(constants.count),
            bytes: 0,
        };
        for (shape, cells) in constants.cells {
            planning::check()?;
            if let Some(shape) = self.known_shape(shape, &cells, shapes)? {
                let values = shape.values(&cells.literals, &mut computed.bytes)?;
                let placed = cells.places.into_iter().zip(values);
                let placed = placed.filter_map(|(place, value)| {
                    let (value, field) = (value?, shape.field.clone());
                    Some((place, TypedValue { value, field }))
                });
                computed.values.extend(placed);
            }
        }
        Ok(computed)
    }

    fn known_shape(
        &self,
        shape: ast::Expr,
        cells: &Cells,
        shapes: &mut Shapes,
    ) -> Result<Option<Shape>> {
        if let Some(known) = shapes.planned.get(&shape) {
            return Ok(known.clone());
        }
        let sample = cells.literals.first().map_or(&[][..], Vec::as_slice);
        // What warns or fails here does so again where cells are computed one by one.
        let (made, warnings) = aside(|| self.shape(shape.clone(), sample));
        let made = match made {
            Ok(made) => made.filter(|_| warnings.is_empty()),
            Err(_) => {
                planning::check()?;
                None
            }
        };
        shapes.made += 1;
        if shapes.planned.len() >= SHAPES_MAX {
            shapes.planned.clear();
        }
        shapes.planned.insert(shape, made.clone());
        Ok(made)
    }

    /// Plans a shape with the literals of a cell; `None` where these decide more than the result.
    fn shape(&self, shape: ast::Expr, sample: &[ScalarValue]) -> Result<Option<Shape>> {
        refuse_groups([&shape], &self.bindings.aggregates).map_err(raise)?;
        let fields = { sample.iter().enumerate() }
            .map(|(place, value)| Field::new(column_name(place, value), value.data_type(), false));
        let columns = Schema::new(fields.collect::<Vec<_>>());
        let schema = DFSchema::try_from(columns.clone())?;
        let is_of_column = is_column_value(&shape);
        let untyped = self.expression(shape, &schema)?;
        let with_literals = untyped.transform_up(|part| {
            let place = match &part {
                Expr::Column(column) => place_of(&column.name),
                _ => None,
            };
            let value = place.and_then(|place| Some((place, sample.get(place)?)));
            Ok(match value {
                Some((place, value)) => Transformed::yes(tagged(value, place)),
                None => Transformed::no(part),
            })
        })?;
        let marked = refusing_zero_in(with_literals.data)?;
        let typed = self.typed_values(vec![marked])?;
        let typed = typed.and_then(|mut values| values.pop());
        let Some(typed) = typed.filter(|typed| !may_change(typed)) else {
            return Ok(None);
        };
        let field = deciding(&typed.to_field(&DFSchema::empty())?.1, is_of_column);
        let mut is_found = vec![false; sample.len()];
        let with_columns = typed.transform_up(|part| {
            let Some(place) = tag_of(&part, sample) else {
                return Ok(Transformed::no(part));
            };
            is_found[place] = true;
            let name = column_name(place, &sample[place]);
            Ok(Transformed::yes(Expr::Column(Column::from_name(name))))
        })?;
        // One that is gone has decided what stands there now.
        if is_found.contains(&false) {
            return Ok(None);
        }
        let ready = (self.state).create_physical_expr(with_columns.data, &schema)?;
        Ok(Some(Shape {
            expression: asked(ready)?.data,
            field,
            columns: Arc::new(columns),
        }))
    }
}

/// A literal that says which one it is, wherever the typing moves it.
fn tagged(value: &ScalarValue, place: usize) -> Expr {
    let tag = BTreeMap::from([(PLACE_KEY.to_owned(), place.to_string())]);
    Expr::Literal(value.clone(), Some(FieldMetadata::new(tag)))
}

/// Which of the literals an expression is; `None` for one that has become another value.
fn tag_of(expr: &Expr, sample: &[ScalarValue]) -> Option<usize> {
    let Expr::Literal(value, Some(metadata)) = expr else {
        return None;
    };
    let place = metadata.inner().get(PLACE_KEY)?.parse().ok()?;
    (sample.get(place)? == value).then_some(place)
}

/// Whether the value of an expression may be another one when it is computed again.
fn may_change(expr: &Expr) -> bool {
    let changes = expr.exists(|part| {
        Ok(match part {
            // LAST_INSERT_ID(5) in the cell before changes it.
            Expr::ScalarFunction(call) => define::name_of(&call.func) == Some("last_insert_id"),
            _ => false,
        })
    });
    changes.unwrap_or(true) || expr.is_volatile()
}

impl Shape {
    /// The values of the first cells, of all if they are not long; `None` for one that warns or
    /// fails.
    fn values(
        &self,
        cells: &[Vec<ScalarValue>],
        bytes: &mut usize,
    ) -> Result<Vec<Option<ScalarValue>>> {
        let mut values = Vec::with_capacity(cells.len());
        let mut rest = cells;
        // How long they are is known when the first of them are made.
        let mut at_once = 1;
        while !rest.is_empty() && *bytes < AHEAD_BYTES {
            let (part, behind) = rest.split_at(at_once.min(rest.len()));
            let columns = (0..self.columns.fields().len()).map(|column| {
                let literals = part.iter().filter_map(|cell| cell.get(column).cloned());
                ScalarValue::iter_to_array(literals)
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let rows = batch_of(&self.columns, columns, part.len())?;
            let before = values.len();
            self.compute(&rows, &mut values)?;
            let made = values.iter().skip(before).flatten();
            let long: usize = made.map(|value| value.size() - size_of_val(value)).sum();
            *bytes += long;
            at_once = match long > AT_ONCE_BYTES {
                true => (at_once / 2).max(1),
                false => (at_once * 2).min(AT_ONCE),
            };
            rest = behind;
        }
        Ok(values)
    }

    /// Computes rows, half by half where one of them warns or fails, or all are too long together.
    fn compute(&self, rows: &RecordBatch, values: &mut Vec<Option<ScalarValue>>) -> Result<()> {
        planning::check()?;
        let count = rows.num_rows();
        let (computed, warnings) = aside(|| self.expression.evaluate(rows));
        match computed.map(|computed| (computed, warnings.is_empty())) {
            Ok((ColumnarValue::Scalar(value), true)) => {
                values.extend(std::iter::repeat_n(Some(value), count));
            }
            Ok((ColumnarValue::Array(array), true))
                if count < 2 || array.get_array_memory_size() <= AHEAD_BYTES =>
            {
                for row in 0..count {
                    values.push(Some(ScalarValue::try_from_array(&array, row)?));
                }
            }
            _ if count < 2 => values.push(None),
            _ => {
                let half = count / 2;
                self.compute(&rows.slice(0, half), values)?;
                self.compute(&rows.slice(half, count - half), values)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
