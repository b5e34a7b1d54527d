//! What a name means that may be an item of the select list: in GROUP BY, HAVING and ORDER BY.

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, Value};
use mayfly_types::MySqlError;

use super::from::ambiguous;
use crate::rewrite::grouping;
use crate::select_list::{column, expression_of, is_wildcard};
use crate::walk::change_expressions;

/// A select list, and what is grouped by beside it.
#[derive(Clone, Copy)]
pub(in crate::rewrite) struct Outputs<'a> {
    pub(in crate::rewrite) items: &'a [SelectItem],
    pub(in crate::rewrite) keys: &'a [Expr],
    /// Whether names outside of aggregates mean items before they mean columns, as in HAVING.
    pub(in crate::rewrite) go_first: bool,
}

/// What a name is in a select list.
pub(in crate::rewrite) enum Found<'a> {
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
    pub(in crate::rewrite) fn find(
        &self,
        name: &str,
        clause: &str,
    ) -> Result<Option<Found<'a>>, MySqlError> {
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
            let Some(own) = column(expr).and_then(<[Ident]>::last) else {
                if is_alias {
                    return Ok(Some(Found::Expression(place)));
                }
                continue;
            };
            let is_name = own.value.to_lowercase() == name;
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

    /// What a name in HAVING means, unless that is a column of FROM: what is grouped by goes before
    /// an item. `is_column` tells whether FROM has a column of a name in lower case.
    ///
    /// # Errors
    /// 1052 when it means several columns.
    pub(super) fn in_having(
        &self,
        name: &str,
        clause: &str,
        is_column: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Expr>, MySqlError> {
        let item = self.find(name, clause)?;
        if let Some(grouped) = grouped(&self.keys(is_column), name, clause)? {
            return Ok(Some(nested(grouped)));
        }
        Ok(match item {
            None => None,
            Some(Found::Column(expr) | Found::Renamed(expr)) => Some(expr.clone()),
            Some(Found::Expression(place)) => self.expression(place),
        })
    }

    /// The expression at a place.
    pub(super) fn expression(&self, place: usize) -> Option<Expr> {
        expression_of(self.items.get(place)?).map(nested)
    }

    /// What is grouped by, as the items that it means where it means some. `is_column` as in
    /// [`Outputs::in_having`].
    pub(in crate::rewrite) fn keys(&self, is_column: &dyn Fn(&str) -> bool) -> Vec<Key<'a>> {
        let is_expression = |key: &Expr| column(key).is_none() && grouping::position(key).is_none();
        // Made once for all keys: a wide list may have as many.
        let expressions: Vec<(&SelectItem, Comparable)> = match self.keys.iter().any(is_expression)
        {
            true => { self.items.iter() }
                .filter_map(|item| Some((item, expression_of(item)?)))
                .filter(|(_, expr)| column(expr).is_none())
                .map(|(item, expr)| (item, Comparable::of(expr)))
                .collect(),
            false => Vec::new(),
        };
        let keys = self.keys.iter();
        keys.map(|key| {
            let item = match is_expression(key) {
                true => {
                    let key = Comparable::of(key);
                    let item = expressions.iter().find(|(_, expr)| expr.is(&key));
                    item.map(|(item, _)| *item)
                }
                false => self.item_of(key, is_column),
            };
            let item = item.and_then(key_of);
            item.unwrap_or(Key {
                expr: key,
                alias: None,
            })
        })
        .collect()
    }

    /// The item that a key of GROUP BY means which is a place or the name of a column.
    fn item_of(&self, key: &Expr, is_column: &dyn Fn(&str) -> bool) -> Option<&'a SelectItem> {
        if let Some(place) = grouping::position(key) {
            let place = place.checked_sub(1)?;
            let is_known = !self.items.iter().take(place).any(is_wildcard);
            return self.items.get(place).filter(|_| is_known);
        }
        let mut items = self.items.iter();
        let is_it = |item: &&SelectItem| expression_of(item).is_some_and(|expr| same(expr, key));
        let [name] = column(key)? else {
            return items.find(is_it);
        };
        let name = name.value.to_lowercase();
        match self.find(&name, "group statement").ok()?? {
            Found::Expression(place) => self.items.get(place).filter(|_| !is_column(&name)),
            Found::Column(_) => {
                let named = items.find(|item| is_shown_as(item, &name))?;
                (is_it(&named) || !is_column(&name)).then_some(named)
            }
            Found::Renamed(_) => items.find(is_it),
        }
    }
}

/// What is grouped by.
pub(in crate::rewrite) struct Key<'a> {
    pub(in crate::rewrite) expr: &'a Expr,
    /// What the item is called that it is.
    alias: Option<&'a Ident>,
}

/// The key of GROUP BY that a name in lower case means in HAVING: by the alias of its item, or by
/// the name of its column.
///
/// # Errors
/// 1052 when different keys have the name.
pub(in crate::rewrite) fn grouped<'a>(
    keys: &[Key<'a>],
    name: &str,
    clause: &str,
) -> Result<Option<&'a Expr>, MySqlError> {
    let mut found: Option<&Expr> = None;
    for key in keys {
        let own = column(key.expr).and_then(<[Ident]>::last);
        let mut names = key.alias.into_iter().chain(own);
        if !names.any(|ident| ident.value.to_lowercase() == name) {
            continue;
        }
        if found.is_some_and(|other| !is_same(other, key.expr)) {
            return Err(ambiguous(name, clause));
        }
        found = Some(key.expr);
    }
    Ok(found)
}

/// An item as what is grouped by.
fn key_of(item: &SelectItem) -> Option<Key<'_>> {
    let alias = match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        _ => None,
    };
    expression_of(item).map(|expr| Key { expr, alias })
}

/// Whether a column is shown under a name in lower case.
fn is_shown_as(item: &SelectItem, name: &str) -> bool {
    let shown = match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        item => expression_of(item)
            .and_then(column)
            .and_then(<[Ident]>::last),
    };
    shown.is_some_and(|shown| shown.value.to_lowercase() == name)
}

/// An expression that stands for a name; a column needs no parentheses.
pub(in crate::rewrite) fn nested(expr: &Expr) -> Expr {
    match column(expr) {
        Some(_) => expr.clone(),
        None => Expr::Nested(Box::new(expr.clone())),
    }
}

/// Whether two expressions are one.
pub(in crate::rewrite) fn is_same(left: &Expr, right: &Expr) -> bool {
    same(left, right) || Comparable::of(left).is(&Comparable::of(right))
}

/// An expression without parentheses around it, its columns apart: they may be written with their
/// tables or without.
struct Comparable {
    expr: Expr,
    columns: Vec<Expr>,
}

impl Comparable {
    fn of(expr: &Expr) -> Comparable {
        if let Expr::Nested(inner) = expr {
            return Comparable::of(inner);
        }
        let mut expr = expr.clone();
        let mut columns = Vec::new();
        change_expressions(&mut expr, &mut |expr| {
            if !matches!(expr, Expr::Nested(_)) && column(expr).is_some() {
                // No statement can write this name.
                let nameless = Expr::Identifier(Ident::new(""));
                columns.push(std::mem::replace(expr, nameless));
            }
        });
        Comparable { expr, columns }
    }

    fn is(&self, other: &Comparable) -> bool {
        let mut pairs = self.columns.iter().zip(&other.columns);
        self.columns.len() == other.columns.len()
            && self.expr == other.expr
            && pairs.all(|(left, right)| same(left, right))
    }
}

/// The position by which GROUP BY and ORDER BY name an item.
pub(super) fn position(place: usize) -> Expr {
    Expr::Value(Value::Number((place + 1).to_string(), false).into())
}

/// Whether two names of columns mean one; either may leave its database out.
fn same(left: &Expr, right: &Expr) -> bool {
    let (Some([left @ .., a]), Some([right @ .., b])) = (column(left), column(right)) else {
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
