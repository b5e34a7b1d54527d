//! How a function is defined, and how a definition becomes a function of the plan.
//!
//! A definition is one line of a table: name, aliases, number of arguments, result type,
//! implementation. Each implementation reads its arguments by MySQL's own conversions
//! ([`Call`]), so no cast is ever planned in front of a function.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::call::{Call, Callee, invoke};
use super::octets;
use super::raise::raise;
use crate::planning;

/// The result type of a function.
#[derive(Clone, Copy)]
pub(crate) enum Returns {
    Text,
    Bytes,
    Integer,
    Unsigned,
    Double,
    Boolean,
    Date,
    /// Decided by the fields and the constant values of the arguments.
    By(fn(&[FieldRef], &[Option<&ScalarValue>]) -> Result<ColumnType>),
}

/// One line of the table of functions.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The least and the most arguments.
    pub(crate) arguments: (usize, usize),
    pub(crate) volatility: Volatility,
    pub(crate) returns: Returns,
    pub(crate) body: fn(&Call<'_>) -> Result<ArrayRef>,
}

/// As many arguments as the caller likes.
pub(crate) const MANY: usize = usize::MAX;

/// A line whose result depends on nothing but its arguments.
pub(crate) const fn pure(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Immutable,
        returns,
        body,
    }
}

/// A line whose result depends on the session, but not on the row.
pub(crate) const fn stable(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Stable,
        returns,
        body,
    }
}

/// A line whose result differs from row to row.
pub(crate) const fn volatile(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Volatile,
        returns,
        body,
    }
}

impl Returns {
    fn resolve(
        self,
        fields: &[FieldRef],
        constants: &[Option<&ScalarValue>],
    ) -> Result<ColumnType> {
        Ok(match self {
            Returns::Text => ColumnType::Text(mayfly_types::BlobSize::Long),
            Returns::Bytes => ColumnType::Blob(mayfly_types::BlobSize::Long),
            Returns::Integer => ColumnType::BigInt { unsigned: false },
            Returns::Unsigned => ColumnType::BigInt { unsigned: true },
            Returns::Double => ColumnType::DOUBLE,
            Returns::Boolean => ColumnType::Bool,
            Returns::Date => ColumnType::Date,
            Returns::By(decide) => decide(fields, constants)?,
        })
    }
}

/// The field that a result of MySQL type `of` has: booleans stay Arrow booleans, so that they
/// can filter.
pub(crate) fn result_field(name: &str, of: &ColumnType) -> FieldRef {
    let field = of.to_arrow(name, true);
    Arc::new(if *of == ColumnType::Bool {
        field.with_data_type(DataType::Boolean)
    } else {
        field
    })
}

/// A function of the plan made from a definition.
#[derive(Clone)]
pub(crate) struct Function {
    definition: &'static Definition,
    /// The result type once the plan is typed: constants may be folded later, types must stay.
    decided: Option<ColumnType>,
    /// Whether a statement that refuses to divide by zero does so here.
    refuses_zero: bool,
    aliases: Vec<String>,
    signature: Signature,
}

/// The same function with its result type decided; `None` if its type never varies, if it is
/// decided already or is no function of this table.
pub(crate) fn decide(function: &ScalarUDF, of: &ColumnType) -> Option<ScalarUDF> {
    let inner = function.inner().downcast_ref::<Function>()?;
    let varies = matches!(inner.definition.returns, Returns::By(_)) && inner.decided.is_none();
    varies.then(|| {
        ScalarUDF::new_from_impl(Function {
            decided: Some(of.clone()),
            ..inner.clone()
        })
    })
}

/// The same function, refusing zero; `None` if it is no function of this table that divides.
pub(crate) fn refusing_zero(function: &ScalarUDF) -> Option<ScalarUDF> {
    let inner = function.inner().downcast_ref::<Function>()?;
    is_logarithm(inner.definition.name).then(|| {
        ScalarUDF::new_from_impl(Function {
            refuses_zero: true,
            ..inner.clone()
        })
    })
}

/// Whether a function is a logarithm.
fn is_logarithm(name: &str) -> bool {
    matches!(name, "ln" | "log" | "log2" | "log10")
}

impl Function {
    pub(crate) fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            decided: None,
            refuses_zero: false,
            aliases: definition
                .aliases
                .iter()
                .map(|alias| (*alias).to_owned())
                .collect(),
            signature: Signature::user_defined(definition.volatility),
        }
    }
}

impl Function {
    /// The type of a result whose arguments may have bytes for characters.
    fn of_bytes(&self, of: ColumnType, fields: &[FieldRef]) -> ColumnType {
        octets::result_type(self.definition.name, fields, of)
    }
}

/// What a function returns whose result type is decided.
pub(crate) fn decided(function: &ScalarUDF) -> Option<FieldRef> {
    let inner = function.inner().downcast_ref::<Function>()?;
    let of = inner.decided.as_ref()?;
    Some(result_field(inner.definition.name, of))
}

/// The name of a function that is one line of the table.
pub(crate) fn name_of(function: &ScalarUDF) -> Option<&'static str> {
    function
        .inner()
        .downcast_ref::<Function>()
        .map(|function| function.definition.name)
}

/// Whether a function is one line of the table whose result has one type, whatever its arguments.
pub(crate) fn has_one_type(function: &ScalarUDF) -> bool {
    let function = function.inner().downcast_ref::<Function>();
    function.is_some_and(|function| !matches!(function.definition.returns, Returns::By(_)))
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.definition.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
            && self.decided == other.decided
            && self.refuses_zero == other.refuses_zero
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (least, most) = self.definition.arguments;
        if types.len() < least || types.len() > most {
            let error = MySqlError::new(ErrorCode::ParameterCount, &[&self.definition.name]);
            return Err(raise(error));
        }
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields = nameless(types);
        let constants = vec![None; fields.len()];
        let of = self.of_bytes(
            self.definition.returns.resolve(&fields, &constants)?,
            &fields,
        );
        Ok(result_field("", &of).data_type().clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // Rules ask for the types of long expressions again and again.
        planning::check()?;
        self.coerce_types(&vec![DataType::Null; arguments.arg_fields.len()])?;
        let of = match &self.decided {
            Some(of) => of.clone(),
            None => {
                let (returns, fields) = (self.definition.returns, arguments.arg_fields);
                self.of_bytes(returns.resolve(fields, arguments.scalar_arguments)?, fields)
            }
        };
        Ok(result_field(self.name(), &of))
    }

    fn evaluate_bounds(&self, arguments: &[&Interval]) -> Result<Interval> {
        unbounded(|types| self.return_type(types), arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let definition = self.definition;
        let callee = Callee {
            name: definition.name,
            volatility: definition.volatility,
            is_of_octets: octets::applies(definition.name, &arguments.arg_fields),
            refuses_zero: self.refuses_zero,
        };
        if callee.is_of_octets {
            let arguments = octets::arguments(definition.name, &arguments)?;
            return invoke(&arguments, &callee, |call| {
                octets::result(call, (definition.body)(call)?)
            });
        }
        invoke(&arguments, &callee, definition.body)
    }
}

/// All values of the type that a function has over arguments of some ranges. What is compared with
/// a range of no type has no order for the engine, which then refuses to sort by it.
pub(crate) fn unbounded(
    return_type: impl FnOnce(&[DataType]) -> Result<DataType>,
    arguments: &[&Interval],
) -> Result<Interval> {
    let types: Vec<DataType> = arguments.iter().map(|range| range.data_type()).collect();
    let of = return_type(&types).unwrap_or(DataType::Null);
    Interval::make_unbounded(&of).or_else(|_| Interval::make_unbounded(&DataType::Null))
}

/// Columns of some types that nothing else is known of.
pub(crate) fn nameless(types: &[DataType]) -> Vec<FieldRef> {
    let columns = types.iter();
    let columns = columns.map(|of| Arc::new(Field::new("", of.clone(), true)));
    columns.collect()
}
