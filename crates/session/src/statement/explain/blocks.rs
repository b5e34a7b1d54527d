//! The SELECTs of a statement with what the plan does for each of them.
//!
//! Owns: which leaves belong to which SELECT, and which SELECT a temporary table is for. A physical
//! plan has no SELECTs: an operation belongs to the innermost one that all of its rows come from,
//! or to the nearest one around it that has the clause which asks for it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::Why;
use mayfly_sql::file_name;
use mayfly_sql::planning::Optimized;
use mayfly_sql::selects::{Block, Exclusion, Kind, Part, Selects};

use super::leaves::{Leaf, PlanReader, Scan, Wanted, scans};

/// What is read for one SELECT.
pub(super) enum Place {
    /// A table, by its place among the leaves.
    Leaf(usize),
    /// The rows of another SELECT.
    Derived { id: usize, name: Option<String> },
}

/// What MySQL says of a SELECT without FROM.
pub(super) const NO_TABLES: &str = "No tables used";

/// What a plan does with the rows of a SELECT, or of a set operation, by temporary tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) groups: bool,
    pub(super) distinct: bool,
    pub(super) windows: bool,
    pub(super) sorts: usize,
}

impl Uses {
    /// Whether MySQL says `Using temporary` of it: for sorts it has another word.
    pub(super) fn is_temporary(&self) -> bool {
        self.groups || self.distinct || self.windows
    }
}

/// The SELECTs of a statement and its plan.
pub(super) struct Blocks<'s> {
    pub(super) selects: &'s Selects,
    /// The tables that are read.
    pub(super) leaves: Vec<Leaf>,
    /// What each SELECT reads, in the order of the plan.
    pub(super) places: Vec<Vec<Place>>,
    /// Why nothing is read for a SELECT, in MySQL's words, where nothing is.
    pub(super) empty: Vec<Option<&'static str>>,
    /// What is done for each SELECT, and for each set operation.
    pub(super) of_blocks: Vec<Uses>,
    pub(super) of_results: Vec<Uses>,
}

impl<'s> Blocks<'s> {
    pub(super) fn new(
        logical: &Optimized,
        plan: &Arc<dyn ExecutionPlan>,
        selects: &'s Selects,
        wanted: Wanted,
    ) -> Blocks<'s> {
        let mut reader = PlanReader::new(of_selects(scans(logical, wanted), selects));
        reader.read(plan);
        let PlanReader {
            scans,
            mut leaves,
            operations,
            ..
        } = reader;
        let mut owners = Owners::new(selects);
        for operation in &operations {
            let of_rows = leaves[operation.leaves.clone()].iter();
            let of_rows = of_rows.filter_map(|leaf| Some(leaf.scan.as_ref()?.block));
            owners.add(operation.why, of_rows);
        }
        leaves.retain(|leaf| leaf.scan.is_some());
        // Tables of which the plan knows that they have no rows to show are not read.
        leaves.extend(scans.into_iter().map(|scan| Leaf {
            scan: Some(scan),
            ..Leaf::new(Arc::new(Schema::empty()), None)
        }));
        let places = places(selects, &leaves);
        let has_own_row = plan.exists(|node| Ok(node.name() == "PlaceholderRowExec"));
        let empty = why_empty(&owners, &places, has_own_row.unwrap_or(true));
        let of_results = owners.uses.split_off(selects.blocks.len());
        Blocks {
            selects,
            leaves,
            places,
            empty,
            of_blocks: owners.uses,
            of_results,
        }
    }
}

/// Finds out whom temporary tables are for. SELECTs come first among its nodes, set operations
/// behind them.
struct Owners<'s> {
    selects: &'s Selects,
    /// What a node is a part of.
    parents: Vec<Option<usize>>,
    uses: Vec<Uses>,
}

impl<'s> Owners<'s> {
    fn new(selects: &'s Selects) -> Owners<'s> {
        let count = selects.blocks.len();
        // Who reads the rows of a SELECT: the first one that names it, not a recursion in itself.
        let mut readers: HashMap<usize, usize> = HashMap::new();
        for (place, block) in selects.blocks.iter().enumerate() {
            for part in &block.parts {
                if let Part::Derived { id, .. } = part {
                    readers.entry(*id).or_insert(place);
                }
            }
            for subquery in &block.subqueries {
                readers.entry(subquery.id).or_insert(place);
            }
        }
        let mut results: HashMap<usize, usize> = HashMap::new();
        for (place, result) in selects.results.iter().enumerate() {
            results.extend(result.ids.iter().map(|id| (*id, count + place)));
        }
        // Whatever reads rows stands before them: no node is above itself.
        let above = |place: usize, id: usize| readers.get(&id).copied().filter(|at| *at < place);
        let of_blocks = selects.blocks.iter().enumerate();
        let of_blocks = of_blocks.map(|(place, block)| {
            let result = results.get(&block.id).copied();
            result.or_else(|| above(place, block.id))
        });
        let of_results = selects.results.iter().map(|result| {
            let id = *result.ids.first()?;
            let place = selects.blocks.iter().position(|block| block.id == id)?;
            above(place, id)
        });
        Owners {
            selects,
            parents: of_blocks.chain(of_results).collect(),
            uses: vec![Uses::default(); count + selects.results.len()],
        }
    }

    /// A node and all that it is a part of, from the inside.
    fn chain(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |node| self.parents[*node])
    }

    /// Notes a temporary table over rows of some SELECTs.
    fn add(&mut self, why: Why, mut of_rows: impl Iterator<Item = usize>) {
        if matches!(why, Why::Derived | Why::Recursion | Why::Join) || self.uses.is_empty() {
            // The rows of a SELECT that are kept for another one are no work of either.
            return;
        }
        let innermost = of_rows.next().map(|first| {
            of_rows.fold(first, |common, node| {
                let around: Vec<usize> = self.chain(node).collect();
                let mut shared = self.chain(common).filter(|node| around.contains(node));
                shared.next().unwrap_or(common)
            })
        });
        let owner = match innermost {
            Some(node) => self.chain(node).find(|node| self.asks_for(*node, why)),
            None => (0..self.uses.len()).find(|node| self.asks_for(*node, why)),
        };
        let owner = owner.or(innermost).unwrap_or(0);
        let block = self.selects.blocks.get(owner);
        let is_distinct = block.is_none_or(|block| block.is_distinct && !block.is_grouped);
        let uses = &mut self.uses[owner];
        match why {
            Why::OrderBy | Why::OrderByLimit => uses.sorts += 1,
            Why::Window => uses.windows = true,
            Why::Distinct | Why::Union if is_distinct => uses.distinct = true,
            Why::Distinct if block.is_some_and(|block| block.is_distinct) => uses.distinct = true,
            _ => uses.groups = true,
        }
    }

    /// Whether a SELECT or a set operation has a clause that asks for a temporary table.
    fn asks_for(&self, node: usize, why: Why) -> bool {
        match (self.selects.blocks.get(node), why) {
            (Some(block), Why::GroupBy | Why::Distinct) => block.is_grouped || block.is_distinct,
            (Some(block), Why::Window) => !block.windows.is_empty(),
            (Some(block), Why::OrderBy | Why::OrderByLimit) => sorts(block),
            (Some(_), _) => false,
            (None, why) => {
                let result = self.selects.results.get(node - self.selects.blocks.len());
                result.is_some_and(|result| match why {
                    Why::GroupBy | Why::Distinct | Why::Union => result.is_distinct,
                    Why::OrderBy | Why::OrderByLimit => result.is_ordered,
                    _ => false,
                })
            }
        }
    }
}

/// Whether a SELECT may need its rows in an order.
fn sorts(block: &Block) -> bool {
    block.is_ordered || !block.windows.is_empty()
}

/// The tables of a plan with the SELECTs that read them, and with the names that those have for
/// them; without those that a plan reads once more than the text says.
fn of_selects(scans: Vec<Scan>, selects: &Selects) -> Vec<Scan> {
    let mut missing: Vec<(usize, &str, &str)> = Vec::new();
    for (block, select) in selects.blocks.iter().enumerate() {
        missing.extend(select.parts.iter().filter_map(|part| match part {
            Part::Table { table, name } => Some((block, table.as_str(), name.as_str())),
            Part::Derived { .. } => None,
        }));
    }
    let all = missing.clone();
    let same = |left: &str, right: &str| left.eq_ignore_ascii_case(right);
    let named = scans.into_iter().filter_map(|scan| {
        let is_table = |(_, table, _): &(usize, &str, &str)| same(table, &scan.table);
        let is_it = |part: &(usize, &str, &str)| {
            is_table(part) && same(&file_name::shown(part.2), &scan.name)
        };
        let place = missing.iter().position(is_it);
        match place.or_else(|| missing.iter().position(is_table)) {
            Some(place) => {
                let (block, _, name) = missing.remove(place);
                let name = file_name::shown(name).into_owned();
                Some(Scan {
                    block,
                    name,
                    ..scan
                })
            }
            None if all.iter().any(is_table) => None,
            None if selects.recursive.iter().any(|name| same(name, &scan.table)) => None,
            None => Some(scan),
        }
    });
    named.collect()
}

/// What is read for each SELECT, in the order of the plan.
fn places(selects: &Selects, tables: &[Leaf]) -> Vec<Vec<Place>> {
    let mut places: Vec<Vec<(usize, Place)>> = Vec::new();
    places.resize_with(selects.blocks.len(), Vec::new);
    for (index, leaf) in tables.iter().enumerate() {
        let block = leaf.scan.as_ref().map(|scan| scan.block);
        if let Some(of_block) = block.and_then(|block| places.get_mut(block)) {
            of_block.push((index, Place::Leaf(index)));
        }
    }
    // From the inner ones outwards: a derived table stands where its first table is read.
    for block in (0..selects.blocks.len()).rev() {
        for part in &selects.blocks[block].parts {
            let Part::Derived { id, name } = part else {
                continue;
            };
            if is_left_out(&selects.blocks[block], *id, selects, &places) {
                continue;
            }
            let inner = selects.blocks.iter().position(|select| select.id == *id);
            let first = inner.and_then(|inner| places[inner].first());
            let first = first.map_or(usize::MAX, |(index, _)| *index);
            let (id, name) = (*id, name.clone());
            places[block].push((first, Place::Derived { id, name }));
        }
        places[block].sort_by_key(|(index, _)| *index);
    }
    let places = places.into_iter();
    places
        .map(|places| places.into_iter().map(|(_, place)| place).collect())
        .collect()
}

/// Whether the rows of a derived table are not read because the SELECT that names it has none.
fn is_left_out(
    outer: &Block,
    id: usize,
    selects: &Selects,
    places: &[Vec<(usize, Place)>],
) -> bool {
    let Some(exclusion) = outer.exclusion else {
        return false;
    };
    let result = selects.results.iter();
    let mut result = result.filter(|result| result.ids.first() == Some(&id));
    let ids = result.next().map_or(vec![id], |result| result.ids.clone());
    ids.iter().all(|id| {
        // A recursion stands behind the SELECT whose rows it reads.
        let inner = selects.blocks.iter().zip(places);
        let mut inner = inner.filter(|(block, _)| block.id == *id && block.id > outer.id);
        inner.next().is_some_and(|(inner, places)| {
            // Otherwise it may be the inner one that has no rows.
            let is_of_outer = exclusion == Exclusion::ZeroLimit || inner.exclusion.is_none();
            places.is_empty() && !inner.parts.is_empty() && is_of_outer
        })
    })
}

/// Why nothing is read for each SELECT; `has_own_row` says whether the plan makes a row of nothing,
/// as it does for a SELECT without tables.
fn why_empty(
    owners: &Owners<'_>,
    places: &[Vec<Place>],
    has_own_row: bool,
) -> Vec<Option<&'static str>> {
    let mut empty: Vec<Option<&'static str>> = Vec::with_capacity(places.len());
    for (place, block) in owners.selects.blocks.iter().enumerate() {
        let has_tables = !block.parts.is_empty();
        // A subquery without tables may have become a value.
        let has_row = has_own_row || !matches!(block.kind, Kind::Primary | Kind::Set(_));
        let mut around = owners.chain(place).skip(1);
        // Those around it stand before it.
        let is_inside_empty = around.any(|node| {
            let why = empty.get(node).copied().flatten();
            why.is_some_and(|why| why != NO_TABLES)
        });
        let why = match block.exclusion {
            Some(Exclusion::ZeroLimit) => "Zero limit",
            _ if has_tables && is_inside_empty => "Not optimized, outer query is empty",
            Some(Exclusion::Condition) if has_tables || !has_row => "Impossible WHERE",
            Some(Exclusion::Having) if has_tables || !has_row => "Impossible HAVING",
            _ if has_tables => "Select tables optimized away",
            _ => NO_TABLES,
        };
        empty.push(places[place].is_empty().then_some(why));
    }
    empty
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::SetOperator;
    use mayfly_sql::selects::{SetResult, Subquery};

    use super::*;

    fn uses(selects: &Selects, why: Why, of_rows: &[usize]) -> Vec<Uses> {
        let mut owners = Owners::new(selects);
        owners.add(why, of_rows.iter().copied());
        owners.uses
    }

    #[test]
    fn a_group_belongs_to_the_select_that_groups() {
        let mut selects = Selects::default();
        let mut outer = Block::new(1, Kind::Primary);
        let derived = |id| Part::Derived { id, name: None };
        outer.parts = vec![derived(2)];
        outer.is_ordered = true;
        let mut inner = Block::new(2, Kind::Derived);
        inner.is_grouped = true;
        selects.blocks = vec![outer, inner];
        let grouped = uses(&selects, Why::GroupBy, &[1]);
        assert_eq!(grouped[0], Uses::default());
        assert!(grouped[1].groups);
        let sorted = uses(&selects, Why::OrderBy, &[1]);
        assert_eq!((sorted[0].sorts, sorted[1].sorts), (1, 0));
        // Without a leaf that tells, the first one that asks for it.
        assert!(uses(&selects, Why::GroupBy, &[])[1].groups);
        // Rows that are kept for others are no work of theirs.
        assert!(
            uses(&selects, Why::Derived, &[1])
                .iter()
                .all(|uses| *uses == Uses::default())
        );
    }

    #[test]
    fn what_a_set_operation_asks_for_belongs_to_it() {
        let mut selects = Selects::default();
        let union = Kind::Set(SetOperator::Union);
        selects.blocks = vec![Block::new(1, Kind::Primary), Block::new(2, union)];
        selects.results = vec![SetResult {
            word: "UNION RESULT",
            name: "<union1,2>".to_owned(),
            ids: vec![1, 2],
            operator: SetOperator::Union,
            is_distinct: true,
            is_ordered: true,
        }];
        assert!(uses(&selects, Why::Union, &[0, 1])[2].distinct);
        assert_eq!(uses(&selects, Why::OrderBy, &[1])[2].sorts, 1);
    }

    #[test]
    fn a_group_that_nobody_wrote_belongs_to_the_innermost_select() {
        let mut selects = Selects::default();
        let mut outer = Block::new(1, Kind::Primary);
        let clause = mayfly_sql::selects::Clause::List;
        outer.subqueries = vec![Subquery { clause, id: 2 }];
        selects.blocks = vec![outer, Block::new(2, Kind::Subquery)];
        assert!(uses(&selects, Why::GroupBy, &[1])[1].groups);
        assert!(uses(&selects, Why::GroupBy, &[0, 1])[0].groups);
    }

    #[test]
    fn a_select_without_rows_says_why() {
        let table = || Part::Table {
            table: "t".to_owned(),
            name: "t".to_owned(),
        };
        let why = |outer: Option<Exclusion>, inner: Option<Exclusion>| {
            let mut selects = Selects::default();
            let mut first = Block::new(1, Kind::Primary);
            first.parts = vec![Part::Derived { id: 2, name: None }];
            first.exclusion = outer;
            let mut second = Block::new(2, Kind::Derived);
            second.parts = vec![table()];
            second.exclusion = inner;
            selects.blocks = vec![first, second];
            let owners = Owners::new(&selects);
            why_empty(&owners, &places(&selects, &[]), false)
        };
        let outer_is_empty = Some("Not optimized, outer query is empty");
        let condition = Some(Exclusion::Condition);
        assert_eq!(
            why(condition, None),
            [Some("Impossible WHERE"), outer_is_empty]
        );
        assert_eq!(why(None, condition), [None, Some("Impossible WHERE")]);
        assert_eq!(
            why(Some(Exclusion::ZeroLimit), condition),
            [Some("Zero limit"), outer_is_empty]
        );
        assert_eq!(
            why(None, Some(Exclusion::Having)),
            [None, Some("Impossible HAVING")]
        );
    }
}
