//! Column labels.
//!
//! MySQL labels a column with its alias, its name as written, or the text of its expression.
//! Names are planned in lower case, so spellings are kept beside the plan.

use std::collections::{HashMap, HashSet};

use datafusion::common::DFSchema;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, Value};

use super::expression::call;
use super::{lower, plain_column};
use crate::bindings::Bindings;
use crate::references::variable;
use crate::select_list::is_wildcard;
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
    pub(crate) fn of(&self, schema: &DFSchema) -> Vec<String> {
        let names: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| self.spell(field.name()))
            .collect();
        let wildcards = self
            .items
            .iter()
            .filter(|item| **item == Item::Wildcard)
            .count();
        let others = self.items.len() - wildcards;
        let mut result = names.clone();
        match wildcards {
            0 if others == names.len() => {
                for (label, item) in result.iter_mut().zip(&self.items) {
                    if let Item::Label(text) = item {
                        label.clone_from(text);
                    }
                }
            }
            0 => {}
            _ => {
                let before = self
                    .items
                    .iter()
                    .take_while(|i| **i != Item::Wildcard)
                    .count();
                let after = self
                    .items
                    .iter()
                    .rev()
                    .take_while(|i| **i != Item::Wildcard)
                    .count();
                let first = self.items.iter().take(before).enumerate();
                let start = names.len().saturating_sub(after);
                let last = self.items[self.items.len() - after..]
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (start + index, item));
                for (index, item) in first.chain(last) {
                    if let (Item::Label(text), Some(label)) = (item, result.get_mut(index)) {
                        label.clone_from(text);
                    }
                }
            }
        }
        result
    }

    fn spell(&self, name: &str) -> String {
        self.spellings
            .get(name)
            .cloned()
            .unwrap_or_else(|| name.to_owned())
    }
}

/// The declared spellings of all columns that the statement can see.
pub(super) fn spellings(bindings: &Bindings) -> HashMap<String, String> {
    let mut spellings = HashMap::new();
    for table in bindings.tables.values().chain(bindings.files.values()) {
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
/// Expressions get their own text as alias, so that an outer query can refer to it; a name that
/// occurs twice is replaced by one that cannot be written.
pub(super) fn name(
    select: &mut Select,
    source: &Source,
    spellings: &mut HashMap<String, String>,
    outermost: bool,
) -> Vec<Item> {
    let texts = source.items(select.select_token.0.span.start).to_vec();
    let whole = texts.len() == select.projection.len();
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let mut taken = HashSet::new();
    let mut items = Vec::with_capacity(select.projection.len());
    for (index, item) in select.projection.iter_mut().enumerate() {
        if is_wildcard(item) {
            items.push(Item::Wildcard);
            continue;
        }
        let is_variable =
            matches!(&*item, SelectItem::UnnamedExpr(expr) if variable(expr).is_some());
        let text = if whole {
            Some(texts[index].as_str())
        } else {
            None
        };
        let label = label(item, text);
        remember(spellings, &label);
        let name = label.to_lowercase();
        let plain = plain_column(item).is_some() && !is_variable;
        let fresh = taken.insert(name.clone());
        items.push(Item::Label(label));
        if plain && fresh && !(has_wildcard && outermost) {
            continue;
        }
        let alias = if fresh && !(plain && has_wildcard) {
            name
        } else if outermost || !fresh {
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

/// A name that no statement can write, for the column at a place.
pub(super) fn hidden(index: usize) -> String {
    format!("\u{1}column {index}")
}

/// The labels of a select list, without those that a wildcard stands for.
pub(super) fn of_items(select: &Select, source: &Source) -> Vec<String> {
    let texts = source.items(select.select_token.0.span.start);
    let whole = texts.len() == select.projection.len();
    let items = select.projection.iter().enumerate();
    items
        .filter(|(_, item)| !is_wildcard(item))
        .map(|(index, item)| label(item, whole.then(|| texts[index].as_str())))
        .collect()
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
                | Value::NationalStringLiteral(words) => words.clone(),
                other => text.map_or_else(|| other.to_string(), str::to_owned),
            },
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) if variable(expr).is_none() => parts
                .last()
                .map(|part| part.value.clone())
                .unwrap_or_default(),
            other => text.map_or_else(|| other.to_string(), str::to_owned),
        },
        other => other.to_string(),
    }
}
