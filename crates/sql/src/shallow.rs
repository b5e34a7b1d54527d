//! Terms joined by a connective, as a tree that is as shallow as can be.
//!
//! Whoever walks over a condition and asks at each node what is below it takes the square of its
//! depth, and a stack as deep as that. Short conditions lean to the left, as they were written.

/// Terms of a condition that lean to the left.
pub(crate) const LEANING_MAX: usize = 16;

/// Joins terms in their order; `None` where there is none.
pub(crate) fn joined<T>(mut terms: Vec<T>, join: impl Fn(T, T) -> T) -> Option<T> {
    while terms.len() > LEANING_MAX {
        let mut pairs = terms.into_iter();
        let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        terms = joined;
    }
    terms.into_iter().reduce(join)
}

/// How deep so many terms become.
pub(crate) fn depth(mut terms: usize) -> usize {
    let mut levels = 0;
    while terms > LEANING_MAX {
        terms = terms.div_ceil(2);
        levels += 1;
    }
    levels + terms.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_terms_are_shallow_and_in_order() {
        for (count, deep) in [(1, 0), (2, 1), (16, 15), (17, 9), (1000, 21)] {
            let terms = (0..count).map(|term| (vec![term], 0)).collect();
            let join = |(mut left, left_depth): (Vec<usize>, usize), right: (Vec<usize>, usize)| {
                left.extend(right.0);
                (left, 1 + left_depth.max(right.1))
            };
            let (order, depth_of_tree) = joined(terms, join).unwrap();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
            assert_eq!((depth_of_tree, depth(count)), (deep, deep), "{count}");
        }
        assert_eq!(joined(Vec::<usize>::new(), |left, _| left), None);
        assert_eq!(depth(0), 0);
    }
}
