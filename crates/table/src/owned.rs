//! Arrays that keep alive little more than their own values.
//!
//! **Owns** the bytes that a copy of an array would take, and that copy. **Never** reserves
//! memory: who keeps an array does.
//!
//! A slice of an array, or a selection of its values, shares the buffers of all its texts, and a
//! slice of lists all their items. Who keeps one for long, or writes all that it refers to, makes
//! it own its values first. That holds for texts within structs, lists, maps and dictionaries as
//! well; list views, unions and run-end encoded arrays keep what they share.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericByteViewArray, GenericListArray, MapArray,
    OffsetSizeTrait, StructArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;

/// Texts of up to this many bytes live in the view itself.
const INLINE_BYTES: u32 = 12;

/// Bytes that a view takes beside what it points to.
const VIEW_BYTES: usize = size_of::<u128>();

/// Bytes that a copy of the array takes.
pub fn own_bytes(array: &dyn Array) -> usize {
    let within_bytes = match array.data_type() {
        DataType::Utf8View => views_bytes(array.as_string_view().views()),
        DataType::BinaryView => views_bytes(array.as_binary_view().views()),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| own_bytes(column.as_ref())).sum()
        }
        DataType::List(_) => lists_bytes(array.as_list::<i32>()),
        DataType::LargeList(_) => lists_bytes(array.as_list::<i64>()),
        DataType::FixedSizeList(_, _) => own_bytes(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(_, _) => items_bytes(array.as_map().offsets(), array.as_map().entries()),
        DataType::Dictionary(_, _) => {
            // Its nulls are those of its keys.
            let dictionary = array.as_any_dictionary();
            return own_bytes(dictionary.keys()) + own_bytes(dictionary.values().as_ref());
        }
        _ => {
            let bytes = array.to_data().get_slice_memory_size();
            return bytes.unwrap_or_else(|_| array.get_array_memory_size());
        }
    };
    let nulls_bytes = array.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
    nulls_bytes + within_bytes
}

fn lists_bytes<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> usize {
    items_bytes(lists.offsets(), lists.values().as_ref())
}

fn items_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, items: &dyn Array) -> usize {
    let (first, count) = own_range(offsets);
    size_of_val::<[O]>(offsets) + own_bytes(items.slice(first, count).as_ref())
}

fn views_bytes(views: &[u128]) -> usize {
    views.len() * VIEW_BYTES + outline_bytes(views)
}

/// Bytes of texts that views point to.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a view's length is its lower 32 bits"
)]
fn outline_bytes(views: &[u128]) -> usize {
    let lengths = views.iter().map(|&view| view as u32);
    let outline = lengths.filter(|&length| length > INLINE_BYTES);
    outline.map(|length| length as usize).sum()
}

/// The same values; no view points into a buffer of another array, and lists have no items but
/// their own.
pub fn owned(array: &ArrayRef) -> ArrayRef {
    owned_where(array, &|_, held| held > 0)
}

/// As [`owned`], but texts are copied only where `must` says so, which is told how many bytes of
/// the buffers of an array of views are used and how many are held.
pub fn owned_where(array: &ArrayRef, must: &dyn Fn(usize, usize) -> bool) -> ArrayRef {
    let owned = match array.data_type() {
        DataType::Utf8View => texts(array.as_string_view(), must),
        DataType::BinaryView => texts(array.as_binary_view(), must),
        DataType::Struct(_) => structs(array.as_struct(), must),
        DataType::List(_) => lists(array.as_list::<i32>(), must),
        DataType::LargeList(_) => lists(array.as_list::<i64>(), must),
        DataType::FixedSizeList(_, _) => fixed_lists(array.as_fixed_size_list(), must),
        DataType::Map(_, _) => maps(array.as_map(), must),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let values = changed(dictionary.values(), must);
            values.map(|values| dictionary.with_values(values))
        }
        _ => None,
    };
    owned.unwrap_or_else(|| Arc::clone(array))
}

// Each of the following is `None` if the array stays as it is. Readers and casts build arrays
// that the checks of their constructors refuse (a null item in a null list of such that have
// none): those stay as they are, too.

/// The array, if it became another one.
fn changed(array: &ArrayRef, must: &dyn Fn(usize, usize) -> bool) -> Option<ArrayRef> {
    let owned = owned_where(array, must);
    (!Arc::ptr_eq(&owned, array)).then_some(owned)
}

fn texts<T: ByteViewType>(
    views: &GenericByteViewArray<T>,
    must: &dyn Fn(usize, usize) -> bool,
) -> Option<ArrayRef> {
    let held_bytes = views.data_buffers().iter().map(Buffer::capacity).sum();
    must(outline_bytes(views.views()), held_bytes).then(|| Arc::new(views.gc()) as ArrayRef)
}

fn structs(array: &StructArray, must: &dyn Fn(usize, usize) -> bool) -> Option<ArrayRef> {
    let columns = array.columns().iter();
    let owned: Vec<ArrayRef> = columns.map(|column| owned_where(column, must)).collect();
    let mut both = owned.iter().zip(array.columns());
    if both.all(|(owned, column)| Arc::ptr_eq(owned, column)) {
        return None;
    }
    let nulls = array.nulls().cloned();
    let array = StructArray::try_new(array.fields().clone(), owned, nulls).ok()?;
    Some(Arc::new(array))
}

fn lists<O: OffsetSizeTrait>(
    array: &GenericListArray<O>,
    must: &dyn Fn(usize, usize) -> bool,
) -> Option<ArrayRef> {
    let (DataType::List(item) | DataType::LargeList(item)) = array.data_type() else {
        unreachable!("an array of lists has a type of lists");
    };
    let (offsets, items) = own_items(array.offsets(), array.values(), must)?;
    let nulls = array.nulls().cloned();
    let array = GenericListArray::<O>::try_new(Arc::clone(item), offsets, items, nulls).ok()?;
    Some(Arc::new(array))
}

fn fixed_lists(
    array: &FixedSizeListArray,
    must: &dyn Fn(usize, usize) -> bool,
) -> Option<ArrayRef> {
    let DataType::FixedSizeList(item, size) = array.data_type() else {
        unreachable!("an array of lists has a type of lists");
    };
    let items = changed(array.values(), must)?;
    let nulls = array.nulls().cloned();
    let array = FixedSizeListArray::try_new(Arc::clone(item), *size, items, nulls).ok()?;
    Some(Arc::new(array))
}

fn maps(array: &MapArray, must: &dyn Fn(usize, usize) -> bool) -> Option<ArrayRef> {
    let DataType::Map(entry, is_ordered) = array.data_type() else {
        unreachable!("an array of maps has a type of maps");
    };
    let entries: ArrayRef = Arc::new(array.entries().clone());
    let (offsets, entries) = own_items(array.offsets(), &entries, must)?;
    let entries = entries.as_struct().clone();
    let nulls = array.nulls().cloned();
    let array = MapArray::try_new(Arc::clone(entry), offsets, entries, nulls, *is_ordered).ok()?;
    Some(Arc::new(array))
}

/// The items that offsets refer to, and the offsets into those; `None` if those are what there is.
fn own_items<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    items: &ArrayRef,
    must: &dyn Fn(usize, usize) -> bool,
) -> Option<(OffsetBuffer<O>, ArrayRef)> {
    let (first, count) = own_range(offsets);
    if count == items.len() {
        return Some((offsets.clone(), changed(items, must)?));
    }
    let own: Vec<O> = offsets.iter().map(|&offset| offset - offsets[0]).collect();
    let items = items.slice(first, count);
    Some((OffsetBuffer::new(own.into()), owned_where(&items, must)))
}

/// The first item that offsets refer to, and how many there are from it on.
fn own_range<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let first = offsets[0].as_usize();
    (first, offsets[offsets.len() - 1].as_usize() - first)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, MapBuilder, StringViewBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        Array, ArrayRef, DictionaryArray, FixedSizeListArray, Int32Array, ListArray,
        StringViewArray, StructArray,
    };
    use arrow_buffer::NullBuffer;
    use arrow_schema::{DataType, Field};

    use super::{own_bytes, owned, owned_where};

    const ROWS: usize = 1000;
    const TEXT_BYTES: usize = 100;

    fn text(row: usize) -> String {
        format!("{row:0TEXT_BYTES$}")
    }

    fn texts() -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values((0..ROWS).map(text)))
    }

    fn field() -> Arc<Field> {
        Arc::new(Field::new("text", DataType::Utf8View, true))
    }

    /// Arrays of [`ROWS`] values, one text to a value.
    fn arrays() -> Vec<ArrayRef> {
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        let mut maps = MapBuilder::new(None, StringViewBuilder::new(), StringViewBuilder::new());
        for row in 0..ROWS {
            lists.values().append_value(text(row));
            lists.append(true);
            maps.keys().append_value("key");
            maps.values().append_value(text(row));
            maps.append(true).unwrap();
        }
        vec![
            texts(),
            Arc::new(StructArray::new(vec![field()].into(), vec![texts()], None)),
            Arc::new(lists.finish()),
            Arc::new(maps.finish()),
            Arc::new(FixedSizeListArray::new(field(), 1, texts(), None)),
        ]
    }

    /// The bytes of texts that views use, and whether their buffers hold little more.
    fn text_bytes(array: &ArrayRef) -> (usize, bool) {
        let (used_bytes, held_bytes) = (Cell::new(0), Cell::new(0));
        let same = owned_where(array, &|used, held| {
            used_bytes.set(used_bytes.get() + used);
            held_bytes.set(held_bytes.get() + held);
            false
        });
        assert_eq!(&same, array);
        let is_tight = held_bytes.get() < 3 * used_bytes.get();
        (used_bytes.get(), is_tight)
    }

    #[test]
    fn a_slice_owns_its_values_and_no_others() {
        for array in arrays() {
            let slice = array.slice(300, 10);
            let own = owned(&slice);
            assert_eq!(&own, &slice, "{}", array.data_type());
            let bytes = own_bytes(slice.as_ref());
            assert_eq!(bytes, own_bytes(own.as_ref()), "{}", array.data_type());
            let per_row = bytes / slice.len();
            assert!(
                (TEXT_BYTES..2 * TEXT_BYTES).contains(&per_row),
                "{bytes}: {own:?}"
            );
            assert_eq!(text_bytes(&array), (ROWS * TEXT_BYTES, true));
            assert_eq!(text_bytes(&own), (slice.len() * TEXT_BYTES, true));
        }
    }

    #[test]
    fn a_dictionary_owns_its_texts() {
        let keys = Int32Array::from(vec![Some(0), None, Some(1)]);
        let dictionary = DictionaryArray::<Int32Type>::new(keys, texts().slice(7, 2));
        let dictionary: ArrayRef = Arc::new(dictionary);
        let own = owned(&dictionary);
        assert_eq!(&own, &dictionary);
        assert_eq!(text_bytes(&own), (2 * TEXT_BYTES, true));
    }

    /// A cast makes lists of lists of a fixed size and looks at no null.
    #[test]
    fn what_no_constructor_takes_stays_as_it_is() {
        let item = Arc::new(Field::new("text", DataType::Utf8View, false));
        let some_text: ArrayRef = Arc::new(StringViewArray::from(vec![Some(text(1)), None]));
        let nulls = NullBuffer::from(vec![true, false]);
        let fixed = FixedSizeListArray::new(item, 1, some_text, Some(nulls));
        let lists: ArrayRef = Arc::new(ListArray::from(fixed));
        assert!(Arc::ptr_eq(&owned(&lists), &lists));
        let field = Field::new("lists", lists.data_type().clone(), true);
        let structs = StructArray::new(vec![field].into(), vec![lists], None);
        let structs: ArrayRef = Arc::new(structs);
        assert!(Arc::ptr_eq(&owned(&structs), &structs));
    }

    #[test]
    fn arrays_without_texts_or_values_stay_as_they_are() {
        let empty: ArrayRef = Arc::new(StructArray::new_empty_fields(3, None));
        assert_eq!(&owned(&empty), &empty);
        for array in arrays() {
            assert_eq!(owned(&array.slice(5, 0)).len(), 0);
        }
    }
}
