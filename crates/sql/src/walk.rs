//! Walks over a syntax tree, one for readers and one for writers.
//!
//! sqlparser makes its walk anew, over every node that SQL has, for each type of visitor. Behind a
//! reference to a trait object it is made twice, which is most of what this crate takes to
//! compile: visitors go through here, never to `Visit::visit` themselves.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

/// Shows every node of a tree to a reader, until it breaks.
pub(crate) fn read(node: &impl Visit, reader: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    node.visit(&mut Reader(reader))
}

/// Shows every node of a tree to a writer, until it breaks.
pub(crate) fn write(
    node: &mut impl VisitMut,
    writer: &mut dyn VisitorMut<Break = ()>,
) -> ControlFlow<()> {
    node.visit(&mut Writer(writer))
}

/// What a visitor does that counts in its field `depth` in how many queries it is.
macro_rules! counts_depth {
    ($query:ty) => {
        fn pre_visit_query(&mut self, _query: $query) -> std::ops::ControlFlow<()> {
            self.depth += 1;
            std::ops::ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _query: $query) -> std::ops::ControlFlow<()> {
            self.depth -= 1;
            std::ops::ControlFlow::Continue(())
        }
    };
}
pub(crate) use counts_depth;

/// Whether an expression that does not stand in a subquery is what is looked for.
pub fn finds(node: &impl Visit, is_it: &mut dyn FnMut(&Expr) -> bool) -> bool {
    struct Find<'a> {
        is_it: &'a mut dyn FnMut(&Expr) -> bool,
        depth: usize,
    }
    impl Visitor for Find<'_> {
        type Break = ();

        counts_depth!(&Query);

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match self.depth == 0 && (self.is_it)(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    read(node, &mut Find { is_it, depth: 0 }).is_break()
}

/// Whether a query stands in an expression.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    struct Search;
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    read(expr, &mut Search).is_break()
}

/// The conditions that AND connects, in the order in which they are written.
pub fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    operands(condition, &BinaryOperator::And)
}

/// The conditions that OR connects, in the order in which they are written.
pub fn disjuncts(condition: &Expr) -> Vec<&Expr> {
    operands(condition, &BinaryOperator::Or)
}

/// What one operator connects, without parentheses around it. Long chains take no stack.
fn operands<'e>(expr: &'e Expr, connects: &BinaryOperator) -> Vec<&'e Expr> {
    let mut found = Vec::new();
    let mut rest = vec![expr];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Nested(inner) => rest.push(inner),
            Expr::BinaryOp { left, op, right } if op == connects => {
                rest.extend([right.as_ref(), left.as_ref()]);
            }
            other => found.push(other),
        }
    }
    found
}

/// How many expressions a tree has, subqueries included.
pub(crate) fn size(node: &impl Visit) -> u64 {
    struct Count(u64);
    impl Visitor for Count {
        type Break = ();

        fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _always_continues = read(node, &mut count);
    count.0
}

/// Changes the expressions inside an expression, itself included, children first.
pub fn change_expressions(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    change_with_depth(expr, &mut |expr, _| change(expr));
}

/// Does the same, and says of each in how many subqueries it stands.
pub(crate) fn change_with_depth(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr, usize)) {
    struct Change<'a> {
        change: &'a mut dyn FnMut(&mut Expr, usize),
        depth: usize,
    }
    impl VisitorMut for Change<'_> {
        type Break = ();

        counts_depth!(&mut Query);

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            (self.change)(expr, self.depth);
            ControlFlow::Continue(())
        }
    }
    let _ = write(expr, &mut Change { change, depth: 0 });
}

struct Reader<'a>(&'a mut dyn Visitor<Break = ()>);

struct Writer<'a>(&'a mut dyn VisitorMut<Break = ()>);

macro_rules! hand_on {
    ($($name:ident($node:ty);)*) => {
        $(fn $name(&mut self, node: $node) -> ControlFlow<()> {
            self.0.$name(node)
        })*
    };
}

impl Visitor for Reader<'_> {
    type Break = ();

    hand_on! {
        pre_visit_query(&Query);
        post_visit_query(&Query);
        pre_visit_select(&Select);
        post_visit_select(&Select);
        pre_visit_table_factor(&TableFactor);
        post_visit_table_factor(&TableFactor);
        pre_visit_expr(&Expr);
        post_visit_expr(&Expr);
    }
}

impl VisitorMut for Writer<'_> {
    type Break = ();

    hand_on! {
        pre_visit_query(&mut Query);
        post_visit_query(&mut Query);
        pre_visit_select(&mut Select);
        post_visit_select(&mut Select);
        pre_visit_table_factor(&mut TableFactor);
        post_visit_table_factor(&mut TableFactor);
        pre_visit_expr(&mut Expr);
        post_visit_expr(&mut Expr);
    }
}
