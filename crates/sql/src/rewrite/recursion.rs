//! Recursive common table expressions in the form that the planner takes.
//!
//! The planner reads `first UNION ALL recursive` and nothing else: what stands before the last
//! UNION is the first part, and what follows the union is dropped. Here parentheses around a part
//! go, several recursive parts become one, and a LIMIT of the whole becomes one of a second table:
//!
//! ```text
//! r AS (a UNION ALL b UNION ALL c LIMIT 3)   b and c name r
//! `r of all` AS (a UNION ALL (b UNION ALL c)), r AS (SELECT * FROM `r of all` LIMIT 3)
//! ```
//!
//! What MySQL refuses in a recursive part is refused, as it would be answered in another sense.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, JoinOperator, ObjectNamePart, Query, Select, SetExpr, SetOperator,
    SetQuantifier, TableFactor, Visitor, VisitorMut, With,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::from_list::plain_alias;
use crate::parse;
use crate::rewrite::refused::groups;
use crate::walk;

/// Gives the tables of a WITH RECURSIVE their form.
///
/// # Errors
/// What MySQL says of a recursion that it does not take, and 1235; of two tables of one name 1066.
pub(super) fn simplify(with: &mut With, bindings: &Bindings) -> Result<(), MySqlError> {
    check_names(with)?;
    if !with.recursive {
        return Ok(());
    }
    let mut tables = Vec::with_capacity(with.cte_tables.len());
    for mut cte in std::mem::take(&mut with.cte_tables) {
        let name = cte.alias.name.value.clone();
        if names(cte.query.as_ref(), &name).all == 0 {
            tables.push(cte);
            continue;
        }
        recursion(&mut cte, &name, bindings)?;
        if cte.query.limit_clause.is_some() {
            let (all, limited) = limited(cte, &name)?;
            tables.push(all);
            cte = limited;
        }
        tables.push(cte);
    }
    with.cte_tables = tables;
    Ok(())
}

fn check_names(with: &With) -> Result<(), MySqlError> {
    let mut known = HashSet::new();
    for name in with.cte_tables.iter().map(|cte| &cte.alias.name.value) {
        if !known.insert(name.to_lowercase()) {
            return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[name]));
        }
    }
    Ok(())
}

fn recursion(cte: &mut Cte, name: &str, bindings: &Bindings) -> Result<(), MySqlError> {
    let refused = |code: ErrorCode| Err(MySqlError::new(code, &[&name]));
    if cte.query.order_by.is_some() {
        return Err(not_supported(
            "ORDER BY over UNION in recursive Common Table Expression",
        ));
    }
    while let SetExpr::Query(inner) = cte.query.body.as_mut()
        && is_bare(inner)
    {
        cte.query.body = inner.body.clone();
    }
    let mut parts = Vec::new();
    if !matches!(*cte.query.body, SetExpr::SetOperation { .. }) {
        return refused(ErrorCode::RecursionWithoutUnion);
    }
    take_apart(&cte.query.body, None, name, &mut parts)?;
    let is_recursive: Vec<bool> = { parts.iter() }
        .map(|(_, part)| names(part, name).all > 0)
        .collect();
    let first = is_recursive.iter().position(|is_recursive| *is_recursive);
    let first = first.unwrap_or(parts.len());
    if first == 0 || is_recursive[first..].contains(&false) {
        return refused(ErrorCode::RecursionWithoutStart);
    }
    let recursive = parts.split_off(first);
    for (_, part) in &recursive {
        let SetExpr::Select(select) = part else {
            return Err(not_supported(
                "this form of a recursive part of a common table expression",
            ));
        };
        check(select, name, bindings)?;
    }
    let is_all = recursive[0].0;
    if recursive.iter().any(|(all, _)| *all != is_all) {
        return Err(not_supported(
            "mix of ALL and DISTINCT UNION operations in recursive CTE spec",
        ));
    }
    let is_all = is_all.unwrap_or(false);
    // Rows are told apart by the recursion, if they are.
    let right = { recursive.into_iter().map(|(_, part)| part) }
        .reduce(|left, right| union(left, true, right));
    let left = { parts.into_iter() }
        .reduce(|(_, left), (all, right)| (None, union(left, all.unwrap_or(false), right)));
    if let (Some((_, left)), Some(right)) = (left, right) {
        *cte.query.body = union(left, is_all, right);
    }
    Ok(())
}

fn union(left: SetExpr, is_all: bool, right: SetExpr) -> SetExpr {
    SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: match is_all {
            true => SetQuantifier::All,
            false => SetQuantifier::None,
        },
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// The parts of a chain, each with whether UNION ALL stands before it; what comes before the first
/// recursive part stays together as it is written.
fn take_apart(
    body: &SetExpr,
    is_all: Option<bool>,
    name: &str,
    parts: &mut Vec<(Option<bool>, SetExpr)>,
) -> Result<(), MySqlError> {
    match body {
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            right,
            set_quantifier,
        } if names(body, name).all > 0 => {
            let is_all_here = *set_quantifier == SetQuantifier::All;
            if is_all.is_some_and(|is_all| is_all != is_all_here) {
                return Err(not_supported(
                    "mix of ALL and DISTINCT UNION operations in recursive CTE spec",
                ));
            }
            take_apart(left, is_all, name, parts)?;
            take_apart(right, Some(is_all_here), name, parts)
        }
        SetExpr::Query(query) if names(body, name).all > 0 => {
            let mut query = query.clone();
            if query.limit_clause.is_none() && !matches!(*query.body, SetExpr::SetOperation { .. })
            {
                // Without LIMIT the order of a part says nothing.
                query.order_by = None;
            }
            if query.order_by.is_some() || query.limit_clause.is_some() {
                return Err(not_supported(
                    "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table \
                     Expression",
                ));
            }
            match is_bare(&query) {
                true => take_apart(&query.body, is_all, name, parts),
                false => Err(not_supported(
                    "this form of a recursive part of a common table expression",
                )),
            }
        }
        body => {
            parts.push((is_all, body.clone()));
            Ok(())
        }
    }
}

/// Whether a query in parentheses is its body and nothing else.
fn is_bare(query: &Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
}

/// What a recursive part may not have.
fn check(select: &Select, name: &str, bindings: &Bindings) -> Result<(), MySqlError> {
    let refused = |code: ErrorCode| Err(MySqlError::new(code, &[&name]));
    let references = names(select, name);
    if references.all > 1 || references.in_expressions > 0 {
        return refused(ErrorCode::RecursionNamedOnce);
    }
    if groups(select, &bindings.aggregates) {
        return refused(ErrorCode::RecursionAggregates);
    }
    if select.distinct.is_some() {
        return Err(not_supported(
            "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table \
             Expression",
        ));
    }
    for from in &select.from {
        let mut left = names(&from.relation, name).all > 0;
        for join in &from.joins {
            let right = names(&join.relation, name).all > 0;
            let is_padded = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => right,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => left,
                _ => false,
            };
            if is_padded {
                return refused(ErrorCode::RecursionOuterJoin);
            }
            left |= right;
        }
    }
    Ok(())
}

/// A recursion under another name, and the rows of it that a LIMIT leaves.
fn limited(mut cte: Cte, name: &str) -> Result<(Cte, Cte), MySqlError> {
    let limit_clause = cte.query.limit_clause.take();
    let all = format!("\u{1}{name} of all");
    let mut query = parse::skeleton(&format!("SELECT * FROM `{all}`"))?;
    query.limit_clause = limit_clause;
    if let SetExpr::Select(select) = query.body.as_mut() {
        // It stands nowhere in the statement.
        select.select_token = AttachedToken::empty();
    }
    let mut limited = cte.clone();
    limited.query = Box::new(query);
    limited.alias.columns.clear();
    cte.alias.name = Ident::with_quote('`', &all);
    let mut rename = Rename { name, all: &all };
    let _ = walk::write(cte.query.as_mut(), &mut rename);
    Ok((cte, limited))
}

/// Names a recursion otherwise where it names itself, under the name that it had.
struct Rename<'a> {
    name: &'a str,
    all: &'a str,
}

impl VisitorMut for Rename<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_reference(factor, self.name)
            && let TableFactor::Table { name, alias, .. } = factor
        {
            alias.get_or_insert_with(|| plain_alias(self.name));
            name.0 = vec![ObjectNamePart::Identifier(Ident::with_quote('`', self.all))];
        }
        ControlFlow::Continue(())
    }
}

/// How often a table is named.
#[derive(Default)]
struct Named {
    all: usize,
    /// In subqueries of expressions.
    in_expressions: usize,
}

fn names(node: &impl datafusion::sql::sqlparser::ast::Visit, name: &str) -> Named {
    struct Count<'a> {
        name: &'a str,
        named: Named,
        expressions: usize,
    }
    impl Visitor for Count<'_> {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if is_reference(factor, self.name) {
                self.named.all += 1;
                self.named.in_expressions += usize::from(self.expressions > 0);
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
            self.expressions += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
            self.expressions -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut count = Count {
        name,
        named: Named::default(),
        expressions: 0,
    };
    let _ = walk::read(node, &mut count);
    count.named
}

fn is_reference(factor: &TableFactor, wanted: &str) -> bool {
    let TableFactor::Table { name, .. } = factor else {
        return false;
    };
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => name.value == wanted,
        _ => false,
    }
}

fn not_supported(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}
