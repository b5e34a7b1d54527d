//! Which common table expressions can be named where a statement is walked.

use std::collections::VecDeque;

use datafusion::sql::sqlparser::ast::With;

/// What labels know of a common table expression.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    /// Its columns, as far as they are known.
    pub(super) columns: Vec<String>,
    /// Whether these are all of them.
    pub(super) is_whole: bool,
    /// Whether it is merged into queries: see [`super::merged`].
    pub(super) is_merged: bool,
}

/// Those that can be named, while the queries of a statement are walked.
pub(crate) struct Ctes<T> {
    /// What is known of each, the nearest last.
    visible: Vec<T>,
    /// The queries around, the innermost last.
    around: Vec<Around<T>>,
}

struct Around<T> {
    /// How many can be named outside of the query.
    outside: usize,
    /// Those of the query that are yet to be walked. Before that they cannot be named.
    hidden: VecDeque<T>,
}

impl<T> Default for Ctes<T> {
    fn default() -> Self {
        Ctes {
            visible: Vec::new(),
            around: Vec::new(),
        }
    }
}

impl<T> Ctes<T> {
    pub(crate) fn visible(&self) -> &[T] {
        &self.visible
    }

    /// Enters a query, whose own can be named at once.
    pub(crate) fn enter(&mut self) {
        self.around.push(Around {
            outside: self.visible.len(),
            hidden: VecDeque::new(),
        });
    }

    pub(crate) fn add(&mut self, cte: T) {
        self.visible.push(cte);
    }

    /// Goes on to what the query is made of. The queries behind WITH come first there, and see
    /// those before them, or all if they are recursive.
    pub(crate) fn go_inside(&mut self, with: Option<&With>) {
        if let Some(around) = self.around.last_mut()
            && with.is_some_and(|with| !with.recursive)
        {
            around.hidden = self.visible.drain(around.outside..).collect();
        }
    }

    /// Leaves a query; if it stands behind WITH, it can be named from here on.
    pub(crate) fn leave(&mut self) {
        if let Some(inner) = self.around.pop() {
            self.visible.truncate(inner.outside);
        }
        let next = { self.around.last_mut() }.and_then(|around| around.hidden.pop_front());
        self.visible.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::With;

    use super::{Ctes, Named};
    use crate::parse::parse;
    use crate::statement::Statement;

    /// The WITH of a query.
    fn with(text: &str) -> Option<With> {
        let (statement, _) = parse(text).expect("a statement");
        match statement {
            Statement::Query(query) => query.with,
            _ => None,
        }
    }

    /// Which can be named.
    fn names(ctes: &Ctes<Named>) -> Vec<&str> {
        ctes.visible().iter().map(|cte| cte.name.as_str()).collect()
    }

    /// Enters a query with two.
    fn inside(text: &str) -> Ctes<Named> {
        let mut ctes = Ctes::default();
        ctes.enter();
        for name in ["a", "b"] {
            ctes.add(Named {
                name: name.to_owned(),
                columns: Vec::new(),
                is_whole: false,
                is_merged: false,
            });
        }
        ctes.go_inside(with(text).as_ref());
        ctes
    }

    #[test]
    fn one_is_named_behind_it_only() {
        let mut ctes = inside("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 3");
        for seen in [[].as_slice(), &["a"], &["a", "b"]] {
            ctes.enter();
            ctes.go_inside(None);
            assert_eq!(names(&ctes), seen);
            ctes.leave();
        }
        ctes.leave();
        assert!(names(&ctes).is_empty());
    }

    #[test]
    fn recursive_ones_see_all() {
        let mut ctes = inside("WITH RECURSIVE a AS (SELECT 1), b AS (SELECT 2) SELECT 3");
        ctes.enter();
        assert_eq!(names(&ctes), ["a", "b"]);
        ctes.leave();
        ctes.leave();
        assert!(names(&ctes).is_empty());
    }
}
