//! A tree of joins as a graph: what is joined, by which equalities, and under which conditions.
//!
//! Owns: [`Graph`], which takes inner and semi joins apart, and what it expects of each set of its
//! parts. Never: chooses an order.
//!
//! Every column of a part has a number among those of all parts; expressions of a graph name
//! columns by those numbers. Equalities between columns of whole numbers are transitive: `a = b`
//! and `b = c` let `a` and `c` be joined as well.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::PartitionMode;
use datafusion::physical_plan::projection::ProjectionExpr;

use super::search::{Parts, Set, Tree, only_part};
use crate::estimate::{Estimates, Origin, equality};

pub(super) type Expr = Arc<dyn PhysicalExpr>;

/// Joins of fewer rows are done before another order is found.
const ROWS_MIN: f64 = 10_000.0;
/// The part of pairs that a condition beside equalities leaves.
const CONDITION: f64 = 0.3;
/// The least that a semi join leaves, and an anti join.
const SEMI_LEAST: f64 = 1e-4;
const ANTI_LEAST: f64 = 0.3;

/// Joins as they are found in a plan.
pub(super) struct Found {
    pub(super) parts: Vec<Part>,
    pub(super) equalities: Vec<(Expr, Expr)>,
    pub(super) conditions: Vec<Expr>,
    /// The columns of the result, and their names.
    pub(super) output: Vec<ProjectionExpr>,
    /// The joins as they were written.
    pub(super) tree: Tree,
    pub(super) mode: PartitionMode,
}

/// A plan that is joined.
pub(super) struct Part {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The number of its first column.
    pub(super) first: usize,
    /// What it is joined to, if it is the right side of a semi join.
    pub(super) reducer: Option<Reducer>,
}

/// A right side of which no column is left.
pub(super) struct Reducer {
    pub(super) is_anti: bool,
    /// Expressions of the left side and of its own.
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) filter: Option<Expr>,
}

/// Joins that may be done in another order.
pub(super) struct Graph {
    pub(super) parts: Vec<Part>,
    pub(super) classes: Vec<Class>,
    pub(super) equalities: Vec<Equality>,
    pub(super) conditions: Vec<Condition>,
    /// The columns of the result, and their names.
    pub(super) output: Vec<ProjectionExpr>,
    /// The joins as they were written.
    pub(super) tree: Tree,
    pub(super) mode: PartitionMode,
    /// What is expected of each part.
    expected: Vec<Expected>,
    estimates: Estimates,
}

/// What is expected of a part.
struct Expected {
    rows: f64,
    /// Rows of the table that it reads, before conditions.
    rows_of_table: f64,
    /// The parts that it needs if it drops rows of others.
    needs: Set,
    /// The part of their rows that it leaves then.
    selectivity: f64,
}

/// Columns of one data type that are equal to each other, no two of them of one part.
pub(super) struct Class {
    /// In the order of their parts.
    pub(super) columns: Vec<usize>,
    pub(super) set: Set,
    /// How many values each column has before conditions.
    values: Vec<f64>,
}

/// Two expressions over different parts that are equal.
pub(super) struct Equality {
    pub(super) sides: [Expr; 2],
    pub(super) sets: [Set; 2],
    selectivity: f64,
}

/// A condition over two parts or more that is no [`Equality`].
pub(super) struct Condition {
    pub(super) expr: Expr,
    pub(super) set: Set,
}

impl Reducer {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let on = self.on.iter().flat_map(|(left, right)| [left, right]);
        on.chain(&self.filter)
    }
}

impl Graph {
    /// The graph of joins; `None` where no order can be chosen or none is worth it: nothing is
    /// known of the rows of a part, all have few, or a condition has its place.
    pub(super) fn of(found: Found) -> Result<Option<Graph>> {
        let estimates = Estimates::default();
        let mut expected = Vec::with_capacity(found.parts.len());
        for part in &found.parts {
            let Some(rows) = estimates.rows(part.plan.as_ref())? else {
                return Ok(None);
            };
            expected.push(Expected {
                rows,
                rows_of_table: rows,
                needs: 0,
                selectivity: 1.0,
            });
        }
        if expected.iter().all(|part| part.rows < ROWS_MIN) {
            return Ok(None);
        }
        let mut graph = Graph {
            parts: found.parts,
            classes: Vec::new(),
            equalities: Vec::new(),
            conditions: Vec::new(),
            output: found.output,
            tree: found.tree,
            mode: found.mode,
            expected,
            estimates,
        };
        for (one, two) in found.equalities {
            graph.add_equality(one, two)?;
        }
        for expr in found.conditions {
            let set = graph.set_of(&expr);
            graph.conditions.push(Condition { expr, set });
        }
        if graph.has_fixed_place() {
            return Ok(None);
        }
        graph.find_values()?;
        for place in 0..graph.parts.len() {
            if let Some(reducer) = &graph.parts[place].reducer {
                let (needs, selectivity) = graph.reduction(reducer, place)?;
                let expected = &mut graph.expected[place];
                (expected.needs, expected.selectivity) = (needs, selectivity);
            }
        }
        Ok(Some(graph))
    }

    /// Whether a condition is about fewer than two parts, or has another value each time that it is
    /// computed.
    fn has_fixed_place(&self) -> bool {
        let conditions = self.conditions.iter();
        let conditions = conditions.map(|it| (it.set, std::slice::from_ref(&it.expr)));
        let equalities = self.equalities.iter();
        let equalities = equalities.map(|it| (it.sets[0] | it.sets[1], it.sides.as_slice()));
        let mut all = conditions.chain(equalities);
        let mut reducers = self.parts.iter().filter_map(|part| part.reducer.as_ref());
        all.any(|(set, exprs)| set.count_ones() < 2 || exprs.iter().any(is_volatile))
            || self.equalities.iter().any(|it| it.sets.contains(&0))
            || reducers.any(|reducer| reducer.exprs().any(is_volatile))
    }

    /// What drops rows of others, if a set is that alone.
    pub(super) fn reducer(&self, set: Set) -> Option<&Reducer> {
        self.parts[only_part(set)?].reducer.as_ref()
    }

    /// The part that a column belongs to.
    pub(super) fn part_of(&self, column: usize) -> usize {
        self.parts.partition_point(|part| part.first <= column) - 1
    }

    /// The field of a column.
    pub(super) fn field(&self, column: usize) -> FieldRef {
        let part = &self.parts[self.part_of(column)];
        Arc::clone(&part.plan.schema().fields()[column - part.first])
    }

    /// The parts that an expression reads.
    pub(super) fn set_of(&self, expr: &Expr) -> Set {
        let columns = collect_columns(expr);
        columns
            .iter()
            .fold(0, |set, column| set | 1 << self.part_of(column.index()))
    }

    fn add_equality(&mut self, one: Expr, two: Expr) -> Result<()> {
        if let (Some(a), Some(b)) = (one.downcast_ref::<Column>(), two.downcast_ref::<Column>())
            && self.joined_classes(a.index(), b.index())
        {
            return Ok(());
        }
        let sets = [self.set_of(&one), self.set_of(&two)];
        let (of_one, of_two) = (self.origin_of(&one)?, self.origin_of(&two)?);
        let selectivity = equality(
            (of_one, self.rows_of(sets[0])),
            (of_two, self.rows_of(sets[1])),
        );
        self.equalities.push(Equality {
            sides: [one, two],
            sets,
            selectivity,
        });
        Ok(())
    }

    /// Makes two columns one class, or their classes; `false` if those cannot be one.
    fn joined_classes(&mut self, one: usize, two: usize) -> bool {
        let (field, other) = (self.field(one), self.field(two));
        if field.data_type() != other.data_type() || !is_whole(field.data_type()) {
            return false;
        }
        let place = |classes: &[Class], column| {
            classes
                .iter()
                .position(|class| class.columns.contains(&column))
        };
        let (first, second) = (place(&self.classes, one), place(&self.classes, two));
        if first.is_some() && first == second {
            return true;
        }
        let set = |place: Option<usize>, column| match place {
            Some(place) => self.classes[place].set,
            None => 1 << self.part_of(column),
        };
        let (set, of_other) = (set(first, one), set(second, two));
        if set & of_other != 0 {
            return false;
        }
        let mut columns = Vec::new();
        let mut places = [first, second];
        places.sort_by(|a, b| b.cmp(a));
        for place in places.into_iter().flatten() {
            columns.append(&mut self.classes.remove(place).columns);
        }
        columns.extend([one, two]);
        columns.sort_unstable();
        columns.dedup();
        self.classes.push(Class {
            columns,
            set: set | of_other,
            values: Vec::new(),
        });
        true
    }

    /// Finds out how many values the columns of classes have. Those of a key that is among them
    /// are all there are: what refers to it has no others.
    fn find_values(&mut self) -> Result<()> {
        for place in 0..self.classes.len() {
            let mut values = Vec::new();
            let mut keys = f64::INFINITY;
            for column in self.classes[place].columns.clone() {
                let part = self.part_of(column);
                let origin = self.origin(column)?;
                if let Some(origin) = origin {
                    let part = &mut self.expected[part];
                    part.rows_of_table = part.rows_of_table.max(origin.rows);
                    if origin.is_key() {
                        keys = keys.min(origin.values);
                    }
                }
                values.push(origin.map_or(self.expected[part].rows, |origin| origin.values));
            }
            let values = values.into_iter().map(|values| values.min(keys).max(1.0));
            self.classes[place].values = values.collect();
        }
        Ok(())
    }

    /// The parts that a reducer needs, and the part of their rows that it leaves.
    fn reduction(&self, reducer: &Reducer, place: usize) -> Result<(Set, f64)> {
        let mut needs = 0;
        // Values of the keys on either side, before conditions.
        let (mut of_left, mut of_right) = (1.0, 1.0);
        let rows = self.expected[place].rows;
        for (left, right) in &reducer.on {
            let set = self.set_of(left);
            let of_side = |side: &Expr, rows: f64| -> Result<f64> {
                Ok(self.origin_of(side)?.map_or(rows, |origin| origin.values))
            };
            needs |= set;
            of_left *= of_side(left, self.rows_of(set))?;
            of_right *= of_side(right, rows)?;
        }
        if let Some(filter) = &reducer.filter {
            needs |= self.set_of(filter) & !(1 << place);
        }
        let semi = (rows.min(of_right) / of_left.max(of_right).max(1.0)).clamp(SEMI_LEAST, 1.0);
        let selectivity = match reducer.is_anti {
            true => (1.0 - semi).max(ANTI_LEAST),
            false => semi,
        };
        Ok((needs, selectivity))
    }

    /// The most rows that a part of a set has.
    fn rows_of(&self, set: Set) -> f64 {
        let parts = self.expected.iter().enumerate();
        let parts = parts.filter(|(place, _)| set & 1 << place != 0);
        parts.map(|(_, part)| part.rows).fold(1.0, f64::max)
    }

    fn origin_of(&self, expr: &Expr) -> Result<Option<Origin>> {
        match expr.downcast_ref::<Column>() {
            Some(column) => self.origin(column.index()),
            None => Ok(None),
        }
    }

    fn origin(&self, column: usize) -> Result<Option<Origin>> {
        let part = &self.parts[self.part_of(column)];
        self.estimates
            .origin(part.plan.as_ref(), column - part.first)
    }

    /// The part of pairs that is left when a part joins others.
    fn selectivity(&self, part: usize, before: Set) -> f64 {
        let own: Set = 1 << part;
        let mut product = 1.0;
        // Each part that it is joined to, as often as it is.
        let (mut once, mut twice): (Set, Set) = (0, 0);
        for class in &self.classes {
            if class.set & own == 0 || class.set & before == 0 {
                continue;
            }
            let columns = class.columns.iter().zip(&class.values);
            let among = columns.filter(|(column, _)| {
                let set: Set = 1 << self.part_of(**column);
                set & (before | own) != 0
            });
            // Of those before, one will do: they have the same values.
            let (mut of_own, mut least) = (1.0_f64, f64::INFINITY);
            for (column, values) in among {
                match self.part_of(*column) == part {
                    true => of_own = *values,
                    false => least = least.min(*values),
                }
            }
            product /= of_own.max(least);
            (once, twice) = (once | class.set & before, twice | once & class.set & before);
        }
        for equality in &self.equalities {
            let set = equality.sets[0] | equality.sets[1];
            if set & own != 0 && set & !(before | own) == 0 {
                product *= equality.selectivity;
                (once, twice) = (once | set & before, twice | once & set & before);
            }
        }
        // Keys of several columns: the columns depend on each other.
        let rows = |part: usize| self.expected[part].rows_of_table;
        let several = (0..self.parts.len()).filter(|other| twice & 1 << other != 0);
        let least = several.map(|other| 1.0 / rows(other).min(rows(part)).max(1.0));
        least.fold(product, f64::max)
    }
}

impl Parts for Graph {
    fn count(&self) -> usize {
        self.parts.len()
    }

    fn rows(&self, set: Set) -> f64 {
        if let Some(part) = only_part(set) {
            return self.expected[part].rows;
        }
        let (mut rows, mut before): (f64, Set) = (1.0, 0);
        for (place, (part, expected)) in self.parts.iter().zip(&self.expected).enumerate() {
            if set & 1 << place == 0 {
                continue;
            }
            rows *= match part.reducer {
                Some(_) => expected.selectivity,
                None => expected.rows * self.selectivity(place, before),
            };
            before |= 1 << place;
        }
        let within = self.conditions.iter().filter(|it| it.set & !set == 0);
        (rows * CONDITION.powi(within.count() as i32)).max(1.0)
    }

    fn joins(&self, left: Set, right: Set) -> bool {
        if self.reducer(left).is_some() {
            return false;
        }
        if self.reducer(right).is_some() {
            let needs = only_part(right).map(|part| self.expected[part].needs);
            return needs.is_some_and(|needs| needs & !left == 0);
        }
        let spans = |equality: &Equality| {
            let [one, two] = equality.sets;
            (one & !left == 0 && two & !right == 0) || (two & !left == 0 && one & !right == 0)
        };
        let mut classes = self.classes.iter();
        classes.any(|class| class.set & left != 0 && class.set & right != 0)
            || self.equalities.iter().any(spans)
    }
}

/// Numbers whose equality is transitive, and the same for joins and comparisons.
fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Date32)
}
