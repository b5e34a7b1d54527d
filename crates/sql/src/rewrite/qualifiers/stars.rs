//! `t.*` and `d.t.*`: which tables of FROM they show.

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind,
};

use super::Names;
use super::relations::{Relation, starred};

/// The table of `t.*` and `d.t.*`.
pub(super) fn table_of_star(item: &SelectItem) -> Option<&ObjectName> {
    match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            Some(name)
        }
        _ => None,
    }
}

impl Names<'_> {
    /// Puts the tables that `t.*` and `d.t.*` mean in their places.
    pub(super) fn write_stars(&mut self, select: &mut Select, relations: &[Relation]) {
        if !select
            .projection
            .iter()
            .any(|item| table_of_star(item).is_some())
        {
            return;
        }
        let at = select.select_token.0.span.start;
        let texts = self.written.as_ref().unwrap_or(self.source).items(at);
        let are_known = texts.len() == select.projection.len();
        let mut items = Vec::with_capacity(select.projection.len());
        let mut longer = Vec::with_capacity(select.projection.len());
        for (place, item) in std::mem::take(&mut select.projection)
            .into_iter()
            .enumerate()
        {
            let meant = table_of_star(&item).map_or(Vec::new(), |name| starred(name, relations));
            // The planner says that there is no such table.
            let count = meant.len().max(1);
            let text = texts.get(place).cloned().unwrap_or_default();
            longer.extend(std::iter::repeat_n(text, count));
            if meant.is_empty() {
                items.push(item);
                continue;
            }
            for name in meant {
                let mut item = item.clone();
                if let SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(table),
                    _,
                ) = &mut item
                {
                    *table = ObjectName::from(vec![Ident::with_quote('`', name)]);
                }
                items.push(item);
            }
        }
        let is_longer = items.len() > texts.len();
        select.projection = items;
        if are_known && is_longer {
            let written = self.written.get_or_insert_with(|| self.source.clone());
            written.set_items(at, longer);
        }
    }
}
