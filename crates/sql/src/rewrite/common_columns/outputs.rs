//! What a name means that may be an item of the select list: in GROUP BY, HAVING and ORDER BY.

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, Value};
use mayfly_types::MySqlError;

use super::from::ambiguous;
use crate::select_list::expression_of;

/// A select list, and what is grouped by beside it.
#[derive(Clone, Copy)]
pub(super) struct Outputs<'a> {
    pub(super) items: &'a [SelectItem],
    pub(super) keys: &'a [Expr],
    /// Whether names outside of aggregates mean items before they mean columns, as in HAVING.
    pub(super) go_first: bool,
}

/// What a name is in a select list.
pub(super) enum Found<'a> {
    /// Columns that are shown under the name, all of them the same.
    Column(&'a Expr),
    /// A column of that name which is shown under another one.
    Renamed(&'a Expr),
    /// The item at this place, an expression.
    Expression(usize),
}

impl<'a> Outputs<'a> {
    /// Looks a name in lower case up, as MariaDB's `find_item_in_list` does.
    ///
    /// # Errors
    /// 1052 when different columns are shown under it.
    pub(super) fn find(&self, name: &str, clause: &str) -> Result<Option<Found<'a>>, MySqlError> {
        let mut named: Option<&Expr> = None;
        let mut renamed: Option<&Expr> = None;
        let mut are_different = false;
        for (place, item) in self.items.iter().enumerate() {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
                _ => continue,
            };
            let is_alias = alias.is_some_and(|alias| alias.value.to_lowercase() == name);
            let Some(column) = parts(expr).and_then(<[Ident]>::last) else {
                if is_alias {
                    return Ok(Some(Found::Expression(place)));
                }
                continue;
            };
            let is_name = column.value.to_lowercase() == name;
            if is_alias || alias.is_none() && is_name {
                if named.is_some_and(|other| !same(other, expr)) {
                    return Err(ambiguous(name, clause));
                }
                named = Some(expr);
            } else if is_name {
                are_different |= renamed.is_some_and(|other| !same(other, expr));
                renamed = Some(expr);
            }
        }
        match (named, renamed) {
            (Some(expr), _) => Ok(Some(Found::Column(expr))),
            (None, Some(_)) if are_different => Err(ambiguous(name, clause)),
            (None, Some(expr)) => Ok(Some(Found::Renamed(expr))),
            (None, None) => Ok(None),
        }
    }

    /// What a name in HAVING means, unless that is a column of FROM: a column that is grouped by
    /// goes before an item.
    ///
    /// # Errors
    /// 1052 when it means several columns.
    pub(super) fn in_having(&self, name: &str, clause: &str) -> Result<Option<Expr>, MySqlError> {
        let item = self.find(name, clause)?;
        let is_named = |key: &&Expr| {
            let column = parts(key).and_then(<[Ident]>::last);
            column.is_some_and(|column| column.value.to_lowercase() == name)
        };
        let mut grouped = self.keys.iter().filter(is_named);
        if let Some(first) = grouped.next() {
            return match grouped.any(|other| !same(first, other)) {
                true => Err(ambiguous(name, clause)),
                false => Ok(Some(first.clone())),
            };
        }
        Ok(match item {
            None => None,
            Some(Found::Column(expr) | Found::Renamed(expr)) => Some(expr.clone()),
            Some(Found::Expression(place)) => self.expression(place),
        })
    }

    /// The expression at a place.
    pub(super) fn expression(&self, place: usize) -> Option<Expr> {
        let expr = expression_of(self.items.get(place)?)?;
        Some(Expr::Nested(Box::new(expr.clone())))
    }
}

/// The position by which GROUP BY and ORDER BY name an item.
pub(super) fn position(place: usize) -> Expr {
    Expr::Value(Value::Number((place + 1).to_string(), false).into())
}

/// The name of a column, in parentheses or not.
fn parts(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::Nested(inner) => parts(inner),
        Expr::Identifier(ident) => Some(std::slice::from_ref(ident)),
        Expr::CompoundIdentifier(parts) => Some(parts),
        _ => None,
    }
}

/// Whether two names of columns mean one; either may leave its database out.
fn same(left: &Expr, right: &Expr) -> bool {
    let (Some([left @ .., a]), Some([right @ .., b])) = (parts(left), parts(right)) else {
        return false;
    };
    let mut pairs = left.iter().rev().zip(right.iter().rev());
    a.value.to_lowercase() == b.value.to_lowercase() && pairs.all(|(a, b)| a.value == b.value)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::SetExpr;

    use super::{Found, Outputs};
    use crate::parse::parse;
    use crate::statement::Statement;

    /// What `e` means in a select list.
    fn found(list: &str) -> String {
        let (statement, _) = parse(&format!("SELECT {list}")).expect("a statement");
        let Statement::Query(query) = statement else {
            return "no query".to_owned();
        };
        let SetExpr::Select(select) = *query.body else {
            return "no select".to_owned();
        };
        let outputs = Outputs {
            items: &select.projection,
            keys: &[],
            go_first: false,
        };
        match outputs.find("e", "order clause") {
            Err(error) => error.code.to_string(),
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Found::Column(expr))) => expr.to_string(),
            Ok(Some(Found::Renamed(expr))) => format!("renamed {expr}"),
            Ok(Some(Found::Expression(place))) => place.to_string(),
        }
    }

    #[test]
    fn an_expression_goes_before_columns_and_names_before_renamed_ones() {
        for (list, expected) in [
            ("l.a, r.b", "nothing"),
            ("l.a, r.E", "r.E"),
            ("r.e, (e)", "(e)"),
            ("r.e, d.r.e", "d.r.e"),
            ("r.e, l.e", "1052"),
            ("r.e AS k, l.e AS m", "1052"),
            ("r.e AS k, l.e", "l.e"),
            ("r.e AS k, a", "renamed r.e"),
            ("l.a AS e, b", "l.a"),
            ("l.e, -a AS E, r.e", "1"),
            ("l.e, r.e, -a AS e", "1052"),
            ("-a AS e, l.e, r.e", "0"),
            ("e + 1, @e", "nothing"),
        ] {
            assert_eq!(found(list), expected, "{list}");
        }
    }
}
