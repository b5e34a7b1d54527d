//! The types of expressions, asked without their names.
//!
//! Where the engine is asked for a type it spells the name of the expression, too, and that of each
//! part. A sum is as deep as it is long: one such question takes the square of its length, and one
//! at each of its nodes the cube. Nothing is named here, and nobody looks below a function whose
//! type is decided. The rule of typing decides it from below upwards, so what it asks at a node
//! ends at the operands of that node.
//!
//! Types and metadata are those of [`ExprSchemable`]. **Never** says whether a value may be NULL,
//! which no type of MySQL depends on.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, ReturnFieldArgs, ScalarUDF};
use mayfly_types::ColumnType;

use crate::functions::{arithmetic, cast, define};

/// What metadata of Arrow's extension types begins with, which a cast drops.
const EXTENSION: &str = "ARROW:extension:";

/// The MySQL type of an expression.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<ColumnType> {
    let field = field_of(expr, schema)?;
    Ok(ColumnType::from_arrow(&field))
}

/// The Arrow type of an expression.
pub(super) fn data_type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    match expr {
        Expr::Alias(alias) if !matches!(*alias.expr, Expr::Placeholder(_)) => {
            data_type_of(&alias.expr, schema)
        }
        Expr::Negative(inner) => data_type_of(inner, schema),
        Expr::BinaryExpr(binary) => {
            let left = data_type_of(&binary.left, schema)?;
            let right = data_type_of(&binary.right, schema)?;
            BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type()
        }
        // The first branch that is not always NULL has the type of all.
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then);
            for branch in branches.chain(&case.else_expr) {
                let data_type = data_type_of(branch, schema)?;
                if !data_type.is_null() {
                    return Ok(data_type);
                }
            }
            Ok(DataType::Null)
        }
        Expr::ScalarFunction(call) => {
            let field = field_of_call(expr, call, schema)?;
            Ok(field.data_type().clone())
        }
        other => other.get_type(schema),
    }
}

/// The type of an expression with its metadata. The field has any name.
pub(super) fn field_of(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    match expr {
        Expr::Alias(alias) if alias.metadata.is_none() => field_of(&alias.expr, schema),
        Expr::Negative(inner) => field_of(inner, schema),
        Expr::Column(column) => schema.field_from_column(column).map(Arc::clone),
        Expr::ScalarFunction(call) => field_of_call(expr, call, schema),
        Expr::Cast(cast) => field_of_cast(cast, schema),
        Expr::Literal(_, None)
        | Expr::BinaryExpr(_)
        | Expr::Case(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => {
            let data_type = data_type_of(expr, schema)?;
            Ok(Arc::new(Field::new("", data_type, true)))
        }
        other => Ok(other.to_field(schema)?.1),
    }
}

/// What a call returns; `expr` is the call.
fn field_of_call(expr: &Expr, call: &ScalarFunction, schema: &DFSchema) -> Result<FieldRef> {
    if let Some(field) = decided(&call.func) {
        return Ok(field);
    }
    let arguments = call.args.iter();
    let fields = arguments.map(|argument| field_of(argument, schema));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let Ok(fields) = fields_with_udf(&fields, call.func.as_ref()) else {
        // The engine words the error.
        return Ok(expr.to_field(schema)?.1);
    };
    let constants = call.args.iter().map(|argument| match argument {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    });
    let constants: Vec<_> = constants.collect();
    call.func.return_field_from_args(ReturnFieldArgs {
        arg_fields: &fields,
        scalar_arguments: &constants,
    })
}

/// What a function returns whatever its arguments are.
fn decided(function: &ScalarUDF) -> Option<FieldRef> {
    let conversion = || cast::target(function).map(|target| Arc::new(target.to_arrow("", true)));
    define::decided(function)
        .or_else(|| arithmetic::decided(function))
        .or_else(conversion)
}

/// A cast to a bare type keeps the metadata of what it casts.
fn field_of_cast(cast: &Cast, schema: &DFSchema) -> Result<FieldRef> {
    let target = &cast.field;
    let is_bare = target.name().is_empty() && target.is_nullable() && target.metadata().is_empty();
    let mut metadata = match is_bare {
        true => field_of(&cast.expr, schema)?.metadata().clone(),
        false => return Ok(Arc::clone(target)),
    };
    metadata.retain(|key, _| !key.starts_with(EXTENSION));
    let field = Field::new("", target.data_type().clone(), true);
    Ok(Arc::new(field.with_metadata(metadata)))
}

/// For tests: how often the types of functions are asked for.
#[cfg(test)]
pub(super) mod counted {
    use std::cell::Cell;
    use std::rc::Rc;

    use mayfly_types::MySqlError;

    use crate::planning::{Watch, watched};

    /// Functions ask the watch before they say what they return, and so do the rules at each node.
    #[derive(Default)]
    struct Counts(Cell<usize>);

    impl Watch for Counts {
        fn check(&self) -> Result<(), MySqlError> {
            self.0.set(self.0.get() + 1);
            Ok(())
        }

        fn hold_bytes(&self, _bytes: u64) -> Result<(), MySqlError> {
            Ok(())
        }
    }

    /// How often the watch is asked while something is planned.
    pub(in crate::typing) fn asked(plan: impl FnOnce()) -> usize {
        let counts = Rc::new(Counts::default());
        watched(Rc::<Counts>::clone(&counts), plan);
        counts.0.get()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use datafusion::logical_expr::{cast as cast_to, col, lit, when};
    use datafusion::scalar::ScalarValue;

    use super::*;
    use crate::functions::arithmetic::{Operator, arithmetic};
    use crate::functions::call;

    fn schema() -> DFSchema {
        let fields = vec![
            ColumnType::BigInt { unsigned: false }.to_arrow("a", true),
            ColumnType::Year.to_arrow("y", true),
            ColumnType::Decimal {
                precision: 10,
                scale: 2,
                unsigned: false,
            }
            .to_arrow("d", true),
            ColumnType::DOUBLE.to_arrow("f", true),
            Field::new("t", DataType::Utf8View, false),
        ];
        DFSchema::from_unqualified_fields(fields.into(), HashMap::new()).unwrap()
    }

    fn add(left: Expr, right: Expr) -> Expr {
        arithmetic(Operator::Add).call(vec![left, right])
    }

    #[test]
    fn types_are_those_that_the_engine_says() {
        let of_list = || call("concat", vec![col("t"), col("y"), lit(1_i64)]);
        let declared = Arc::new(ColumnType::Year.to_arrow("", true));
        let choice = || when(col("t").is_null(), lit(ScalarValue::Null));
        for expr in [
            col("a"),
            col("y"),
            lit(1_i64),
            lit("text"),
            -col("d"),
            col("y").alias("other"),
            add(add(col("a"), lit(1_i64)), col("d")),
            add(add(col("y"), col("f")), of_list()),
            of_list(),
            cast_to(col("y"), DataType::Int64),
            cast_to(add(col("y"), lit(1_i64)), DataType::Float64),
            Expr::Cast(Cast::new_from_field(Box::new(col("t")), declared)),
            cast::conversion(ColumnType::Year).call(vec![col("t")]),
            col("f") + lit(0.0_f64),
            col("a").eq(lit(1_i64)).and(col("t").like(lit("x%"))),
            !col("a").between(lit(1_i64), lit(2_i64)),
            col("a").in_list(vec![lit(1_i64)], false),
            col("a").is_not_null(),
            choice().otherwise(col("y")).unwrap(),
            choice().end().unwrap(),
        ] {
            let schema = schema();
            let (_, theirs) = expr.to_field(&schema).unwrap();
            let ours = field_of(&expr, &schema).unwrap();
            assert_eq!(ours.data_type(), theirs.data_type(), "{expr}");
            assert_eq!(ours.metadata(), theirs.metadata(), "{expr}");
            let data_type = expr.get_type(&schema).unwrap();
            assert_eq!(data_type_of(&expr, &schema).unwrap(), data_type, "{expr}");
        }
    }

    #[test]
    fn errors_are_those_that_the_engine_says() {
        let short = || arithmetic(Operator::Add).call(vec![col("a")]);
        for expr in [
            col("none"),
            add(col("none"), col("a")),
            short(),
            add(short(), col("a")),
            call("concat", vec![short()]),
        ] {
            let schema = schema();
            let theirs = expr.get_type(&schema).unwrap_err().to_string();
            let ours = data_type_of(&expr, &schema).unwrap_err().to_string();
            assert_eq!(ours, theirs, "{expr}");
        }
    }

    #[test]
    fn nobody_looks_below_a_function_whose_type_is_decided() {
        let of = ColumnType::BigInt { unsigned: true };
        let sum = arithmetic(Operator::Add);
        let sum = arithmetic::decide(&sum, &of, String::new()).unwrap();
        let sum = sum.call(vec![col("none"), lit(1_i64)]);
        assert_eq!(type_of(&sum, &schema()).unwrap(), of);
        assert!(sum.get_type(&schema()).is_err());
    }
}
