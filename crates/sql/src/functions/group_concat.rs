//! GROUP_CONCAT, with DISTINCT, ORDER BY, SEPARATOR and `@@group_concat_max_len`.
//!
//! The function sorts its own values: each is kept with its order key in the row format of Arrow,
//! which sorts as bytes, so two calls with different orders may stand in one SELECT. Without an
//! order the values keep that of their rows as far as the plan keeps it.
//!
//! The state of a group is one run of bytes, `[key length][key][text length][text]` for each
//! value; states are merged by putting them behind each other.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, StringViewBuilder,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
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

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[values]", arguments.name);
        Ok(vec![Arc::new(Field::new(name, DataType::BinaryView, true))])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let groups = Groups {
            options: self.options.clone(),
            states: vec![Vec::new()],
        };
        Ok(Box::new(OneGroup { groups }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups {
            options: self.options.clone(),
            states: Vec::new(),
        }))
    }
}

/// The states of all groups.
#[derive(Debug)]
struct Groups {
    options: Options,
    states: Vec<Vec<u8>>,
}

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

impl Groups {
    fn keys(&self, values: &[ArrayRef]) -> Result<Option<Rows>> {
        if self.options.descending.is_empty() {
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
        let texts = convert::to_text(&values[0], &ColumnType::Null)?;
        let keys = self.keys(values)?;
        let cut = usize::try_from(self.options.max_bytes).unwrap_or(usize::MAX);
        let plain = keys.is_none() && !self.options.distinct;
        for (row, text) in texts.iter().enumerate() {
            let (Some(text), Some(group)) = (text, group_of(row)) else {
                continue;
            };
            let state = &mut self.states[group];
            // What lies beyond the cut will not be seen; one byte more makes it a cut.
            if plain && state.len() > cut.saturating_mul(2).saturating_add(1024) {
                continue;
            }
            let key = keys.as_ref().map(|keys| keys.row(row));
            let key = key.as_ref().map_or(&[][..], |key| key.data());
            state.extend_from_slice(&length_bytes(key.len()));
            state.extend_from_slice(key);
            state.extend_from_slice(&length_bytes(text.len()));
            state.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// The text of a group; `None` if it had no value.
    fn text(&self, mut state: &[u8]) -> Option<String> {
        let mut entries: Vec<(&[u8], &[u8])> = Vec::new();
        while !state.is_empty() {
            let key = take_run(&mut state);
            entries.push((key, take_run(&mut state)));
        }
        if entries.is_empty() {
            return None;
        }
        if !self.options.descending.is_empty() {
            entries.sort_by_key(|(key, _)| *key);
        }
        if self.options.distinct {
            let mut seen = HashSet::new();
            entries.retain(|(_, text)| seen.insert(*text));
        }
        let limit = usize::try_from(self.options.max_bytes).unwrap_or(usize::MAX);
        let mut all: Vec<u8> = Vec::new();
        for (index, (_, text)) in entries.iter().enumerate() {
            if index > 0 {
                all.extend_from_slice(self.options.separator.as_bytes());
            }
            all.extend_from_slice(text);
            if all.len() > limit {
                if let Some(session) = &self.options.session {
                    let row = index + 1;
                    session.warn(Warning::new(
                        ErrorCode::CutByGroupConcat,
                        &[&row, &"group_concat()"],
                    ));
                }
                break;
            }
        }
        let text = String::from_utf8(all).expect("texts and separators are UTF-8");
        let end = text.floor_char_boundary(limit.min(text.len()));
        Some(text[..end].to_owned())
    }

    fn states_of(states: &[Vec<u8>]) -> BinaryViewArray {
        let mut builder = BinaryViewBuilder::with_capacity(states.len());
        states.iter().for_each(|state| builder.append_value(state));
        builder.finish()
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.states.resize_with(total, Vec::new);
        self.add(values, |row| {
            filter
                .is_none_or(|f| f.is_valid(row) && f.value(row))
                .then(|| groups[row])
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        let mut builder = StringViewBuilder::with_capacity(states.len());
        states
            .iter()
            .for_each(|state| builder.append_option(self.text(state)));
        Ok(Arc::new(builder.finish()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let states = emit_to.take_needed(&mut self.states);
        Ok(vec![Arc::new(Self::states_of(&states))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.states.resize_with(total, Vec::new);
        for (state, group) in states[0].as_binary_view().iter().zip(groups) {
            self.states[*group].extend_from_slice(state.unwrap_or_default());
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut single = Groups {
            options: self.options.clone(),
            states: Vec::new(),
        };
        single.states.resize_with(rows, Vec::new);
        single.add(values, |row| {
            filter
                .is_none_or(|f| f.is_valid(row) && f.value(row))
                .then_some(row)
        })?;
        Ok(vec![Arc::new(Self::states_of(&single.states))])
    }

    fn size(&self) -> usize {
        let kept: usize = self.states.iter().map(Vec::capacity).sum();
        size_of::<Self>() + kept + self.states.capacity() * size_of::<Vec<u8>>()
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
        Ok(ScalarValue::Utf8View(
            self.groups.text(&self.groups.states[0]),
        ))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.groups.states[0].capacity()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::BinaryView(Some(
            self.groups.states[0].clone(),
        ))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_binary_view().iter().flatten() {
            self.groups.states[0].extend_from_slice(state);
        }
        Ok(())
    }
}
