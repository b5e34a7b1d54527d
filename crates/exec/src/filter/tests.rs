//! Our filter beside the stock one, and what it asks of which rows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringViewArray, new_null_array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, FieldRef, Int8Type, Int32Type, Schema, SchemaRef};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::physical_planning_context::{ScalarSubqueryResults, SubqueryIndex};
use datafusion::logical_expr::{ColumnarValue, Operator, Volatility, create_udf};
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, in_list, is_not_null, is_null, like, lit, not,
};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;

use super::condition::Condition;
use super::terms::{Terms, may_warn};
use super::{FilterOperator, filter_of, replace_all};
use crate::plan_node::over_input;
use crate::selection::Selection;

mod late;

type Expr = Arc<dyn PhysicalExpr>;

/// A generator with a seed that is printed by every failing test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn choose<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Some longer than a view has room for, one with the beginning of another, one with a zero that
/// could be taken for the end of the one before.
const TEXTS: [&str; 9] = [
    "",
    "a",
    "a\0",
    "MAIL",
    "AIR REG",
    "twelve bytes",
    "thirteen byte",
    "a long text of some bytes",
    "a long text of other bytes",
];

fn schema() -> SchemaRef {
    let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let fields = [
        ("int", DataType::Int32),
        ("other_int", DataType::Int32),
        ("long", DataType::Int64),
        ("decimal", DataType::Decimal128(15, 2)),
        ("day", DataType::Date32),
        ("double", DataType::Float64),
        ("flag", DataType::Boolean),
        ("text", DataType::Utf8View),
        ("word", words),
    ];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
    Arc::new(Schema::new(fields.to_vec()))
}

fn column(name: &str) -> Expr {
    Arc::new(Column::new(name, schema().index_of(name).unwrap()))
}

fn text(text: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(text.to_owned())))
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Arc::new(BinaryExpr::new(left, operator, right))
}

/// A batch that is a slice of a larger one, or is not.
fn batch(random: &mut Random, rows: usize) -> RecordBatch {
    let before = random.below(3) * 35;
    let all = before + rows + random.below(10);
    let nulls = random.choose(&[0, 0, 10, 60]);
    let mut each = |limit: usize| -> Vec<Option<i32>> {
        let mut value = || {
            let value = i32::try_from(random.below(limit)).unwrap();
            (random.below(100) >= nulls).then_some(value)
        };
        (0..all).map(|_| value()).collect()
    };
    let decimals = each(8).into_iter().map(|value| value.map(i128::from));
    let decimals: Decimal128Array = decimals.collect();
    let texts = each(TEXTS.len()).into_iter();
    let texts = texts.map(|place| place.map(|place| TEXTS[usize::try_from(place).unwrap()]));
    let texts: Vec<Option<&str>> = texts.collect();
    // A zero has two signs.
    let doubles = each(4).into_iter();
    let doubles =
        doubles.map(|value| value.map(|value| if value == 3 { -0.0 } else { f64::from(value) }));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(each(10))),
        Arc::new(Int32Array::from(each(10))),
        Arc::new(Int64Array::from_iter(
            each(10).into_iter().map(|value| value.map(i64::from)),
        )),
        Arc::new(decimals.with_precision_and_scale(15, 2).unwrap()),
        Arc::new(Date32Array::from(each(10))),
        Arc::new(doubles.collect::<Float64Array>()),
        Arc::new(BooleanArray::from_iter(
            each(2)
                .into_iter()
                .map(|value| value.map(|value| value == 1)),
        )),
        Arc::new(texts.iter().copied().collect::<StringViewArray>()),
        Arc::new(texts.iter().copied().collect::<DictionaryArray<Int8Type>>()),
    ];
    let batch = RecordBatch::try_new(schema(), columns).unwrap();
    batch.slice(before, rows)
}

/// A condition over the columns of all types, of cheap terms and others.
fn condition(random: &mut Random, nesting: usize) -> Expr {
    let comparisons = [
        Operator::Eq,
        Operator::NotEq,
        Operator::Lt,
        Operator::LtEq,
        Operator::Gt,
        Operator::GtEq,
        Operator::IsDistinctFrom,
        Operator::IsNotDistinctFrom,
    ];
    let operator = random.choose(&comparisons);
    let small = i32::try_from(random.below(10)).unwrap();
    let kinds = if nesting < 4 { 19 } else { 14 };
    match random.below(kinds) {
        0 => binary(column("int"), operator, lit(small)),
        1 => binary(lit(small), operator, column("int")),
        2 => binary(column("int"), operator, column("other_int")),
        3 => {
            let value = ScalarValue::Decimal128(Some(small.into()), 15, 2);
            binary(column("decimal"), operator, lit(value))
        }
        4 => binary(
            column("day"),
            operator,
            lit(ScalarValue::Date32(Some(small))),
        ),
        5 => binary(column("double"), operator, lit(0.0)),
        6 => column("flag"),
        7 => binary(column("text"), operator, text(random.choose(&TEXTS))),
        8 => {
            let value = ScalarValue::Utf8(Some(random.choose(&TEXTS).to_owned()));
            let value = ScalarValue::Dictionary(Box::new(DataType::Int8), Box::new(value));
            binary(column("word"), operator, lit(value))
        }
        9 => {
            let names = ["int", "decimal", "text", "word"];
            let of = column(random.choose(&names));
            if random.below(2) == 0 {
                is_null(of).unwrap()
            } else {
                is_not_null(of).unwrap()
            }
        }
        10 => {
            let count = 1 + random.below(12);
            let mut list: Vec<Expr> = (0..count).map(|_| text(random.choose(&TEXTS))).collect();
            if random.below(4) == 0 {
                list.push(lit(ScalarValue::Utf8View(None)));
            }
            in_list(column("text"), list, &(random.below(2) == 0), &schema()).unwrap()
        }
        11 => {
            let mut list: Vec<Expr> = [2, 5, small].map(lit).to_vec();
            if random.below(4) == 0 {
                list.push(lit(ScalarValue::Int32(None)));
            }
            in_list(column("int"), list, &(random.below(2) == 0), &schema()).unwrap()
        }
        12 => like(false, false, column("text"), text("%o%"), &schema()).unwrap(),
        13 => {
            let sum = binary(column("int"), Operator::Plus, lit(1));
            binary(sum, operator, column("other_int"))
        }
        14 => not(condition(random, nesting + 1)).unwrap(),
        15 | 16 => {
            let left = condition(random, nesting + 1);
            binary(left, Operator::Or, condition(random, nesting + 1))
        }
        _ => {
            let left = condition(random, nesting + 1);
            binary(left, Operator::And, condition(random, nesting + 1))
        }
    }
}

fn input(batches: Vec<RecordBatch>) -> Arc<dyn ExecutionPlan> {
    MemorySourceConfig::try_new_exec(&[batches], schema(), None).unwrap()
}

/// The rows of a plan, and how many its batches have.
async fn rows(plan: Arc<dyn ExecutionPlan>) -> Result<(RecordBatch, Vec<usize>)> {
    let schema = plan.schema();
    let batches = collect(plan, Arc::new(TaskContext::default())).await?;
    let sizes = batches.iter().map(RecordBatch::num_rows).collect();
    Ok((concat_batches(&schema, &batches)?, sizes))
}

#[tokio::test]
async fn the_same_rows_pass_as_in_the_stock_filter() {
    for seed in 1..400 {
        let mut random = Random(seed * 0x9E37_79B9);
        let batches = (0..random.below(6)).map(|_| {
            let rows = random.choose(&[0, 1, 63, 64, 65, 200, 300]);
            batch(&mut random, rows)
        });
        let batches: Vec<RecordBatch> = batches.collect();
        let predicate = condition(&mut random, 0);
        let projections = [None, Some(vec![7, 0, 3]), Some(vec![8])];
        let fetch = random.choose(&[None, None, Some(0), Some(1), Some(70)]);
        let stock = FilterExecBuilder::new(Arc::clone(&predicate), input(batches))
            .apply_projection(random.choose(&projections))
            .unwrap()
            .with_batch_size(random.choose(&[8, 100, 8192]))
            .with_fetch(fetch)
            .build()
            .unwrap();
        let ours = Arc::new(FilterOperator::of(&stock));
        assert_eq!(ours.schema(), stock.schema(), "seed {seed}");
        let expected = rows(Arc::new(stock)).await.unwrap();
        let found = rows(Arc::clone(&ours) as _).await.unwrap();
        assert_eq!(found.0, expected.0, "seed {seed}: {predicate}");
        let metrics = ours.metrics().unwrap();
        let count = found.0.num_rows();
        assert_eq!(metrics.output_rows().unwrap_or(0), count, "seed {seed}");
    }
}

#[tokio::test]
async fn batches_are_as_long_as_those_of_the_stock_filter() {
    let mut random = Random(7);
    let batches: Vec<RecordBatch> = (0..20).map(|_| batch(&mut random, 100)).collect();
    for bound in [1, 5, 10] {
        let predicate = binary(column("int"), Operator::Lt, lit(bound));
        let stock = FilterExecBuilder::new(predicate, input(batches.clone()))
            .with_batch_size(128)
            .build()
            .unwrap();
        let ours = rows(Arc::new(FilterOperator::of(&stock))).await.unwrap();
        let stock = rows(Arc::new(stock)).await.unwrap();
        assert!(ours.0.num_rows() > 0);
        assert_eq!(ours, stock);
    }
}

#[tokio::test]
async fn rows_without_columns_are_counted() {
    let mut random = Random(3);
    let batches: Vec<RecordBatch> = (0..3).map(|_| batch(&mut random, 300)).collect();
    let expected: usize = batches
        .iter()
        .map(|batch| batch.column(0).as_primitive::<Int32Type>().iter().flatten())
        .map(|values| values.filter(|value| *value < 5).count())
        .sum();
    let predicate = binary(column("int"), Operator::Lt, lit(5));
    let stock = FilterExecBuilder::new(predicate, input(batches))
        .apply_projection(Some(Vec::new()))
        .unwrap()
        .build()
        .unwrap();
    let ours: Arc<dyn ExecutionPlan> = Arc::new(FilterOperator::of(&stock));
    let batches = collect(ours, Arc::new(TaskContext::default()))
        .await
        .unwrap();
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found, expected);
    assert!(expected > 0);
}

/// A truth value that tells how many rows it is asked for. It may warn, for all that is known.
#[derive(Debug)]
struct Asked {
    of: Expr,
    rows: Arc<Mutex<Vec<usize>>>,
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        *self.of == *other.of
    }
}

impl Eq for Asked {}

impl Hash for Asked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked({})", self.of)
    }
}

impl PhysicalExpr for Asked {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.of.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.rows.lock().unwrap().push(batch.num_rows());
        self.of.evaluate(batch)
    }

    fn children(&self) -> Vec<&Expr> {
        vec![&self.of]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Expr>) -> Result<Expr> {
        let Ok([of]) = <[_; 1]>::try_from(children) else {
            return internal_err!("one child");
        };
        let rows = Arc::clone(&self.rows);
        Ok(Arc::new(Asked { of, rows }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn asked(of: Expr) -> (Expr, Arc<Mutex<Vec<usize>>>) {
    let rows = Arc::default();
    let asked = Asked {
        of,
        rows: Arc::clone(&rows),
    };
    (Arc::new(asked), rows)
}

/// Rows whose first two columns are given; all others are NULL.
fn pairs(ints: &[Option<i32>], others: &[Option<i32>]) -> RecordBatch {
    let schema = schema();
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        let array: ArrayRef = match place {
            0 => Arc::new(Int32Array::from(ints.to_vec())),
            1 => Arc::new(Int32Array::from(others.to_vec())),
            _ => new_null_array(field.data_type(), ints.len()),
        };
        array
    });
    let columns: Vec<ArrayRef> = columns.collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

fn count(terms: &Terms, batch: &RecordBatch) -> usize {
    match terms.open_rows(batch).unwrap() {
        Selection::All => batch.num_rows(),
        Selection::Some { count, .. } => count,
        Selection::None => 0,
    }
}

#[test]
fn a_term_that_may_warn_is_asked_for_rows_that_are_open_and_stays_in_its_place() {
    let ints = [Some(1), Some(2), None, Some(3), Some(4), Some(5)];
    let batch = pairs(&ints, &[Some(1), Some(1), Some(1), Some(0), Some(1), None]);
    let more_than = |bound: i32| binary(column("int"), Operator::Gt, lit(bound));
    let is_one = || binary(column("other_int"), Operator::Eq, lit(1));

    // NULL is not true: nobody is asked of that row. What is behind the term comes after it.
    let (term, rows) = asked(is_one());
    let terms = Terms::of(&conjunction([more_than(1), term, more_than(3)]), &schema());
    assert_eq!(count(&terms, &batch), 1);
    assert_eq!(*rows.lock().unwrap(), [4]);

    // The first term is asked for all rows, the second for those that it leaves, in their order.
    let (first, rows) = asked(more_than(1));
    let (second, later) = asked(is_one());
    let terms = Terms::of(&conjunction([first, second, more_than(3)]), &schema());
    assert_eq!(count(&terms, &batch), 1);
    assert_eq!(*rows.lock().unwrap(), [6]);
    assert_eq!(*later.lock().unwrap(), [4]);

    // Where no row is open, nobody is asked.
    let (term, rows) = asked(is_one());
    let terms = Terms::of(&conjunction([more_than(5), term]), &schema());
    assert_eq!(count(&terms, &batch), 0);
    assert_eq!(count(&terms, &batch.slice(0, 0)), 0);
    assert_eq!(*rows.lock().unwrap(), [0; 0]);
}

#[test]
fn a_side_of_an_or_that_may_warn_is_asked_for_rows_that_the_sides_before_it_do_not_pass() {
    let ints = [Some(1), Some(2), None, Some(3), Some(4), Some(5)];
    let batch = pairs(&ints, &[Some(1), Some(1), Some(1), Some(0), Some(1), None]);
    let more_than = |bound: i32| binary(column("int"), Operator::Gt, lit(bound));
    let is_one = || binary(column("other_int"), Operator::Eq, lit(1));
    let either = |left, right| binary(left, Operator::Or, right);

    // NULL does not pass: the next side is asked of that row.
    let (side, rows) = asked(is_one());
    let (last, later) = asked(more_than(2));
    let terms = Terms::of(&either(either(more_than(3), side), last), &schema());
    assert_eq!(count(&terms, &batch), 6);
    assert_eq!(*rows.lock().unwrap(), [4]);
    assert_eq!(*later.lock().unwrap(), [1]);

    // Behind a term, and with ANDs as sides.
    let (side, rows) = asked(is_one());
    let both = conjunction([more_than(1), side]);
    let terms = Terms::of(
        &conjunction([more_than(0), either(more_than(4), both)]),
        &schema(),
    );
    assert_eq!(count(&terms, &batch), 3);
    assert_eq!(*rows.lock().unwrap(), [3]);

    // Where all rows pass, and where none is open, nobody is asked.
    let (side, rows) = asked(is_one());
    let terms = Terms::of(&either(lit(true), side), &schema());
    assert_eq!(count(&terms, &batch), 6);
    assert_eq!(count(&terms, &batch.slice(0, 0)), 0);
    assert_eq!(*rows.lock().unwrap(), [0; 0]);
}

/// The sides of the condition of a join guard each other, whoever evaluates it.
#[tokio::test]
async fn conditions_of_joins_are_asked_in_turn() {
    let context = crate::tests::session(&crate::tests::open(16 << 20), SessionConfig::new());
    let ints = Arc::new(Int32Array::from_iter_values(0..100));
    let batch = RecordBatch::try_from_iter([("n", ints as ArrayRef)]).unwrap();
    for name in ["a", "b"] {
        context.register_batch(name, batch.clone()).unwrap();
    }
    for keys in ["", "a.n % 3 = b.n % 3 AND "] {
        let sql = format!(
            "SELECT COUNT(*) FROM a JOIN b ON {keys}a.n + b.n <> 0 AND 100 / (a.n + b.n) >= 1"
        );
        let found = context.sql(&sql).await.unwrap().collect().await.unwrap();
        let numbers = (0..100).flat_map(|a| (0..100).map(move |b| (a, b)));
        let kept = numbers
            .filter(|(a, b)| (1..=100).contains(&(a + b)) && (keys.is_empty() || a % 3 == b % 3));
        assert_eq!(
            crate::tests::sorted(&found),
            [kept.count().to_string()],
            "{sql}"
        );
    }
}

#[test]
fn a_division_is_asked_for_no_row_that_the_term_before_it_closes() {
    let ints = [Some(0), Some(1), Some(2), Some(4), None, Some(8)];
    let batch = pairs(&ints, &ints);
    let quotient = binary(lit(8), Operator::Divide, column("int"));
    let quotient = binary(quotient, Operator::Gt, lit(2));
    let is_not_zero = binary(column("int"), Operator::NotEq, lit(0));
    // Half of the rows and more are open: the stock filter divides by zero here.
    let guarded = conjunction([Arc::clone(&is_not_zero), Arc::clone(&quotient)]);
    assert!(guarded.evaluate(&batch).is_err());
    assert_eq!(count(&Terms::of(&guarded, &schema()), &batch), 2);
    // As it is written, the division comes first.
    let terms = Terms::of(&conjunction([quotient, is_not_zero]), &schema());
    assert!(terms.open_rows(&batch).is_err());
}

#[test]
fn the_value_of_a_subquery_is_compared_as_a_constant() {
    let results = ScalarSubqueryResults::new(1);
    let index = SubqueryIndex::new(0);
    let value = ScalarSubqueryExpr::new(DataType::Int32, true, index, results.clone());
    let more = binary(column("int"), Operator::Gt, Arc::new(value));
    let asks_last = |first: Expr| {
        let (last, rows) = asked(binary(column("int"), Operator::Lt, lit(4)));
        let terms = Terms::of(&conjunction([first, last]), &schema());
        (terms, rows)
    };
    let batch = pairs(&[Some(1), Some(2), Some(3), Some(4)], &[None; 4]);
    // It has no value before its plan runs, and is not asked for one.
    let (terms, rows) = asks_last(more);
    results.set(index, ScalarValue::Int32(Some(2))).unwrap();
    assert_eq!(count(&terms, &batch), 1);
    assert_eq!(*rows.lock().unwrap(), [2]);
}

#[test]
fn only_constant_patterns_let_terms_pass_that_are_behind_them() {
    for (pattern, first) in [(column("text"), "Costly"), (text("%o%"), "Cheap")] {
        let matches = like(false, false, column("text"), pattern, &schema()).unwrap();
        let behind = binary(column("int"), Operator::Gt, lit(2));
        let terms = Terms::of(&conjunction([matches, behind]), &schema());
        let order = format!("{terms:?}");
        assert!(order.starts_with(&format!("Terms([{first}")), "{order}");
    }
}

/// A call of a function of a name that returns its first argument.
fn first(name: &str, arguments: Vec<Expr>) -> Expr {
    let value = |values: &[ColumnarValue]| Ok(values[0].clone());
    let types = arguments.iter().map(|of| of.data_type(&schema()).unwrap());
    let types: Vec<DataType> = types.collect();
    let answer = types[0].clone();
    let function = create_udf(name, types, answer, Volatility::Immutable, Arc::new(value));
    let (function, options) = (Arc::new(function), Arc::default());
    let call = ScalarFunctionExpr::try_new(function, arguments, &schema(), options).unwrap();
    Arc::new(call)
}

#[test]
fn functions_that_never_warn_let_terms_pass_that_are_behind_them() {
    let year = |of: Expr| first("year", vec![of]);
    for (call, expected) in [
        (year(column("day")), "Cheap"),
        (year(column("int")), "Costly"),
        (first("f", vec![column("day")]), "Costly"),
        (year(first("f", vec![column("day")])), "Costly"),
        (first("left", vec![column("word"), lit(1)]), "Cheap"),
        (first("left", vec![column("word"), lit(1.5)]), "Costly"),
        (first("left", vec![column("word"), text("1x")]), "Costly"),
    ] {
        let behind = binary(column("int"), Operator::Gt, lit(2));
        let compared = is_not_null(call).unwrap();
        let terms = Terms::of(&conjunction([compared, behind]), &schema());
        let order = format!("{terms:?}");
        assert!(order.starts_with(&format!("Terms([{expected}")), "{order}");
    }
}

#[test]
fn functions_may_warn_but_for_silent_ones_and_arithmetic_of_integers() {
    let both = |name: &str, right: Expr| first(name, vec![column("int"), right]);
    for (value, expected) in [
        (column("int"), false),
        (first("year", vec![column("day")]), false),
        (first("year", vec![column("int")]), true),
        (both("+", lit(1)), false),
        (both("+", text("1x")), true),
        (both("*", both("+", column("long"))), false),
        (both("mod", lit(5)), false),
        (both("mod", lit(0)), true),
        (both("mod", column("long")), true),
        (both("/", lit(5)), true),
    ] {
        let condition = is_not_null(value).unwrap();
        assert_eq!(may_warn(&condition, &schema()), expected, "{condition}");
    }
}

#[tokio::test]
async fn no_rows_that_are_wanted_ask_no_term() {
    let batches = vec![pairs(&[Some(1), Some(2)], &[None; 2])];
    for (fetch, expected) in [(Some(0), Vec::new()), (Some(1), vec![2])] {
        let (term, asked) = asked(binary(column("int"), Operator::Gt, lit(0)));
        let stock = FilterExecBuilder::new(term, input(batches.clone()))
            .with_fetch(fetch)
            .build()
            .unwrap();
        let found = rows(Arc::new(FilterOperator::of(&stock))).await.unwrap();
        assert_eq!(Some(found.0.num_rows()), fetch);
        assert_eq!(*asked.lock().unwrap(), expected);
    }
}

#[test]
fn terms_are_split_once_for_the_same_condition() {
    let filter = |predicate: Expr| {
        let input = input(Vec::new());
        FilterExecBuilder::new(predicate, input).build().unwrap()
    };
    let predicate = binary(column("int"), Operator::Eq, lit(3));
    let condition = Condition::of(&filter(Arc::clone(&predicate)));
    let of_same = condition.again(&filter(predicate));
    assert!(std::ptr::eq(condition.terms(), of_same.terms()));
    let of_other = condition.again(&filter(binary(column("int"), Operator::Eq, lit(3))));
    assert!(!std::ptr::eq(condition.terms(), of_other.terms()));
}

#[test]
fn a_long_chain_of_conditions_is_no_recursion() {
    const TERMS: usize = 10_000;
    // The expression itself is dropped by recursion.
    let chain = || {
        let batch = pairs(&[Some(1), Some(2), None], &[Some(1), Some(1), Some(1)]);
        for operator in [Operator::And, Operator::Or] {
            let term = || binary(column("int"), Operator::Eq, lit(2));
            let mut all = term();
            for _ in 1..TERMS {
                all = binary(all, operator, term());
            }
            let schema = schema();
            // A stack that has no room for one frame a term.
            let terms = std::thread::scope(|scope| {
                let small = std::thread::Builder::new().stack_size(128 << 10);
                let split = small
                    .spawn_scoped(scope, || Terms::of(&all, &schema))
                    .unwrap();
                split.join().unwrap()
            });
            assert_eq!(count(&terms, &batch), 1);
        }
    };
    let large = std::thread::Builder::new().stack_size(256 << 20);
    large.spawn(chain).unwrap().join().unwrap();
}

#[test]
fn a_plan_with_our_filter_tells_what_it_told_before() {
    let mut random = Random(11);
    let batches = vec![batch(&mut random, 50)];
    let predicate = binary(column("int"), Operator::Eq, lit(3));
    let stock = FilterExecBuilder::new(predicate, input(batches))
        .apply_projection(Some(vec![0, 1]))
        .unwrap()
        .with_fetch(Some(9))
        .build()
        .unwrap();
    let shown = |plan: &dyn ExecutionPlan| {
        let plan = datafusion::physical_plan::displayable(plan);
        plan.indent(false).to_string()
    };
    let expected = shown(&stock);
    let column = Arc::new(Column::new("int", 0)) as Expr;
    let chosen = vec![(column, "int".to_owned())];
    let plan = ProjectionExec::try_new(chosen, Arc::new(stock.clone())).unwrap();

    let plan = replace_all(Arc::new(plan)).unwrap();
    let ours = Arc::clone(plan.children()[0]);
    assert!(ours.is::<FilterOperator>());
    assert!(filter_of(ours.as_ref()).is_some());
    assert_eq!(shown(ours.as_ref()), expected);
    assert!(Arc::ptr_eq(ours.properties(), stock.properties()));
    assert_eq!(ours.fetch(), Some(9));

    // Over another input, and from its beginning, it is ours again.
    let input = Arc::clone(ours.children()[0]);
    let again = over_input(&ours, input).unwrap();
    assert!(again.is::<FilterOperator>());
    assert!(again.reset_state().unwrap().is::<FilterOperator>());
    let fewer = ours.with_fetch(Some(2)).unwrap();
    assert!(fewer.is::<FilterOperator>());
    assert_eq!(fewer.fetch(), Some(2));
    assert!(!plan.is::<FilterExec>() && filter_of(plan.as_ref()).is_none());
}
