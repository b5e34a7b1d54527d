//! `t.*` and `d.t.*`: which tables of FROM they show.

use std::convert::Infallible;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind,
};

use super::Names;
use super::relations::{Relation, starred};
use crate::select_list::table_of_star;
use crate::source::replace_items;

impl Names<'_> {
    /// Puts the tables that `t.*` and `d.t.*` mean in their places.
    pub(super) fn write_stars(&mut self, select: &mut Select, relations: &[Relation]) {
        let mut items = select.projection.iter();
        if !items.any(|item| table_of_star(item).is_some()) {
            return;
        }
        let others = |item: SelectItem, text: String| {
            let meant = table_of_star(&item).map_or(Vec::new(), |name| starred(name, relations));
            if meant.is_empty() {
                // Of a star the planner says that there is no such table.
                return Ok(vec![(item, text)]);
            }
            let meant = meant.into_iter();
            Ok(meant
                .map(|name| (star_of(item.clone(), name), text.clone()))
                .collect())
        };
        let Ok(()) = replace_items::<Infallible>(select, self.source, &mut self.written, others);
    }
}

/// The star of another table.
fn star_of(mut item: SelectItem, name: &str) -> SelectItem {
    if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) =
        &mut item
    {
        *table = ObjectName::from(vec![Ident::with_quote('`', name)]);
    }
    item
}
