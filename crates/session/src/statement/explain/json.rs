//! EXPLAIN FORMAT=JSON: the plan in the shape of MySQL's first version of it.
//!
//! ```text
//! query_block: { select_id, ordering_operation: { duplicates_removal: { windowing: {
//!     grouping_operation: { table | nested_loop: [ { table }, ... ] } } } }, *_subqueries: [...] }
//! ```
//!
//! What the plan does not know is left out: there are no costs.

use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::SetOperator;
use mayfly_sql::selects::{Block, Clause, Kind, SetResult, Subquery};

use super::blocks::{Blocks, NO_TABLES, Place, Uses};
use super::condition;
use super::json_value::{Json, Object};
use super::leaves::Leaf;
use super::target::Target;

/// The document for a statement; without SELECTs for one that has none.
pub(super) fn document(blocks: Option<&Blocks<'_>>, target: &Target) -> Json {
    let read = blocks.map(|blocks| {
        let first = blocks.selects.blocks.first().map_or(1, |block| block.id);
        let mut writer = Writer {
            blocks,
            target,
            open: Vec::new(),
            shown: Vec::new(),
        };
        writer.query(first)
    });
    let block = match target {
        Target::Filled { word, table } => filled(word, table, read),
        _ => read.unwrap_or_default(),
    };
    Object::of("query_block", block).into()
}

/// The table that INSERT and REPLACE fill, around the query whose rows it takes.
fn filled(word: &str, name: &str, read: Option<Object>) -> Object {
    let mut table = Object::default();
    table.add(
        if word == "REPLACE" {
            "replace"
        } else {
            "insert"
        },
        true,
    );
    table.add("table_name", name);
    table.add("access_type", "ALL");
    let mut block = Object::default();
    block.add("select_id", 1_usize);
    block.add("table", table);
    if let Some(mut read) = read {
        read.remove("select_id");
        block.add("insert_from", read);
    }
    block
}

struct Writer<'a> {
    blocks: &'a Blocks<'a>,
    target: &'a Target,
    /// The derived tables that are being written: a recursion reads its own.
    open: Vec<usize>,
    /// Derived tables that are written already.
    shown: Vec<usize>,
}

impl Writer<'_> {
    /// What stands in the `query_block` of a query, by the number of its first SELECT.
    fn query(&mut self, first: usize) -> Object {
        let selects = self.blocks.selects;
        match selects
            .results
            .iter()
            .position(|result| result.ids.first() == Some(&first))
        {
            Some(place) => self.set_operation(place),
            None => self.select(first),
        }
    }

    fn set_operation(&mut self, place: usize) -> Object {
        let selects = self.blocks.selects;
        let result = &selects.results[place];
        let uses = self.blocks.of_results[place];
        let mut members = Object::default();
        members.add("using_temporary_table", result.is_kept());
        if result.is_kept() {
            members.add("table_name", result.name.as_str());
            members.add("access_type", "ALL");
        }
        let queries = result.ids.iter().map(|id| {
            let mut query = self.dependence(*id);
            query.add("query_block", self.select(*id));
            Json::from(query)
        });
        let queries: Vec<Json> = queries.collect();
        members.add("query_specifications", queries);
        let written = Object::of(result_name(result), members);
        match result.is_ordered {
            true => {
                let mut ordered = Object::default();
                ordered.add("using_filesort", uses.sorts > 0);
                ordered.extend(written);
                Object::of("ordering_operation", ordered)
            }
            false => written,
        }
    }

    fn select(&mut self, id: usize) -> Object {
        let blocks = self.blocks;
        let Some(place) = blocks
            .selects
            .blocks
            .iter()
            .position(|block| block.id == id)
        else {
            return Object::default();
        };
        let block = &blocks.selects.blocks[place];
        let uses = blocks.of_blocks[place];
        let mut body = self.tables(place);
        // Without rows there is nothing to do.
        if blocks.empty[place].is_none_or(|why| why == NO_TABLES) {
            body = operations(block, &uses, body);
        }
        let mut members = Object::default();
        members.add("select_id", id);
        if block.kind == Kind::Recursive {
            members.add("recursive", true);
        }
        members.extend(body);
        for (clause, name) in [
            (Clause::List, "select_list_subqueries"),
            (Clause::Having, "having_subqueries"),
            (Clause::GroupBy, "group_by_subqueries"),
        ] {
            self.add_subqueries(block, clause, name, &mut members);
        }
        members
    }

    /// The tables of a SELECT: one, or a loop over several.
    fn tables(&mut self, place: usize) -> Object {
        let blocks = self.blocks;
        let (block, places) = (&blocks.selects.blocks[place], &blocks.places[place]);
        let mut attached = Object::default();
        self.add_subqueries(
            block,
            Clause::Condition,
            "attached_subqueries",
            &mut attached,
        );
        if places.is_empty() {
            let mut members = Object::default();
            if let Some(why) = blocks.empty[place] {
                members.add("message", why);
            }
            members.extend(attached);
            return members;
        }
        // Rows that each row of the tables before goes on as; not known behind a table that is read
        // beside them.
        let mut produced = Some(1_usize);
        let mut attached = Some(attached);
        let last = places.len() - 1;
        let mut tables = Vec::with_capacity(places.len());
        for (index, of_place) in places.iter().enumerate() {
            let mut table = Object::default();
            match of_place {
                Place::Leaf(leaf) => {
                    let is_by_row = index == 0 || blocks.leaves[*leaf].asked.is_some();
                    let rows = blocks.leaves[*leaf].rows.filter(|_| is_by_row);
                    produced = produced
                        .zip(rows)
                        .map(|(all, rows)| all.saturating_mul(rows));
                    self.add_table(block.id, *leaf, produced, &mut table);
                }
                Place::Derived { name, .. } => {
                    produced = None;
                    if let Some(name) = name {
                        table.add("table_name", name.as_str());
                    }
                    table.add("access_type", "ALL");
                }
            }
            if index == last {
                table.extend(attached.take().unwrap_or_default());
            }
            if let Place::Derived { id, .. } = of_place {
                self.add_derived(*id, &mut table);
            }
            tables.push(Object::of("table", table));
        }
        match tables.len() {
            1 => tables.pop().unwrap_or_default(),
            _ => {
                let tables: Vec<Json> = tables.into_iter().map(Json::from).collect();
                Object::of("nested_loop", tables)
            }
        }
    }

    fn add_table(&self, select: usize, index: usize, produced: Option<usize>, table: &mut Object) {
        let leaf = &self.blocks.leaves[index];
        let Some(scan) = &leaf.scan else {
            return;
        };
        let word = self.target.word_for(Some(select), index, &scan.name);
        match word {
            Some("UPDATE") => table.add("update", true),
            Some(_) => table.add("delete", true),
            None => {}
        }
        table.add("table_name", scan.name.as_str());
        table.add("access_type", leaf.access());
        if let Some(key) = leaf.key_use() {
            table.add_texts("possible_keys", std::slice::from_ref(&key.name));
            table.add("key", key.name);
            table.add_texts("used_key_parts", &key.parts);
            table.add("key_length", key.bytes.to_string());
            let references = key.reference.iter().flat_map(|names| names.split(','));
            let references: Vec<String> = references.map(str::to_owned).collect();
            table.add_texts("ref", &references);
        }
        if let Some(rows) = leaf.rows {
            table.add("rows_examined_per_scan", rows);
        }
        if let Some(rows) = produced {
            table.add("rows_produced_per_join", rows);
        }
        table.add("filtered", "100.00");
        if word.is_none() && leaf.is_covered() {
            table.add("using_index", true);
        }
        if leaf.is_reversed {
            table.add("backward_index_scan", true);
        }
        table.add_texts("used_columns", &scan.columns);
        add_condition(leaf, &scan.conditions, table);
    }

    /// Where the rows of a derived table come from.
    fn add_derived(&mut self, id: usize, table: &mut Object) {
        if self.open.contains(&id) {
            // A recursion reads the rows that it has given.
            return;
        }
        let members = match self.shown.contains(&id) {
            true => Object::of("sharing_temporary_table_with", Object::of("select_id", id)),
            false => {
                self.shown.push(id);
                let mut members = Object::of("using_temporary_table", true);
                members.extend(self.dependence(id));
                self.open.push(id);
                members.add("query_block", self.query(id));
                self.open.pop();
                members
            }
        };
        table.add("materialized_from_subquery", members);
    }

    /// Adds the subqueries that stand in a clause.
    fn add_subqueries(
        &mut self,
        block: &Block,
        clause: Clause,
        name: &'static str,
        members: &mut Object,
    ) {
        let of_clause = |subquery: &&Subquery| subquery.clause == clause;
        let ids = block.subqueries.iter().filter(of_clause);
        let subqueries = ids.map(|subquery| {
            let mut written = self.dependence(subquery.id);
            written.add("query_block", self.query(subquery.id));
            Json::from(written)
        });
        let subqueries: Vec<Json> = subqueries.collect();
        if !subqueries.is_empty() {
            members.add(name, subqueries);
        }
    }

    /// Whether a SELECT reads rows of the one around it, and so has an answer for each of them.
    fn dependence(&self, id: usize) -> Object {
        let blocks = &self.blocks.selects.blocks;
        let is_dependent = blocks
            .iter()
            .any(|block| block.id == id && block.is_dependent);
        let mut members = Object::of("dependent", is_dependent);
        members.add("cacheable", !is_dependent);
        members
    }
}

/// The name that MySQL has for what is made of several SELECTs.
fn result_name(result: &SetResult) -> &'static str {
    match result.operator {
        SetOperator::Except | SetOperator::Minus => "except_result",
        SetOperator::Intersect => "intersect_result",
        SetOperator::Union => "union_result",
    }
}

/// An operation around what it works on.
fn operation(name: &'static str, is_temporary: bool, sorts: bool, inner: Object) -> Object {
    let mut members = Object::default();
    if is_temporary {
        members.add("using_temporary_table", true);
    }
    members.add("using_filesort", sorts);
    members.extend(inner);
    Object::of(name, members)
}

/// What is done with the rows of a SELECT, around what it reads.
fn operations(block: &Block, uses: &Uses, body: Object) -> Object {
    let mut body = windowed(block, uses, grouped(block, uses, body));
    if block.is_distinct || uses.distinct {
        body = operation("duplicates_removal", uses.distinct, false, body);
    }
    // A window sorts its rows before the ORDER BY does.
    if block.is_ordered || (uses.sorts > 0 && block.windows.is_empty()) {
        let sorts = uses.sorts > usize::from(!block.windows.is_empty());
        body = operation("ordering_operation", false, sorts, body);
    }
    body
}

fn grouped(block: &Block, uses: &Uses, body: Object) -> Object {
    match block.is_grouped || uses.groups {
        true => operation("grouping_operation", uses.groups, false, body),
        false => body,
    }
}

fn windowed(block: &Block, uses: &Uses, body: Object) -> Object {
    if block.windows.is_empty() {
        return body;
    }
    let windows = block.windows.iter().map(|window| {
        let name = window.name.as_deref().unwrap_or("<unnamed window>");
        let mut members = Object::of("name", name);
        if uses.windows {
            members.add("using_temporary_table", true);
        }
        members.add_texts("functions", &window.functions);
        Json::from(members)
    });
    let mut members = Object::of("windows", windows.collect::<Vec<Json>>());
    members.add("using_filesort", uses.sorts > 0);
    members.extend(body);
    Object::of("windowing", members)
}

fn add_condition(leaf: &Leaf, conditions: &[Expr], table: &mut Object) {
    if leaf.is_filtered() && !conditions.is_empty() {
        table.add("attached_condition", condition::text(conditions));
    }
}
