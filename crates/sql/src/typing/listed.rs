//! ENUM and SET where a number is wanted, and hexadecimal literals.
//!
//! **Owns** where that is: beside numbers, under operators on numbers, as arguments of functions
//! that take numbers, in tests for truth, and in orders. There a column of ENUM or SET counts by
//! its place in the list, and `0x10` is a number; everywhere else both are texts.
//!
//! Only a column does so, and a column of a derived table that hands one on. What is computed of it
//! is a text, as in MySQL's temporary tables: the values of IF and COALESCE, of a subquery, of a
//! union of two columns, of a window; so those lose the list here.
//!
//! **Never** looks at a list before a statement is typed: while it is planned the columns of a
//! union have the type of those of its first SELECT.

use std::collections::HashMap;

use arrow::datatypes::Field;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, Case, Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, Operator, ScalarUDF, WindowFunctionDefinition, binary_expr, lit,
};
use mayfly_types::{COLLATION_KEY, ColumnType, TYPE_KEY};

use super::frames;
use super::kind::{kind, number_of_bytes};
use crate::functions::cast::as_text;
use crate::functions::listed::{place, text_type};
use crate::functions::octets::takes_number;
use crate::functions::{arithmetic, call, cast, define};

/// The ENUM or SET that a field was declared as.
pub(super) fn list_of_field(field: &Field) -> Option<ColumnType> {
    let declared = field.metadata().get(TYPE_KEY)?;
    let is_list = declared.starts_with("enum(") || declared.starts_with("set(");
    is_list
        .then(|| ColumnType::from_arrow(field))
        .filter(ColumnType::is_list)
}

/// The ENUM or SET that an expression hands on from a column.
pub(super) fn list_of(expr: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    match expr {
        Expr::Alias(alias) => list_of(&alias.expr, schema),
        Expr::Column(column) => list_of_field(schema.field_from_column(column).ok()?),
        Expr::OuterReferenceColumn(field, _) => list_of_field(field),
        // What a column is assigned before another one reads it.
        Expr::Cast(cast) => list_of_field(&cast.field),
        Expr::ScalarFunction(call) => cast::target(&call.func)
            .filter(|target| target.is_list())
            .cloned(),
        _ => None,
    }
}

fn placed(expr: Expr, list: &ColumnType) -> Expr {
    place(list).call(vec![expr])
}

/// The number that an expression is where one is wanted, if it is something else elsewhere.
pub(super) fn as_number(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    number_of_bytes(expr).or_else(|| {
        let list = list_of(expr, schema)?;
        Some(placed(expr.clone(), &list))
    })
}

/// The arguments of a call, numbers where the function takes numbers.
pub(super) fn arguments(
    function: &ScalarUDF,
    mut arguments: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    for index in 0..arguments.len() {
        if let Some(number) = as_number(&arguments[index], schema)
            && is_number_wanted(function, index, &arguments, schema)?
        {
            arguments[index] = number;
        }
    }
    Ok(arguments)
}

fn is_number_wanted(
    function: &ScalarUDF,
    index: usize,
    arguments: &[Expr],
    schema: &DFSchema,
) -> Result<bool> {
    let is_numeric = |target: &ColumnType| target.is_numeric();
    if arithmetic::is_operator(function) || cast::target(function).is_some_and(is_numeric) {
        return Ok(true);
    }
    match define::name_of(function) {
        // Their arguments are compared with each other.
        Some("field" | "greatest" | "least") => any_number(arguments.iter(), schema),
        Some(name) => Ok(takes_number(name, index)),
        None => Ok(false),
    }
}

/// Whether one of several values is a number.
pub(super) fn any_number<'a>(
    mut exprs: impl Iterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    exprs.try_fold(
        false,
        |any, expr| Ok(any || kind(expr, schema)?.is_number()),
    )
}

/// FIND_IN_SET of a constant in a column of SET tells the place of the word in the list of the
/// column, not in the value; `None` for other arguments.
///
/// **Source**: `Item_func_find_in_set` of MySQL's `sql/item_func.cc`.
pub(super) fn find_in_set(arguments: &[Expr], schema: &DFSchema) -> Option<Expr> {
    let [Expr::Literal(word, _), column] = arguments else {
        return None;
    };
    let list = list_of(column, schema)?;
    let ColumnType::Set(words) = &list else {
        return None;
    };
    let word = word.try_as_str()??;
    let (_, place) = words
        .iter()
        .zip(1_i64..)
        .find(|(known, _)| *known == word)?;
    let text = as_text(column.clone(), &list);
    let found = call("find_in_set", vec![arguments[0].clone(), text]);
    let is_found = binary_expr(found.clone(), Operator::Gt, lit(0_i64));
    let branches = vec![(Box::new(is_found), Box::new(lit(place)))];
    Some(Expr::Case(Case::new(None, branches, Some(Box::new(found)))))
}

/// Keys of a sort: columns of lists by their places.
pub(super) fn in_keys(mut keys: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
    for key in &mut keys {
        by_place(&mut key.expr, schema);
    }
    keys
}

fn by_place(key: &mut Expr, schema: &DFSchema) {
    if let Some(list) = list_of(key, schema) {
        *key = placed(std::mem::take(key), &list);
    }
}

/// The keys of GROUP_CONCAT, which stand behind its value.
pub(super) fn in_group_concat(
    mut function: AggregateFunction,
    schema: &DFSchema,
) -> AggregateFunction {
    for key in function.params.args.iter_mut().skip(1) {
        by_place(key, schema);
    }
    function
}

/// What a window is sorted by; and the values of other rows, which are texts.
///
/// # Errors
/// If a frame of values is to be made of texts: MySQL takes a list for one.
pub(super) fn in_window(mut window: WindowFunction, schema: &DFSchema) -> Result<WindowFunction> {
    let params = &mut window.params;
    frames::check(params, schema)?;
    params.order_by = in_keys(std::mem::take(&mut params.order_by), schema);
    frames::write(params, schema)?;
    if let WindowFunctionDefinition::WindowUDF(_) = &window.fun
        && let Some(value) = params.args.first_mut()
        && let Some(list) = list_of(value, schema)
    {
        *value = as_text(std::mem::take(value), &list);
    }
    Ok(window)
}

/// What says the MySQL type of a value that was taken from a field; `None` for a field that is not
/// declared. Without groups there is no temporary table, and MySQL has ENUM and SET as texts only.
pub(super) fn metadata_of_value(field: &Field, is_grouped: bool) -> Option<FieldMetadata> {
    let mut of: HashMap<String, String> = field
        .metadata()
        .iter()
        .filter(|(key, _)| *key == TYPE_KEY || *key == COLLATION_KEY)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if of.is_empty() {
        return None;
    }
    if let Some(list) = list_of_field(field).filter(|_| !is_grouped) {
        of.insert(TYPE_KEY.to_owned(), text_type(&list).to_string());
    }
    Some(FieldMetadata::from(of))
}
