//! GROUP_CONCAT, with DISTINCT, ORDER BY, SEPARATOR and `@@group_concat_max_len`.
//!
//! The function sorts its own values: each is kept with its order key in the row format of Arrow,
//! which sorts as bytes, so two calls with different orders may stand in one SELECT. Without an
//! order the values keep that of their rows as far as the plan keeps it.
//!
//! The state of a group is one run of bytes, `[key length][key][text length][text]` for each
//! value; states are merged by putting them behind each other. Whenever a run would have to grow it
//! is pruned first: sorted, without the values that came before, and without those that lie beyond
//! the cut. A value that is pruned cannot come back, because further values only move it further
//! behind; so a group takes a few times `group_concat_max_len`, however many rows it has.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunctionParams;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, Warning};

use super::convert;
use super::session_values::SessionValues;

/// What a call of GROUP_CONCAT asks for beside its values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) distinct: bool,
    pub(crate) separator: String,
    /// One entry for each order key: whether it is descending.
    pub(crate) descending: Vec<bool>,
    pub(crate) max_bytes: u64,
    pub(crate) session: Option<SessionValues>,
}

type Identity<'a> = (bool, &'a str, &'a [bool], u64);

impl Options {
    fn identity(&self) -> Identity<'_> {
        (
            self.distinct,
            &self.separator,
            &self.descending,
            self.max_bytes,
        )
    }
}

#[derive(Debug)]
struct GroupConcat {
    options: Options,
    signature: Signature,
}

impl PartialEq for GroupConcat {
    fn eq(&self, other: &Self) -> bool {
        self.options.identity() == other.options.identity()
    }
}

impl Eq for GroupConcat {}

impl std::hash::Hash for GroupConcat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.options.identity().hash(state);
    }
}

/// The aggregate over a text and its order keys.
pub(crate) fn group_concat(options: Options) -> AggregateUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    AggregateUDF::new_from_impl(GroupConcat { options, signature })
}

impl AggregateUDFImpl for GroupConcat {
    fn name(&self) -> &'static str {
        "group_concat"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Two calls that differ in their options alone have two columns.
    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        let arguments: Vec<String> = params
            .args
            .iter()
            .map(|argument| argument.schema_name().to_string())
            .collect();
        let options = self.options.identity();
        Ok(format!("group_concat({}) {options:?}", arguments.join(",")))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types.first() {
            Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                DataType::BinaryView
            }
            _ => DataType::Utf8View,
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[values]", arguments.name);
        Ok(vec![Arc::new(Field::new(name, DataType::BinaryView, true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let mut groups = Groups::new(&self.options, &arguments);
        groups.resize(1);
        Ok(Box::new(OneGroup { groups }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::new(&self.options, &arguments)))
    }
}

/// The states of all groups.
#[derive(Debug)]
struct Groups {
    options: Options,
    /// Whether the values are bytes, and may be cut anywhere.
    of_bytes: bool,
    states: Vec<State>,
    /// Bytes that the runs of all states have allocated.
    run_bytes: usize,
}

/// The values of one group.
#[derive(Debug, Default)]
struct State {
    run: Vec<u8>,
    /// The cut was reached, and no later value can come before it.
    full: bool,
}

/// A value: its order key and its text.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// Runs that take less than this are not pruned.
const PRUNED_BYTES_MIN: usize = 1 << 10;

fn length_bytes(length: usize) -> [u8; 4] {
    u32::try_from(length)
        .expect("a value has fewer than 2^32 bytes")
        .to_le_bytes()
}

/// Takes a run of bytes with its length in front.
fn take_run<'a>(state: &mut &'a [u8]) -> &'a [u8] {
    let (length, rest) = state.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let (run, rest) = rest.split_at(length);
    *state = rest;
    run
}

fn push_run(state: &mut Vec<u8>, run: &[u8]) {
    state.extend_from_slice(&length_bytes(run.len()));
    state.extend_from_slice(run);
}

impl Options {
    fn is_ordered(&self) -> bool {
        !self.descending.is_empty()
    }

    fn limit(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// The values of a run in the order of the result, up to the one in which the cut lies; and
    /// whether there is such a one.
    fn entries<'a>(&self, mut run: &'a [u8]) -> (Vec<Entry<'a>>, bool) {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        while !run.is_empty() {
            let key = take_run(&mut run);
            entries.push((key, take_run(&mut run)));
        }
        if self.is_ordered() {
            entries.sort_by_key(|(key, _)| *key);
        }
        if self.distinct {
            let mut seen = HashSet::new();
            entries.retain(|(_, text)| seen.insert(*text));
        }
        let mut length = 0;
        for index in 0..entries.len() {
            let separator = if index > 0 { self.separator.len() } else { 0 };
            length += separator + entries[index].1.len();
            if length > self.limit() {
                entries.truncate(index + 1);
                return (entries, true);
            }
        }
        (entries, false)
    }

    /// Leaves only what the result can show.
    fn prune(&self, state: &mut State) {
        let (entries, is_cut) = self.entries(&state.run);
        let mut pruned = Vec::new();
        for (key, text) in entries {
            push_run(&mut pruned, key);
            push_run(&mut pruned, text);
        }
        state.run.clear();
        state.run.extend_from_slice(&pruned);
        state.full = is_cut && !self.is_ordered();
    }

    /// Puts bytes behind a run. Before the run grows to twice its size it is pruned, so that
    /// pruning costs each byte a constant time.
    fn append(&self, state: &mut State, bytes: usize, push: impl FnOnce(&mut Vec<u8>)) {
        let full = state.run.len() + bytes > state.run.capacity();
        if full && state.run.len() >= PRUNED_BYTES_MIN {
            self.prune(state);
            let half = state.run.capacity() / 2;
            if state.run.len() + bytes > half {
                state.run.reserve(2 * half);
            }
        }
        if !state.full {
            push(&mut state.run);
        }
    }
}

impl Groups {
    fn new(options: &Options, arguments: &AccumulatorArgs<'_>) -> Groups {
        let of_bytes = arguments.return_field.data_type() == &DataType::BinaryView;
        Groups::of(options, of_bytes)
    }

    fn of(options: &Options, of_bytes: bool) -> Groups {
        Groups {
            options: options.clone(),
            of_bytes,
            states: Vec::new(),
            run_bytes: 0,
        }
    }

    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, State::default);
    }

    fn keys(&self, values: &[ArrayRef]) -> Result<Option<Rows>> {
        if !self.options.is_ordered() {
            return Ok(None);
        }
        let keys = &values[1..];
        let fields = keys
            .iter()
            .zip(&self.options.descending)
            .map(|(key, descending)| {
                let options = SortOptions {
                    descending: *descending,
                    nulls_first: !*descending,
                };
                SortField::new_with_options(key.data_type().clone(), options)
            })
            .collect();
        Ok(Some(RowConverter::new(fields)?.convert_columns(keys)?))
    }

    fn add(
        &mut self,
        values: &[ArrayRef],
        group_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        let texts = convert::to_bytes(&values[0], &ColumnType::Null)?;
        let keys = self.keys(values)?;
        for (row, text) in texts.iter().enumerate() {
            let (Some(text), Some(group)) = (text, group_of(row)) else {
                continue;
            };
            if self.states[group].full {
                continue;
            }
            let key = keys.as_ref().map(|keys| keys.row(row));
            let key = key.as_ref().map_or(&[][..], |key| key.data());
            self.append(group, 8 + key.len() + text.len(), |run| {
                push_run(run, key);
                push_run(run, text);
            });
        }
        Ok(())
    }

    fn append(&mut self, group: usize, bytes: usize, push: impl FnOnce(&mut Vec<u8>)) {
        let state = &mut self.states[group];
        let before = state.run.capacity();
        self.options.append(state, bytes, push);
        self.run_bytes = self.run_bytes - before + state.run.capacity();
    }

    /// The bytes of a group's text; `None` if it had no value.
    fn text(&self, state: &State) -> Option<Vec<u8>> {
        let (entries, is_cut) = self.options.entries(&state.run);
        if entries.is_empty() {
            return None;
        }
        if is_cut && let Some(session) = &self.options.session {
            session.warn(Warning::new(
                ErrorCode::CutByGroupConcat,
                &[&entries.len(), &"group_concat()"],
            ));
        }
        let texts: Vec<&[u8]> = entries.iter().map(|(_, text)| *text).collect();
        let mut text = texts.join(self.options.separator.as_bytes());
        let mut end = self.options.limit().min(text.len());
        // No character is cut: the bytes behind its first one begin with these bits.
        while !self.of_bytes && text.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
            end -= 1;
        }
        text.truncate(end);
        Some(text)
    }

    /// The texts of groups as a column of the result.
    fn texts(&self, states: &[State]) -> Result<ArrayRef> {
        let texts: BinaryViewArray = states.iter().map(|state| self.text(state)).collect();
        Ok(match self.of_bytes {
            true => Arc::new(texts),
            false => Arc::new(texts.to_string_view()?),
        })
    }

    /// The first states as `emit_to` says; they no longer count.
    fn take(&mut self, emit_to: EmitTo) -> Vec<State> {
        let states = emit_to.take_needed(&mut self.states);
        self.run_bytes -= states.iter().map(|s| s.run.capacity()).sum::<usize>();
        states
    }
}

fn runs_of(states: &[State]) -> ArrayRef {
    let mut builder = BinaryViewBuilder::with_capacity(states.len());
    for state in states {
        builder.append_value(&state.run);
    }
    Arc::new(builder.finish())
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        self.add(values, |row| {
            filter
                .is_none_or(|f| f.is_valid(row) && f.value(row))
                .then(|| groups[row])
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = self.take(emit_to);
        self.texts(&states)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![runs_of(&self.take(emit_to))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        for (run, group) in states[0].as_binary_view().iter().zip(groups) {
            let run = run.unwrap_or_default();
            self.append(*group, run.len(), |all| all.extend_from_slice(run));
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut single = Groups::of(&self.options, self.of_bytes);
        single.resize(rows);
        single.add(values, |row| {
            filter
                .is_none_or(|f| f.is_valid(row) && f.value(row))
                .then_some(row)
        })?;
        Ok(vec![runs_of(&single.states)])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.run_bytes + self.states.capacity() * size_of::<State>()
    }
}

/// The same for a query without groups.
#[derive(Debug)]
struct OneGroup {
    groups: Groups,
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups.add(values, |_| Some(0))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let text = self.groups.texts(&self.groups.states[..1])?;
        ScalarValue::try_from_array(&text, 0)
    }

    fn size(&self) -> usize {
        self.groups.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::BinaryView(Some(
            self.groups.states[0].run.clone(),
        ))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_binary_view().iter().flatten() {
            self.groups
                .append(0, state.len(), |all| all.extend_from_slice(state));
        }
        Ok(())
    }
}
