//! Tables that a connection has made and dropped lately, by the digests of the texts behind their
//! names.

use std::sync::Arc;

use mayfly_sql::digest::{Digest, Tail};
use mayfly_table::Definition;

use crate::digests::DigestCell;

/// Definitions that are kept, and the bytes of the longest text.
pub(super) const TABLES_MAX: usize = 16;
pub(super) const TEXT_BYTES_MAX: usize = 4 << 10;

/// What a connection has seen, the latest last.
#[derive(Default)]
pub(crate) struct KnownTables {
    pub(super) made: Vec<KnownTable>,
    /// Tables that were dropped, with TEMPORARY or without.
    pub(super) dropped: Vec<(bool, NameDigest)>,
}

/// The digest of a statement with the name of a table: mostly the name comes again.
pub(super) struct NameDigest {
    pub(super) name: String,
    pub(super) digest: Arc<Digest>,
}

impl NameDigest {
    pub(super) fn new(keywords: &str, name: &str, tail: &Tail) -> NameDigest {
        NameDigest {
            name: name.to_owned(),
            digest: Arc::new(Digest::with_name(keywords, name, tail)),
        }
    }
}

pub(super) struct KnownTable {
    /// What stood behind the name.
    pub(super) text: String,
    /// The version of the variables, which a definition may depend on.
    pub(super) variables: u64,
    pub(super) definition: Arc<Definition>,
    /// The AUTO_INCREMENT option.
    pub(super) next_number: u64,
    /// The digest of the text.
    pub(super) tail: Tail,
    /// The same with the last name.
    pub(super) last: Option<NameDigest>,
}

impl KnownTable {
    /// The digest of the text behind a name.
    pub(super) fn digest(&mut self, name: &str) -> DigestCell {
        let last = self.last.take().filter(|last| last.name == name);
        let last =
            last.unwrap_or_else(|| NameDigest::new("CREATE TEMPORARY TABLE", name, &self.tail));
        DigestCell::from(Arc::clone(&self.last.insert(last).digest))
    }
}

impl KnownTables {
    pub(super) fn get(&mut self, text: &str, variables: u64) -> Option<&mut KnownTable> {
        let mut known = self.made.iter_mut().rev();
        known.find(|known| known.variables == variables && known.text == text)
    }

    pub(super) fn keep(&mut self, known: KnownTable) {
        self.made.retain(|other| other.text != known.text);
        if self.made.len() >= TABLES_MAX {
            self.made.remove(0);
        }
        self.made.push(known);
    }

    /// The digest of a DROP TABLE.
    pub(super) fn drop_digest(&mut self, temporary: bool, name: &str) -> DigestCell {
        let is_it = |it: &&(bool, NameDigest)| it.0 == temporary && it.1.name == name;
        if let Some((_, known)) = self.dropped.iter().rev().find(is_it) {
            return DigestCell::from(Arc::clone(&known.digest));
        }
        let keywords = match temporary {
            true => "DROP TEMPORARY TABLE",
            false => "DROP TABLE",
        };
        let known = NameDigest::new(keywords, name, &Tail::default());
        let digest = DigestCell::from(Arc::clone(&known.digest));
        if self.dropped.len() >= TABLES_MAX {
            self.dropped.remove(0);
        }
        self.dropped.push((temporary, known));
        digest
    }
}
