//! A plan from a tree: the joins in their new order, with the columns that are still needed.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, internal_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, JoinOn};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::graph::{Expr, Graph, Reducer};
use super::search::{Set, Tree};
use crate::other_columns::with_columns;

/// The joins of a graph in the order of a tree, and what is made of their columns.
pub(super) fn plan(graph: &Graph, tree: &Tree) -> Result<Arc<dyn ExecutionPlan>> {
    let built = built(graph, tree)?;
    let output = graph.output.iter().map(|column| {
        Ok(ProjectionExpr {
            expr: built.expr(&column.expr)?,
            alias: column.alias.clone(),
        })
    });
    let output = output.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(output, built.plan)?))
}

/// A plan and the numbers of its columns.
struct Built {
    plan: Arc<dyn ExecutionPlan>,
    columns: Vec<usize>,
    set: Set,
}

impl Built {
    /// The place of a column.
    fn place(&self, number: usize) -> Result<usize> {
        let found = self.columns.iter().position(|column| *column == number);
        match found {
            Some(place) => Ok(place),
            None => internal_err!("a join without column {number}, which is needed"),
        }
    }

    /// A column, by the name that it has here: DataFusion looks columns up by their names too.
    fn column(&self, number: usize) -> Result<Column> {
        let place = self.place(number)?;
        Ok(Column::new(self.plan.schema().field(place).name(), place))
    }

    /// An expression over numbers as one over the columns of the plan.
    fn expr(&self, expr: &Expr) -> Result<Expr> {
        let mut columns = HashMap::new();
        for column in collect_columns(expr) {
            columns.insert(column.index(), self.column(column.index())?);
        }
        with_columns(expr, |column| columns[&column.index()].clone())
    }
}

fn built(graph: &Graph, tree: &Tree) -> Result<Built> {
    match tree {
        Tree::Part(part) => {
            let set = 1 << part;
            let part = &graph.parts[*part];
            let width = part.plan.schema().fields().len();
            Ok(Built {
                plan: Arc::clone(&part.plan),
                columns: (part.first..part.first + width).collect(),
                set,
            })
        }
        Tree::Join(left, right) => {
            let (left, right) = (built(graph, left)?, built(graph, right)?);
            match graph.reducer(right.set) {
                Some(reducer) => reduced(graph, left, right, reducer),
                None => joined(graph, left, right),
            }
        }
    }
}

/// The left side without the rows that a reducer drops.
fn reduced(graph: &Graph, left: Built, right: Built, reducer: &Reducer) -> Result<Built> {
    let on = reducer.on.iter();
    let on = on.map(|(one, two)| Ok((left.expr(one)?, right.expr(two)?)));
    let on = on.collect::<Result<JoinOn>>()?;
    let filter = match &reducer.filter {
        Some(filter) => Some(join_filter(graph, filter, &left, &right)?),
        None => None,
    };
    let kind = match reducer.is_anti {
        true => JoinType::LeftAnti,
        false => JoinType::LeftSemi,
    };
    let set = left.set | right.set;
    let columns = left.columns.clone();
    join(graph, (left, right), on, filter, kind, columns, set)
}

/// The pairs of two sides.
fn joined(graph: &Graph, left: Built, right: Built) -> Result<Built> {
    let set = left.set | right.set;
    let mut on = JoinOn::new();
    let mut conditions = Vec::new();
    for class in &graph.classes {
        let of_side = |side: &Built| {
            let mut columns = class.columns.iter().copied();
            columns.find(|column| side.set & 1 << graph.part_of(*column) != 0)
        };
        if let (Some(one), Some(two)) = (of_side(&left), of_side(&right)) {
            on.push((Arc::new(left.column(one)?), Arc::new(right.column(two)?)));
        }
    }
    for equality in &graph.equalities {
        let [one, two] = &equality.sides;
        let [of_one, of_two] = equality.sets;
        let within = |side: &Built| (of_one | of_two) & !side.set == 0;
        if (of_one | of_two) & !set != 0 || within(&left) || within(&right) {
            continue;
        }
        if of_one & !left.set == 0 && of_two & !right.set == 0 {
            on.push((left.expr(one)?, right.expr(two)?));
        } else if of_two & !left.set == 0 && of_one & !right.set == 0 {
            on.push((left.expr(two)?, right.expr(one)?));
        } else {
            let equal = BinaryExpr::new(Arc::clone(one), Operator::Eq, Arc::clone(two));
            conditions.push(Arc::new(equal) as Expr);
        }
    }
    for condition in &graph.conditions {
        let within = |of: Set| condition.set & !of == 0;
        if within(set) && !within(left.set) && !within(right.set) {
            conditions.push(Arc::clone(&condition.expr));
        }
    }
    let filter = match conjunction_opt(conditions) {
        Some(filter) => Some(join_filter(graph, &filter, &left, &right)?),
        None => None,
    };
    let columns = left.columns.iter().chain(&right.columns).copied().collect();
    join(
        graph,
        (left, right),
        on,
        filter,
        JoinType::Inner,
        columns,
        set,
    )
}

fn join(
    graph: &Graph,
    (left, right): (Built, Built),
    on: JoinOn,
    filter: Option<JoinFilter>,
    kind: JoinType,
    columns: Vec<usize>,
    set: Set,
) -> Result<Built> {
    let needed = needed(graph, set);
    let places = columns.iter().enumerate();
    let places = places.filter(|(_, column)| needed.contains(column));
    let (projection, columns): (Vec<usize>, Vec<usize>) =
        places.map(|(place, column)| (place, *column)).unzip();
    let plan = HashJoinExec::try_new(
        left.plan,
        right.plan,
        on,
        filter,
        &kind,
        Some(projection),
        graph.mode,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(Built {
        plan: Arc::new(plan),
        columns,
        set,
    })
}

/// The columns that are read above the join of a set.
fn needed(graph: &Graph, set: Set) -> Vec<usize> {
    let mut needed = Vec::new();
    let mut read = |expr: &Expr| {
        needed.extend(collect_columns(expr).iter().map(Column::index));
    };
    graph.output.iter().for_each(|column| read(&column.expr));
    for equality in &graph.equalities {
        if (equality.sets[0] | equality.sets[1]) & !set != 0 {
            equality.sides.iter().for_each(&mut read);
        }
    }
    for condition in &graph.conditions {
        if condition.set & !set != 0 {
            read(&condition.expr);
        }
    }
    for (place, part) in graph.parts.iter().enumerate() {
        if let Some(reducer) = part.reducer.as_ref().filter(|_| set & 1 << place == 0) {
            reducer.on.iter().for_each(|(left, _)| read(left));
            reducer.filter.iter().for_each(&mut read);
        }
    }
    for class in graph.classes.iter().filter(|class| class.set & !set != 0) {
        // One stands for all that are equal to it.
        let mut columns = class.columns.iter();
        needed.extend(columns.find(|column| set & 1 << graph.part_of(**column) != 0));
    }
    needed
}

/// A condition over both sides of a join.
fn join_filter(graph: &Graph, expr: &Expr, left: &Built, right: &Built) -> Result<JoinFilter> {
    let mut numbers: Vec<usize> = collect_columns(expr).iter().map(Column::index).collect();
    numbers.sort_unstable();
    let mut columns = Vec::with_capacity(numbers.len());
    for number in &numbers {
        let (side, built) = match left.set & 1 << graph.part_of(*number) != 0 {
            true => (JoinSide::Left, left),
            false => (JoinSide::Right, right),
        };
        let index = built.place(*number)?;
        columns.push(ColumnIndex { index, side });
    }
    let fields = numbers.iter().map(|number| graph.field(*number));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let places = numbers.iter().enumerate();
    let places: HashMap<usize, usize> = places.map(|(place, number)| (*number, place)).collect();
    let expr = with_columns(expr, |column| {
        let place = places[&column.index()];
        Column::new(schema.field(place).name(), place)
    })?;
    Ok(JoinFilter::new(expr, columns, Arc::new(schema)))
}
