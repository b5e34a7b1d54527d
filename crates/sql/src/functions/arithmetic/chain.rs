//! Long sums as one call.
//!
//! `a + b + c + ...` is planned as a tree that is as deep as the sum is long. The engine asks a
//! tree for its type and its name at each node, and each answer walks over all below: the square of
//! the length, some dozens of times for a plan. So what follows the first operators of a long sum
//! becomes one call of its operands, whose function is a program in postfix notation: `.` takes the
//! next operand, an operator the two values before it.
//!
//! ```text
//! ((t + a) - b * 2) + c       ==>  ..+..*-.+ of (t, a, b, 2, c), where t is a tree
//! ```
//!
//! All arguments of a call are computed before it, those of a tree between its operators. That
//! shows where they warn or fail, so only columns and constants become operands here, beside the
//! tree. And what two expressions have in common is computed once where it is a tree, which shows
//! in how often a text that is no number warns: so they are numbers.
//!
//! **Never** rounds, warns or fails in another way than the tree: each step is an operator.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::operator::Operator;
use super::shown_text::{ShownText, text_in_databases};
use super::{Arithmetic, DIVISION_DIGITS, arithmetic_with, named};
use crate::functions::define::{nameless, unbounded};
use crate::functions::raise::raise;
use crate::planning;

/// Operators of a sum that are a tree; further ones are steps of a chain.
const TREE_MAX: usize = 16;

/// What stands for an operand in a program.
const OPERAND: char = '.';

/// Operators on operands, in postfix notation.
#[derive(Clone, Debug)]
struct Chain {
    /// The program, which is the name of the function: chains of the same operands differ by it.
    program: String,
    /// What the steps are once the plan is typed.
    steps: Arc<[Step]>,
    /// The operands as errors show them, once the plan is typed.
    operands: Arc<[String]>,
    signature: Signature,
}

/// An operator of a chain with the type of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    operator: Arithmetic,
    field: FieldRef,
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        self.program == other.program
            && self.steps == other.steps
            && self.operands == other.operands
    }
}

impl Eq for Chain {}

impl Hash for Chain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.program.hash(state);
    }
}

/// An operator applied to two operands; the left one takes it as one more step where it is long and
/// where the right one is made of numbers, of which `is_number` tells. A division adds so many
/// digits behind the point.
pub(crate) fn applied(
    operator: Operator,
    more_digits: u8,
    left: Expr,
    right: Expr,
    is_number: &dyn Fn(&Expr) -> bool,
) -> Expr {
    let is_next = is_step(operator) && is_operand(&right, is_number);
    let open = match &left {
        Expr::ScalarFunction(call) if is_next => open_chain(&call.func).cloned(),
        _ => None,
    };
    match (open, left) {
        (Some(open), Expr::ScalarFunction(call)) => open.with(operator, call.args, right),
        (_, left) if is_next && is_long(&left) => {
            Chain::of_one_operand().with(operator, vec![left], right)
        }
        (_, left) => arithmetic_with(operator, more_digits).call(vec![left, right]),
    }
}

/// Whether an operator may be a step.
fn is_step(operator: Operator) -> bool {
    step_of(operator.symbol()) == Some(operator)
}

/// The operator of a program that has this symbol.
fn step_of(symbol: &str) -> Option<Operator> {
    match symbol {
        "+" => Some(Operator::Add),
        "-" => Some(Operator::Subtract),
        "*" => Some(Operator::Multiply),
        _ => None,
    }
}

/// Whether an expression is made of columns and constants that are numbers, by steps alone.
fn is_operand(expr: &Expr, is_number: &dyn Fn(&Expr) -> bool) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => is_number(expr),
        Expr::ScalarFunction(call) => {
            let operator = call.func.inner().downcast_ref::<Arithmetic>();
            let is_open = |of: &Arithmetic| is_step(of.operator) && of.decided.is_none();
            operator.is_some_and(is_open) && call.args.len() == 2 && { call.args.iter() }
                .all(|side| is_operand(side, is_number))
        }
        _ => false,
    }
}

/// Whether an expression is a tree of many operators that leans to the left.
fn is_long(expr: &Expr) -> bool {
    let mut expr = expr;
    for _ in 0..TREE_MAX {
        expr = match expr {
            Expr::ScalarFunction(call)
                if call.args.len() == 2
                    && call.func.inner().downcast_ref::<Arithmetic>().is_some() =>
            {
                &call.args[0]
            }
            _ => return false,
        };
    }
    true
}

fn chain(function: &ScalarUDF) -> Option<&Chain> {
    function.inner().downcast_ref::<Chain>()
}

/// The chain that a function is, if its types are not decided yet.
fn open_chain(function: &ScalarUDF) -> Option<&Chain> {
    chain(function).filter(|chain| chain.steps.is_empty())
}

/// Whether the function is an operator, or a chain of them.
pub(crate) fn is_operator(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Arithmetic>().is_some() || is_chain(function)
}

/// Whether the function is a chain of operators.
pub(crate) fn is_chain(function: &ScalarUDF) -> bool {
    chain(function).is_some()
}

/// The same chain with the types of its results decided by those of its arguments, and with the
/// texts of its operands; `None` if they are decided already. With it, whether the
/// operator on the first operand has an exact result.
///
/// # Errors
/// Those of the operators about the types.
pub(crate) fn decide(
    function: &ScalarUDF,
    fields: &[FieldRef],
    arguments: &[Expr],
    operands: Vec<String>,
) -> Result<Option<(ScalarUDF, bool)>> {
    let Some(open) = open_chain(function) else {
        return Ok(None);
    };
    let constants = arguments.iter().map(|argument| match argument {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    });
    let constants: Vec<_> = constants.collect();
    let decided = open.with_steps(open.steps(fields, &constants)?, operands);
    let of_tree = decided.sides().iter().position(|(left, _)| *left == 0);
    let is_exact = { of_tree.and_then(|step| decided.steps.get(step)) }
        .is_some_and(|step| matches!(step.operator.decided, Some(ColumnType::Decimal { .. })));
    Ok(Some((ScalarUDF::new_from_impl(decided), is_exact)))
}

/// What an operator, or a chain, returns whose result type is decided.
pub(crate) fn decided(function: &ScalarUDF) -> Option<FieldRef> {
    if let Some(chain) = chain(function) {
        return chain.steps.last().map(|last| Arc::clone(&last.field));
    }
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    let of = operator.decided.as_ref()?;
    Some(Arc::new(of.to_arrow(operator.operator.name(), true)))
}

/// The text of a chain with these texts of its operands; `None` if the function is none.
pub(super) fn text(function: &ScalarUDF, operands: impl FnOnce() -> Vec<String>) -> Option<String> {
    let last = chain(function)?.texts(&operands()).pop();
    Some(last.map_or_else(String::new, |text| text.to_string()))
}

/// The same chain, whose errors name tables with their databases; `None` if they name no table.
pub(super) fn in_databases(
    function: &ScalarUDF,
    databases: &HashMap<String, String>,
) -> Option<ScalarUDF> {
    let chain = chain(function)?;
    let mut is_changed = false;
    let operands = chain.operands.iter().map(|operand| {
        let named = text_in_databases(operand, databases);
        is_changed |= named.is_some();
        named.unwrap_or_else(|| operand.clone())
    });
    let operands: Vec<String> = operands.collect();
    if !is_changed {
        return None;
    }
    let named = chain.with_steps(chain.steps.to_vec(), operands);
    Some(ScalarUDF::new_from_impl(named))
}

impl Chain {
    /// A chain that has its first operand, and no operator yet.
    fn of_one_operand() -> Chain {
        Chain {
            program: OPERAND.to_string(),
            steps: Arc::default(),
            operands: Arc::default(),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// A call of the chain with one more operator, whose right side is an operand.
    fn with(mut self, operator: Operator, mut operands: Vec<Expr>, right: Expr) -> Expr {
        self.take(right, &mut operands);
        self.program.push_str(operator.symbol());
        ScalarUDF::new_from_impl(self).call(operands)
    }

    /// The same chain with these steps, whose errors show the operands by these texts.
    fn with_steps(&self, mut steps: Vec<Step>, operands: Vec<String>) -> Chain {
        for (step, text) in steps.iter_mut().zip(self.texts(&operands)) {
            step.operator.text = text;
        }
        Chain {
            steps: steps.into(),
            operands: operands.into(),
            ..self.clone()
        }
    }

    /// Adds what computes an operand.
    fn take(&mut self, operand: Expr, operands: &mut Vec<Expr>) {
        match operand {
            Expr::ScalarFunction(call) => {
                let operator = call.func.inner().downcast_ref::<Arithmetic>();
                let symbol = operator.map(|of| of.operator.symbol());
                for side in call.args {
                    self.take(side, operands);
                }
                self.program.extend(symbol);
            }
            leaf => {
                self.program.push(OPERAND);
                operands.push(leaf);
            }
        }
    }

    /// The first operand on each side of each operator.
    fn sides(&self) -> Vec<(usize, usize)> {
        let (mut values, mut sides, mut operands) = (Vec::new(), Vec::new(), 0);
        for symbol in self.program.chars() {
            if symbol == OPERAND {
                values.push(operands);
                operands += 1;
            } else if let (Some(right), Some(left)) = (values.pop(), values.pop()) {
                sides.push((left, right));
                values.push(left);
            }
        }
        sides
    }

    /// The text of each step, all parts of one text.
    fn texts(&self, operands: &[String]) -> Vec<ShownText> {
        let sides = self.sides();
        let symbols = self.program.chars().filter(|symbol| *symbol != OPERAND);
        let mut opened = vec![0; operands.len()];
        let mut before = vec![None; operands.len()];
        for (symbol, (left, right)) in symbols.zip(&sides) {
            if let (Some(opened), Some(before)) = (opened.get_mut(*left), before.get_mut(*right)) {
                *opened += 1;
                *before = Some(symbol);
            }
        }
        let mut whole = String::new();
        let (mut starts, mut parts) = (Vec::new(), Vec::new());
        let mut operands = { operands.iter() }.zip(opened).zip(before);
        for symbol in self.program.chars() {
            if symbol == OPERAND {
                let Some(((operand, opened), before)) = operands.next() else {
                    continue;
                };
                if let Some(operator) = before {
                    whole.extend([' ', operator, ' ']);
                }
                whole.extend(std::iter::repeat_n('(', opened));
                starts.push(whole.len());
                whole.push_str(operand);
            } else if let (Some(_), Some(left)) = (starts.pop(), starts.pop()) {
                whole.push(')');
                // The parentheses before an operand are those of its operators, inner ones last.
                let start = usize::saturating_sub(left, 1);
                parts.push(start..whole.len());
                starts.push(start);
            }
        }
        let whole: Arc<str> = whole.into();
        let parts = parts.into_iter();
        parts.map(|part| ShownText::part(&whole, part)).collect()
    }

    /// The steps over arguments of some types.
    fn steps(&self, fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<Vec<Step>> {
        let mut operands = fields.iter().zip(constants);
        let (mut values, mut steps) = (Vec::new(), Vec::new());
        for symbol in self.program.chars() {
            let Some(operator) = step_of(symbol.encode_utf8(&mut [0; 4])) else {
                let (field, constant) = operands.next().ok_or_else(|| self.wrong_count())?;
                values.push((Arc::clone(field), *constant));
                continue;
            };
            let (Some(right), Some(left)) = (values.pop(), values.pop()) else {
                return Err(self.wrong_count());
            };
            let mut operator = Arithmetic::new(operator, DIVISION_DIGITS);
            let of = operator.result(&[left.0, right.0], &[left.1, right.1])?;
            let field = Arc::new(of.to_arrow(operator.operator.name(), true));
            operator.decided = Some(of);
            values.push((Arc::clone(&field), None));
            steps.push(Step { operator, field });
        }
        match operands.next() {
            Some(_) => Err(self.wrong_count()),
            None => Ok(steps),
        }
    }

    fn wrong_count(&self) -> DataFusionError {
        raise(MySqlError::new(ErrorCode::ParameterCount, &[&self.program]))
    }
}

impl ScalarUDFImpl for Chain {
    fn name(&self) -> &str {
        &self.program
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(named::name_of_chain(&self.program, arguments))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let constants = vec![None; types.len()];
        let steps = match self.steps.last() {
            Some(last) => return Ok(last.field.data_type().clone()),
            None => self.steps(&nameless(types), &constants)?,
        };
        match steps.last() {
            Some(last) => Ok(last.field.data_type().clone()),
            None => Err(self.wrong_count()),
        }
    }

    fn evaluate_bounds(&self, arguments: &[&Interval]) -> Result<Interval> {
        unbounded(|types| self.return_type(types), arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        planning::check()?;
        if let Some(last) = self.steps.last() {
            return Ok(Arc::clone(&last.field));
        }
        let steps = self.steps(arguments.arg_fields, arguments.scalar_arguments)?;
        match steps.last() {
            Some(last) => Ok(Arc::clone(&last.field)),
            None => Err(self.wrong_count()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut steps = Arc::clone(&self.steps);
        if steps.is_empty() {
            let constants = arguments.args.iter().map(|argument| match argument {
                ColumnarValue::Scalar(value) => Some(value),
                ColumnarValue::Array(_) => None,
            });
            let constants: Vec<_> = constants.collect();
            steps = self.steps(&arguments.arg_fields, &constants)?.into();
        }
        let mut operands = arguments.args.into_iter().zip(arguments.arg_fields);
        let (mut values, mut steps) = (Vec::new(), steps.iter());
        for symbol in self.program.chars() {
            if symbol == OPERAND {
                values.extend(operands.next());
                continue;
            }
            let (Some(right), Some(left), Some(step)) = (values.pop(), values.pop(), steps.next())
            else {
                return internal_err!("a chain has an operand for each place");
            };
            let value = step.operator.invoke_with_args(ScalarFunctionArgs {
                args: vec![left.0, right.0],
                arg_fields: vec![left.1, right.1],
                number_rows: arguments.number_rows,
                return_field: Arc::clone(&step.field),
                config_options: Arc::clone(&arguments.config_options),
            })?;
            values.push((value, Arc::clone(&step.field)));
        }
        match values.pop() {
            Some((value, _)) => Ok(value),
            None => internal_err!("a chain has a value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::DFSchema;
    use datafusion::logical_expr::{ExprSchemable, col, lit};

    use super::*;
    use crate::functions::arithmetic::{arithmetic, text};

    const OPERATORS: [Operator; 3] = [Operator::Add, Operator::Subtract, Operator::Multiply];

    /// `a + 0 - b * 2 + ...`, joined by a function; the last operator may be another one.
    fn sum(terms: usize, last: Operator, join: impl Fn(Operator, Expr, Expr) -> Expr) -> Expr {
        (0..terms).fold(col("a"), |left, place| {
            let right = match place % 2 {
                0 => lit(i64::try_from(place).unwrap()),
                _ => col("b"),
            };
            let operator = match place + 1 == terms {
                true => last,
                false => OPERATORS[place % 3],
            };
            join(operator, left, right)
        })
    }

    fn tree(terms: usize) -> Expr {
        sum(terms, Operator::Add, |operator, left, right| {
            arithmetic(operator).call(vec![left, right])
        })
    }

    fn chained(terms: usize, last: Operator) -> Expr {
        sum(terms, last, |operator, left, right| {
            applied(operator, DIVISION_DIGITS, left, right, &|_| true)
        })
    }

    fn call(expr: &Expr) -> (&Arc<ScalarUDF>, &[Expr]) {
        match expr {
            Expr::ScalarFunction(call) => (&call.func, &call.args),
            _ => panic!("a call"),
        }
    }

    fn schema(of: ColumnType) -> DFSchema {
        let fields = vec![
            ColumnType::BigInt { unsigned: false }.to_arrow("a", true),
            of.to_arrow("b", true),
        ];
        DFSchema::from_unqualified_fields(fields.into(), HashMap::new()).unwrap()
    }

    #[test]
    fn short_sums_are_trees() {
        assert_eq!(chained(TREE_MAX, Operator::Add), tree(TREE_MAX));
        let long = chained(TREE_MAX + 5, Operator::Add);
        let (function, arguments) = call(&long);
        assert_eq!(function.name(), "..-.*.+.-.+");
        assert_eq!(arguments.len(), 6);
        assert_eq!(arguments[0], tree_of_first());
    }

    /// The operators that stay a tree, of which the last is the one in its place.
    fn tree_of_first() -> Expr {
        sum(
            TREE_MAX,
            OPERATORS[(TREE_MAX - 1) % 3],
            |operator, left, right| arithmetic(operator).call(vec![left, right]),
        )
    }

    #[test]
    fn what_computes_ends_a_chain() {
        let long = chained(TREE_MAX + 5, Operator::Add);
        let computed = arithmetic(Operator::Negate).call(vec![col("a")]);
        let more = applied(
            Operator::Add,
            DIVISION_DIGITS,
            long.clone(),
            computed,
            &|_| true,
        );
        assert_eq!(call(&more).1[0], long);
        let quotient = Operator::Divide;
        let quotient = applied(quotient, DIVISION_DIGITS, long.clone(), col("a"), &|_| true);
        assert_eq!(call(&quotient).1[0], long);
        let text = applied(
            Operator::Add,
            DIVISION_DIGITS,
            long.clone(),
            col("t"),
            &|_| false,
        );
        assert_eq!(call(&text).1[0], long);
    }

    #[test]
    fn texts_and_types_are_those_of_the_tree() {
        let (tree, chained) = (tree(60), chained(60, Operator::Add));
        let ((of_tree, sides), (of_chain, operands)) = (call(&tree), call(&chained));
        assert_eq!(text(of_chain, operands), text(of_tree, sides));
        let decimal = ColumnType::Decimal {
            precision: 10,
            scale: 2,
            unsigned: false,
        };
        let unsigned = ColumnType::BigInt { unsigned: true };
        for of in [decimal, unsigned, ColumnType::DOUBLE, ColumnType::Year] {
            let schema = schema(of);
            let field = |expr: &Expr| expr.to_field(&schema).unwrap().1;
            let (ours, theirs) = (field(&chained), field(&tree));
            assert_eq!(ours.data_type(), theirs.data_type());
            assert_eq!(ours.metadata(), theirs.metadata());
        }
    }

    #[test]
    fn each_step_has_the_text_up_to_it() {
        let chained = chained(TREE_MAX + 2, Operator::Multiply);
        let (function, operands) = call(&chained);
        let chain = chain(function).unwrap();
        let texts = chain.texts(&["x".to_owned(), "1".to_owned(), "`b`".to_owned()]);
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["(x - 1)", "((x - 1) * `b`)"]);
        assert_eq!(operands.len(), 3);
        let product = arithmetic(Operator::Multiply).call(vec![col("b"), lit(2_i64)]);
        let more = applied(
            Operator::Add,
            DIVISION_DIGITS,
            chained.clone(),
            product,
            &|_| true,
        );
        let (function, operands) = call(&more);
        assert_eq!((function.name(), operands.len()), ("..-.*..*+", 5));
        let chain = super::chain(function).unwrap();
        let texts = chain.texts(&["x", "1", "`b`", "y", "2"].map(str::to_owned));
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        assert_eq!(texts[2..], ["(y * 2)", "(((x - 1) * `b`) + (y * 2))"]);
    }

    #[test]
    fn names_tell_chains_apart() {
        let name = |terms, last| chained(terms, last).schema_name().to_string();
        let long = name(100, Operator::Add);
        assert!(long.len() < 40, "{long}");
        assert_eq!(long, name(100, Operator::Add));
        assert_ne!(long, name(101, Operator::Add));
        assert_ne!(long, name(100, Operator::Multiply));
    }
}
