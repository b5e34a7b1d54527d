//! Keys as SHOW INDEX and INFORMATION_SCHEMA.STATISTICS show them: a row for each part.

use mayfly_sql::statement::TableName;
use mayfly_table::{Key, KeyPart, Table};
use mayfly_types::MySqlError;

use super::super::Job;
use crate::listing::{Listing, some};

/// A part of a key.
pub(crate) struct Part<'a> {
    pub(crate) key: &'a Key,
    pub(crate) part: &'a KeyPart,
    /// Its place in the key, from 1.
    pub(crate) sequence: usize,
    pub(crate) column: &'a str,
    pub(crate) is_nullable: bool,
    /// Different values up to this part: counted where they are few, else thought from some.
    pub(crate) cardinality: Option<u64>,
}

/// The parts of all keys of a table.
pub(crate) fn parts(table: &Table) -> impl Iterator<Item = Part<'_>> {
    let definition = table.definition();
    let keys = definition.keys.iter().enumerate();
    keys.flat_map(move |(place, key)| {
        key.parts.iter().enumerate().map(move |(index, part)| {
            let column = &definition.columns[part.column];
            Part {
                key,
                part,
                sequence: index + 1,
                column: &column.name,
                is_nullable: column.is_nullable,
                cardinality: table.distinct(place, index + 1).ok(),
            }
        })
    })
}

impl Part<'_> {
    /// 0 where the key is unique.
    pub(crate) fn non_unique(&self) -> Option<String> {
        some(u8::from(!self.key.is_unique()))
    }

    /// The columns from the name of the key to the end.
    pub(crate) fn row(&self) -> [Option<String>; 13] {
        let direction = if self.part.is_descending { "D" } else { "A" };
        [
            some(&self.key.name),
            some(self.sequence),
            some(self.column),
            some(direction),
            self.cardinality.map(|count| count.to_string()),
            self.part.prefix.map(|length| length.to_string()),
            None,
            some(if self.is_nullable { "YES" } else { "" }),
            some("BTREE"),
            some(""),
            some(&self.key.comment),
            some("YES"),
            None,
        ]
    }
}

impl Job {
    pub(super) fn list_keys(&self, name: &TableName) -> Result<Listing, MySqlError> {
        // A view has none, nor has a table that is made anew.
        let has_none = self.view(name).is_some() || self.is_system_table(name);
        let table = match has_none {
            true => None,
            false => Some(self.table(name)?),
        };
        let mut listing = Listing::new(&[
            "Table",
            "Non_unique",
            "Key_name",
            "Seq_in_index",
            "Column_name",
            "Collation",
            "Cardinality",
            "Sub_part",
            "Packed",
            "Null",
            "Index_type",
            "Comment",
            "Index_comment",
            "Visible",
            "Expression",
        ])
        .with_numbers(&["Non_unique", "Seq_in_index", "Cardinality", "Sub_part"]);
        if let Some(table) = table {
            for part in parts(&table) {
                let mut row = vec![some(table.name()), part.non_unique()];
                row.extend(part.row());
                listing.push(row);
            }
        }
        Ok(listing)
    }
}
