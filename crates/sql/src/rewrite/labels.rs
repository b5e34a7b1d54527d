//! Column labels.
//!
//! MySQL labels a column with its alias, its name as written, or the text of its expression.
//! Names are planned in lower case, so spellings are kept beside the plan.

use std::collections::HashMap;

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, Value};

use super::call::call;
use super::column_names::{lower, plain_column};
use super::declared_names::declared;
use crate::bindings::Bindings;
use crate::functions::own::MARK;
use crate::inner_name::shown_in;
use crate::references::variable;
use crate::select_list::{column, expression_of, is_wildcard, shown};
use crate::source::Source;

/// One item of a select list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// A label.
    Label(String),
    /// `*` or `t.*`.
    Wildcard,
}

/// What the columns of a result are called.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    items: Vec<Item>,
    spellings: HashMap<String, String>,
}

impl Labels {
    pub(super) fn new(items: Vec<Item>, spellings: HashMap<String, String>) -> Labels {
        Labels { items, spellings }
    }

    /// One label for each field of the plan's schema.
    pub(crate) fn of(&self, plan: &LogicalPlan, bindings: &Bindings) -> Vec<String> {
        let fields = plan.schema().fields();
        let labels = self.items.iter().map(|item| match item {
            Item::Label(text) => Some(text.clone()),
            Item::Wildcard => None,
        });
        let without_wildcards: Option<Vec<String>> = labels.collect();
        let has_wildcards = without_wildcards.is_none();
        if let Some(labels) = without_wildcards.filter(|labels| labels.len() == fields.len()) {
            return labels;
        }
        let names = { fields.iter().enumerate() }.map(|(place, field)| {
            match declared(plan, place, bindings) {
                Some(name) => name.to_owned(),
                None => self.spell(field.name()),
            }
        });
        let mut result: Vec<String> = names.collect();
        if !has_wildcards {
            return result;
        }
        // The places of what stands before the first wildcard and behind the last are known.
        let is_label = |item: &&Item| **item != Item::Wildcard;
        let before = self.items.iter().take_while(is_label).count();
        let after = self.items.iter().rev().take_while(is_label).count();
        let first = self.items.iter().take(before).enumerate();
        let start = result.len().saturating_sub(after);
        let last = self.items[self.items.len() - after..].iter().enumerate();
        let last = last.map(|(index, item)| (start + index, item));
        for (index, item) in first.chain(last) {
            if let (Item::Label(text), Some(label)) = (item, result.get_mut(index)) {
                label.clone_from(text);
            }
        }
        result
    }

    fn spell(&self, name: &str) -> String {
        let spelled = self.spellings.get(name).map(String::as_str);
        let spelled = spelled.or_else(|| shown_by_star(name));
        spelled.unwrap_or(name).to_owned()
    }
}

/// The declared spellings of all columns that the statement can see.
pub(super) fn spellings(bindings: &Bindings) -> HashMap<String, String> {
    let mut spellings = HashMap::new();
    // Of two spellings it is always the same one.
    let mut tables: Vec<_> = bindings.tables.iter().collect();
    tables.sort_unstable_by_key(|(name, _)| *name);
    let mut files: Vec<_> = bindings.files.iter().collect();
    files.sort_unstable_by_key(|(path, _)| *path);
    let tables = tables.into_iter().map(|(_, table)| table);
    for table in tables.chain(files.into_iter().map(|(_, file)| file)) {
        for column in &table.columns {
            remember(&mut spellings, column);
        }
    }
    spellings
}

pub(super) fn remember(spellings: &mut HashMap<String, String>, name: &str) {
    spellings
        .entry(name.to_lowercase())
        .or_insert_with(|| name.to_owned());
}

/// Gives every item of a select list a name that the planner takes, and returns the labels.
///
/// Expressions get their own text as alias, so that an outer query can refer to it. Of those that
/// share a name, the one that the name means keeps it: the first expression, or the first column
/// where all are columns; the others get a name that cannot be written. The columns of a select
/// that is free may have any name.
pub(super) fn name(
    select: &mut Select,
    source: &Source,
    spellings: &mut HashMap<String, String>,
    is_free: bool,
) -> Vec<Item> {
    let texts = source.items(select.select_token.0.span.start).to_vec();
    let whole = texts.len() == select.projection.len();
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let labels = select.projection.iter().enumerate().map(|(index, item)| {
        let text = whole.then(|| texts[index].as_str());
        { !is_wildcard(item) }.then(|| label(item, text))
    });
    let labels: Vec<Option<String>> = labels.collect();
    let keepers = keepers(&select.projection, &labels);
    let mut items = Vec::with_capacity(select.projection.len());
    for (index, (item, label)) in select.projection.iter_mut().zip(labels).enumerate() {
        let Some(label) = label else {
            items.push(Item::Wildcard);
            continue;
        };
        let is_variable =
            matches!(&*item, SelectItem::UnnamedExpr(expr) if variable(expr).is_some());
        remember(spellings, &label);
        let name = label.to_lowercase();
        let plain = plain_column(item).is_some() && !is_variable;
        let keeps = keepers.get(&name) == Some(&index);
        items.push(Item::Label(label));
        if plain && keeps && !(has_wildcard && is_free) {
            continue;
        }
        let alias = if keeps && !(plain && has_wildcard) {
            name
        } else if is_free || !keeps {
            hidden(index)
        } else {
            continue;
        };
        let mut alias = Ident::new(alias);
        lower(&mut alias);
        let expr = match std::mem::replace(item, SelectItem::Wildcard(Default::default())) {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
            other => {
                *item = other;
                continue;
            }
        };
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
    items
}

/// The places of the items that keep their names, by the names in lower case.
fn keepers(items: &[SelectItem], labels: &[Option<String>]) -> HashMap<String, usize> {
    let is_column = |place: usize| expression_of(&items[place]).is_none_or(|e| column(e).is_some());
    let mut keepers: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (place, label) in labels.iter().enumerate() {
        let Some(label) = label else {
            continue;
        };
        let keeper = keepers.entry(label.to_lowercase()).or_insert(place);
        if is_column(*keeper) && !is_column(place) {
            *keeper = place;
        }
    }
    keepers
}

/// Remembers how items are called that may stand between two wildcards, where their places are not
/// known.
pub(super) fn remember_hidden(spellings: &mut HashMap<String, String>, items: &[Item]) {
    for (index, item) in items.iter().enumerate() {
        if let Item::Label(label) = item {
            spellings.insert(hidden(index), label.clone());
            spellings.insert(apart(&label.to_lowercase()), label.clone());
        }
    }
}

/// A name that no statement can write, for the column at a place.
fn hidden(index: usize) -> String {
    format!("{MARK}column {index}")
}

/// A name that no statement can write, for a column that a star shows under a name which another
/// column of the list has; `index` tells those of one name apart.
pub(super) fn again(index: usize, column: &str) -> String {
    by_star("again", index, column)
}

/// Such a name, which says how the column is called; `who` tells apart who writes stars out.
pub(super) fn by_star(who: &str, index: usize, column: &str) -> String {
    format!("{MARK}{who} {index} {column}")
}

/// How a column under a name of [`by_star`] is called.
fn shown_by_star(name: &str) -> Option<&str> {
    let name = name.strip_prefix(MARK)?;
    let rest = { name.strip_prefix("again ") }.or_else(|| name.strip_prefix("star "))?;
    Some(rest.split_once(' ')?.1)
}

/// A name that no statement can write, for a column of this alias.
pub(super) fn apart(alias: &str) -> String {
    format!("{MARK}alias {alias}")
}

/// Takes the MySQL types off the columns of a recursive common table expression.
pub(super) fn untyped(select: &mut Select) {
    for item in &mut select.projection {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.clone()),
            SelectItem::UnnamedExpr(expr) => {
                let Some(name) = (match &*expr {
                    Expr::Identifier(ident) => Some(ident.clone()),
                    Expr::CompoundIdentifier(parts) => parts.last().cloned(),
                    _ => None,
                }) else {
                    continue;
                };
                (expr, name)
            }
            _ => continue,
        };
        let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        let expr = call(crate::untyped::NAME, vec![expr]);
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Whether an expression is a name, in parentheses or not.
fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        expr => matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    }
}

/// What the column of an item is called; `text` is how the item is written.
pub(super) fn label(item: &SelectItem, text: Option<&str>) -> String {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
        SelectItem::UnnamedExpr(Expr::Prefixed { value, .. }) => {
            label(&SelectItem::UnnamedExpr(value.as_ref().clone()), text)
        }
        SelectItem::UnnamedExpr(Expr::Nested(inner)) if is_name(inner) => {
            label(&SelectItem::UnnamedExpr(inner.as_ref().clone()), text)
        }
        SelectItem::UnnamedExpr(expr) => match expr {
            Expr::Value(value) => match &value.value {
                Value::Null => "NULL".to_owned(),
                Value::Boolean(true) => "TRUE".to_owned(),
                Value::Boolean(false) => "FALSE".to_owned(),
                Value::SingleQuotedString(words)
                | Value::DoubleQuotedString(words)
                | Value::NationalStringLiteral(words) => shown(words).to_owned(),
                other => written(text, other),
            },
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) if variable(expr).is_none() => parts
                .last()
                .map(|part| part.value.clone())
                .unwrap_or_default(),
            other => written(text, other),
        },
        other => other.to_string(),
    }
}

/// An expression as its column is called. It may be long, and is copied with the plan.
fn written(text: Option<&str>, expr: &impl ToString) -> String {
    match text {
        Some(text) => shown(text).to_owned(),
        None => shown(&shown_in(expr.to_string())).to_owned(),
    }
}
