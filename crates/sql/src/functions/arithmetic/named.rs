//! The names of arithmetic expressions, by which the engine knows their columns.
//!
//! The engine asks for the name of each expression at each of its nodes, again and again. A long
//! sum is as deep as it is long, so that spelling the names takes the cube of its length: 40
//! seconds for 500 summands. The name of a large expression is a digest therefore. Nobody reads
//! it: users see what they wrote.

use std::hash::{BuildHasher, Hash, Hasher};

use datafusion::common::hash_utils::QualityRandomState;
use datafusion::logical_expr::Expr;

use super::operator::Operator;

/// Nodes of an expression whose name is spelled.
const SPELLED_MAX: usize = 48;

/// Characters of an operator's symbol, at most.
const SYMBOL_MAX: usize = 3;

/// The name of an operator with its operands.
pub(super) fn name(operator: Operator, operands: &[Expr]) -> String {
    let mut rest = SPELLED_MAX;
    if !operands.iter().all(|operand| is_small(operand, &mut rest)) {
        return digest(operator.symbol(), operands);
    }
    let names: Vec<String> = operands
        .iter()
        .map(|operand| operand.schema_name().to_string())
        .collect();
    match names.as_slice() {
        [operand] => format!("{}{operand}", operator.symbol()),
        [left, right] => format!("({left} {} {right})", operator.symbol()),
        _ => operator.symbol().to_owned(),
    }
}

/// The name of a chain of operators, which is a program on operands.
pub(super) fn name_of_chain(program: &str, operands: &[Expr]) -> String {
    digest(program, operands)
}

/// Whether an expression has no more nodes than are left; each takes one of them.
fn is_small(expr: &Expr, rest: &mut usize) -> bool {
    if *rest == 0 {
        return false;
    }
    *rest -= 1;
    match expr {
        Expr::Cast(cast) => is_small(&cast.expr, rest),
        Expr::ScalarFunction(call) => call.args.iter().all(|operand| is_small(operand, rest)),
        Expr::BinaryExpr(binary) => is_small(&binary.left, rest) && is_small(&binary.right, rest),
        _ => true,
    }
}

fn digest(symbols: &str, operands: &[Expr]) -> String {
    // Two of 64 bits: names that are alike would be one column.
    let mut hashers = [1, 2].map(|seed| QualityRandomState::with_seed(seed).build_hasher());
    for hasher in &mut hashers {
        symbols.hash(hasher);
        operands.len().hash(hasher);
        for operand in operands {
            add(operand, hasher);
        }
    }
    let [first, second] = hashers.map(|hasher| hasher.finish());
    // The first of a chain say enough.
    let symbol: String = symbols.chars().take(SYMBOL_MAX).collect();
    format!("{symbol}#{first:016x}{second:016x}")
}

/// Adds what the name of an expression would show: no casts, which come and go while a plan is
/// made.
fn add(expr: &Expr, hasher: &mut impl Hasher) {
    match expr {
        Expr::Cast(cast) => add(&cast.expr, hasher),
        Expr::Column(column) => {
            hasher.write_u8(1);
            column.relation.hash(hasher);
            column.name.hash(hasher);
        }
        Expr::Literal(value, _) => {
            hasher.write_u8(2);
            value.hash(hasher);
        }
        Expr::ScalarFunction(call) => {
            hasher.write_u8(3);
            call.func.name().hash(hasher);
            call.args.len().hash(hasher);
            for operand in &call.args {
                add(operand, hasher);
            }
        }
        Expr::BinaryExpr(binary) => {
            hasher.write_u8(4);
            binary.op.hash(hasher);
            add(&binary.left, hasher);
            add(&binary.right, hasher);
        }
        other => {
            hasher.write_u8(5);
            other.schema_name().to_string().hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{Cast, Expr, col, lit};

    use super::name;
    use crate::functions::arithmetic::{Operator, arithmetic};

    /// `a + 0 + 1 + ...`.
    fn sum(terms: i64, last: i64) -> Expr {
        let add = |left: Expr, right: i64| arithmetic(Operator::Add).call(vec![left, lit(right)]);
        add((0..terms).fold(col("a"), add), last)
    }

    fn name_of(expr: &Expr) -> String {
        let Expr::ScalarFunction(call) = expr else {
            panic!("a call");
        };
        name(Operator::Add, &call.args)
    }

    #[test]
    fn large_expressions_have_short_names_of_their_own() {
        assert_eq!(name_of(&sum(1, 7)), "((a + Int64(0)) + Int64(7))");
        let large = name_of(&sum(500, 7));
        assert!(large.len() < 40, "{large}");
        assert_eq!(large, name_of(&sum(500, 7)));
        assert_ne!(large, name_of(&sum(500, 8)));
        assert_ne!(large, name_of(&sum(501, 7)));
        let Expr::ScalarFunction(mut call) = sum(500, 7) else {
            panic!("a call");
        };
        let cast = Cast::new(Box::new(call.args[0].clone()), DataType::Float64);
        call.args[0] = Expr::Cast(cast);
        assert_eq!(large, name(Operator::Add, &call.args));
    }
}
