//! The table of operators: ours, and those of the DataFusion that this crate is built with.
//!
//! A test compares the table with the source of DataFusion, so an operator that a newer DataFusion
//! adds has no entry, fails the test by its name, and is refused until somebody has read how it
//! holds memory.

use self::Governance::{Bounded, InMemory, Ours, Spills, Ungoverned};

/// How an operator keeps to the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Governance {
    /// An operator of this crate: its rows lie in pages of the space.
    Ours,
    /// Holds some batches, however many rows pass through it.
    Bounded,
    /// Asks the memory pool for the rows that it holds, and writes to the disk when refused.
    Spills,
    /// Asks the memory pool for the rows that it holds, and fails when refused.
    InMemory,
    /// Holds rows without asking for their memory.
    Ungoverned,
}

/// What is known of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    /// `ExecutionPlan::name` of its nodes.
    pub(super) name: &'static str,
    /// How it keeps to the budget.
    pub(super) governance: Governance,
    /// What it holds.
    pub(super) holds: &'static str,
}

const fn entry(governance: Governance, name: &'static str, holds: &'static str) -> Operator {
    Operator {
        name,
        governance,
        holds,
    }
}

/// The operators of this crate.
const OURS: &[Operator] = &[
    entry(Ours, "AggregateOperator", "groups, in pages"),
    entry(
        Ours,
        "ApplyOperator",
        "a batch of outer rows, and values of a subquery, whose memory is granted before",
    ),
    entry(
        Ours,
        "ExchangeOperator",
        "rows that nobody has taken yet, some in memory and the others in pages",
    ),
    entry(Ours, "FilterOperator", "the rows of one batch"),
    entry(Ours, "ForgetConstants", "nothing: hands its input on"),
    entry(Ours, "GivenRowsScan", "rows that its caller owns"),
    entry(Ours, "Handed", "a batch of a plan over few rows"),
    entry(
        Ours,
        "JoinOperator",
        "its left side, in pages; a small one in a stock hash join whose memory is granted before",
    ),
    entry(Ours, "KeyApply", "a batch of outer rows and their groups"),
    entry(
        Ours,
        "KeyJoin",
        "a batch of outer rows and those that a key finds; goes over to the stock hash join",
    ),
    entry(Ours, "KeyOrder", "a batch of rows in the order of a key"),
    entry(Ours, "KeyScan", "a batch of rows that a key finds"),
    entry(Ours, "LateScan", "a batch of rows that a key finds"),
    entry(Ours, "LaterScan", "nothing: replaced before it runs"),
    entry(
        Ours,
        "MaterializedScan",
        "a batch of rows that lie in pages",
    ),
    entry(Ours, "MergeOperator", "a batch of each sorted input"),
    entry(
        Ours,
        "NestedLoopOperator",
        "its left side, in pages; a batch of each side",
    ),
    entry(Ours, "NoFilters", "nothing: taken out before the plan runs"),
    entry(Ours, "OnlyRows", "nothing: taken out before the plan runs"),
    entry(Ours, "Paced", "a batch of which pieces are left"),
    entry(Ours, "ReadAgain", "nothing: hands its input on"),
    entry(Ours, "RecursionOperator", "two levels of rows, in pages"),
    entry(Ours, "ProbeSide", "nothing: hands its input on"),
    entry(
        Ours,
        "Replay",
        "the batches that were read of a stream, reserved",
    ),
    entry(
        Ours,
        "SidewaysOperator",
        "a filter over keys, reserved by the join above",
    ),
    entry(Ours, "SortOperator", "runs of rows, in pages"),
    entry(Ours, "TableScan", "a batch of rows that lie in pages"),
    entry(Ours, "UnboundRowsScan", "nothing: replaced before it runs"),
    entry(Ours, "UnboundScan", "a batch of rows that lie in pages"),
    entry(Ours, "WindowOperator", "partitions and frames, in pages"),
    entry(
        Ours,
        "WithMaterialized",
        "tables that are computed once, in pages",
    ),
    entry(Ours, "WorkRowsScan", "a batch of rows that lie in pages"),
];

/// The operators of DataFusion.
const STOCK: &[Operator] = &[
    entry(
        Spills,
        "AggregateExec",
        "one row of states without GROUP BY; its groups where they come sorted, are at most \
         10,000, or have keys of nested types",
    ),
    entry(Bounded, "AnalyzeExec", "the metrics of its input, as text"),
    entry(
        Bounded,
        "AsyncFuncExec",
        "a batch and what functions made of it",
    ),
    entry(
        Ungoverned,
        "BoundedWindowAggExec",
        "the rows of partitions and frames",
    ),
    entry(InMemory, "BufferExec", "batches up to a limit of its own"),
    entry(Bounded, "CoalesceBatchesExec", "the rows of one batch"),
    entry(
        Bounded,
        "CoalescePartitionsExec",
        "a batch of each partition",
    ),
    entry(Bounded, "CooperativeExec", "nothing: hands its input on"),
    entry(InMemory, "CrossJoinExec", "its left side"),
    entry(
        Ungoverned,
        "DataSinkExec",
        "what its sink holds: a table in memory holds all rows",
    ),
    entry(
        Bounded,
        "DataSourceExec",
        "a batch for each partition; row groups of Parquet files are reserved, rows in memory were \
         there before the plan",
    ),
    entry(Bounded, "DmlResultExec", "one row"),
    entry(Bounded, "EmptyExec", "nothing"),
    entry(Bounded, "ExplainExec", "a plan, as text"),
    entry(Bounded, "FilterExec", "the rows of one batch"),
    entry(Bounded, "GlobalLimitExec", "nothing: hands its input on"),
    entry(InMemory, "HashJoinExec", "its left side"),
    entry(Bounded, "InterleaveExec", "nothing: hands its inputs on"),
    entry(Bounded, "LazyMemoryExec", "the batch that it generates"),
    entry(Bounded, "LocalLimitExec", "nothing: hands its input on"),
    entry(Spills, "NestedLoopJoinExec", "its left side"),
    entry(
        Bounded,
        "OutputRequirementExec",
        "nothing: taken out before the plan runs",
    ),
    entry(
        Ungoverned,
        "PartialSortExec",
        "the rows that share a prefix of the order",
    ),
    entry(
        InMemory,
        "PartitionedTopKExec",
        "the first rows of each partition",
    ),
    entry(InMemory, "PiecewiseMergeJoinExec", "its buffered side"),
    entry(Bounded, "PlaceholderRowExec", "one row"),
    entry(Bounded, "ProjectionExec", "the batch that it computes"),
    entry(InMemory, "RecursiveQueryExec", "a level of rows"),
    entry(
        Spills,
        "RepartitionExec",
        "batches that nobody has taken yet",
    ),
    entry(Bounded, "ScalarSubqueryExec", "a value of each subquery"),
    entry(Spills, "SortExec", "its input"),
    entry(InMemory, "SortExec(TopK)", "the first rows"),
    entry(Spills, "SortMergeJoinExec", "the rows of a key"),
    entry(
        Bounded,
        "SortPreservingMergeExec",
        "two batches of each input, which it asks the memory pool for",
    ),
    entry(
        Bounded,
        "StreamingTableExec",
        "nothing: hands on what a stream gives",
    ),
    entry(InMemory, "SymmetricHashJoinExec", "both sides"),
    entry(Bounded, "UnionExec", "nothing: hands its inputs on"),
    entry(
        Ungoverned,
        "UnnestExec",
        "all elements of the lists of a row",
    ),
    entry(Ungoverned, "WindowAggExec", "the rows of a partition"),
    entry(InMemory, "WorkTableExec", "a level of rows"),
];

/// What is known of the operator with a name.
pub(super) fn find(name: &str) -> Option<&'static Operator> {
    all().find(|known| known.name == name)
}

/// The whole table: our operators, then those of DataFusion.
pub(super) fn all() -> impl Iterator<Item = &'static Operator> {
    OURS.iter().chain(STOCK)
}
