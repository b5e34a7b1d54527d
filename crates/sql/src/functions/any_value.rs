//! ANY_VALUE: the value of the first row of a group that is seen, NULL included.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, UInt32Array, new_null_array,
};
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use mayfly_table::owned::owned;

use super::aggregate::{Groups, OneGroup, passes};

/// What it is called.
pub(crate) const NAME: &str = "any_value";

#[derive(Debug, PartialEq, Eq, Hash)]
struct AnyValue {
    signature: Signature,
}

/// The aggregate `any_value`.
pub(crate) fn any_value() -> AggregateUDF {
    AggregateUDF::new_from_impl(AnyValue {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

impl AggregateUDFImpl for AnyValue {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        // The metadata says which MySQL type the values have.
        Ok(Arc::new(
            fields[0]
                .as_ref()
                .clone()
                .with_name(self.name())
                .with_nullable(true),
        ))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let of = arguments.return_field.data_type().clone();
        Ok(vec![
            Arc::new(Field::new(format!("{}[value]", arguments.name), of, true)),
            Arc::new(Field::new(
                format!("{}[seen]", arguments.name),
                DataType::Boolean,
                false,
            )),
        ])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(ManyGroups::of(&arguments))))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ManyGroups::of(&arguments)))
    }
}

/// Where the value of a group is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: u32,
    row: u32,
}

/// A group without a row so far.
const UNSEEN: Place = Place {
    chunk: u32::MAX,
    row: 0,
};

/// The values of all groups: those first seen in one batch lie together in one chunk.
#[derive(Debug)]
struct ManyGroups {
    of: DataType,
    chunks: Vec<ArrayRef>,
    places: Vec<Place>,
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).expect("a batch has fewer than 2^32 rows")
}

impl ManyGroups {
    fn of(arguments: &AccumulatorArgs<'_>) -> Self {
        ManyGroups {
            of: arguments.return_field.data_type().clone(),
            chunks: Vec::new(),
            places: Vec::new(),
        }
    }

    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        keep: impl Fn(usize) -> bool,
        total: usize,
    ) -> Result<()> {
        self.places.resize(total, UNSEEN);
        let chunk = narrow(self.chunks.len());
        let mut rows: Vec<u32> = Vec::new();
        for (row, group) in groups.iter().enumerate() {
            let place = &mut self.places[*group];
            if *place == UNSEEN && keep(row) {
                *place = Place {
                    chunk,
                    row: narrow(rows.len()),
                };
                rows.push(narrow(row));
            }
        }
        if !rows.is_empty() {
            let kept = take(values, &UInt32Array::from(rows), None)?;
            // Views would keep the texts of the whole batch alive.
            self.chunks.push(owned(&kept));
        }
        Ok(())
    }

    /// The values of the first groups, and which of them were seen; those groups are forgotten.
    fn emit(&mut self, emit_to: EmitTo) -> Result<(ArrayRef, BooleanArray)> {
        let places = emit_to.take_needed(&mut self.places);
        let nothing = new_null_array(&self.of, 1);
        let mut arrays: Vec<&dyn Array> = self.chunks.iter().map(AsRef::as_ref).collect();
        let unseen = arrays.len();
        arrays.push(nothing.as_ref());
        let indices: Vec<(usize, usize)> = places
            .iter()
            .map(|place| match *place {
                UNSEEN => (unseen, 0),
                place => (place.chunk as usize, place.row as usize),
            })
            .collect();
        let values = interleave(&arrays, &indices)?;
        let mut seen = BooleanBuilder::with_capacity(places.len());
        places
            .iter()
            .for_each(|place| seen.append_value(*place != UNSEEN));
        if self.places.is_empty() {
            self.chunks.clear();
        }
        Ok((values, seen.finish()))
    }
}

impl Groups for ManyGroups {
    fn value(&self, group: usize) -> Result<ScalarValue> {
        match self.places.get(group) {
            None | Some(&UNSEEN) => ScalarValue::try_from(&self.of),
            Some(place) => {
                let chunk = &self.chunks[place.chunk as usize];
                ScalarValue::try_from_array(chunk, place.row as usize)
            }
        }
    }

    fn state_of(&self, group: usize) -> Result<Vec<ScalarValue>> {
        let seen = self.places.get(group).is_some_and(|place| *place != UNSEEN);
        Ok(vec![self.value(group)?, ScalarValue::Boolean(Some(seen))])
    }
}

impl GroupsAccumulator for ManyGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.update(&values[0], groups, |row| passes(filter, row), total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.emit(emit_to)?.0)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (values, seen) = self.emit(emit_to)?;
        Ok(vec![values, Arc::new(seen)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let seen = states[1].as_boolean();
        self.update(&states[0], groups, |row| seen.value(row), total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let seen: BooleanArray = (0..values[0].len())
            .map(|row| Some(passes(filter, row)))
            .collect();
        Ok(vec![Arc::clone(&values[0]), Arc::new(seen)])
    }

    fn size(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Array::get_array_memory_size).sum();
        size_of::<Self>() + chunks + self.places.capacity() * size_of::<Place>()
    }
}
