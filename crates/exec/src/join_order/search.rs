//! The search for an order: which parts are joined first, from the rows that are expected.
//!
//! Owns: the cost of a tree of joins, and the enumeration of trees. Knows parts by number alone and
//! sets of them as bits. Never: looks at a plan.
//!
//! Up to [`EXHAUSTIVE_PARTS`] parts every tree without a product is compared, bushy ones included,
//! by dynamic programming over sets (Moerkotte and Neumann, VLDB 2006, DPsub: 3^n pairs of sets).
//! Beyond, the pair with the fewest rows is joined first (Fegaras, DEXA 1998, GOO: n^3).

/// Parts up to which every tree is looked at: 59,049 pairs of sets, some milliseconds.
const EXHAUSTIVE_PARTS: usize = 10;

/// A row of the side that becomes a table costs as much as two that look for partners in it.
const BUILD_COST: f64 = 2.0;

/// A set of parts.
pub(super) type Set = u64;

/// Parts that a set may hold.
pub(super) const PARTS_MAX: usize = Set::BITS as usize;

/// A tree of joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Part(usize),
    Join(Box<Tree>, Box<Tree>),
}

/// What the search knows of the parts.
pub(super) trait Parts {
    fn count(&self) -> usize;

    /// The rows that are expected when all of a set are joined.
    fn rows(&self, set: Set) -> f64;

    /// Whether two sets can be joined, the first being the left side: by an equality, or because
    /// the second is one part that only drops rows of the first.
    fn joins(&self, left: Set, right: Set) -> bool;
}

/// The part of a set that has no other.
pub(super) fn only_part(set: Set) -> Option<usize> {
    set.is_power_of_two().then(|| set.trailing_zeros() as usize)
}

impl Tree {
    pub(super) fn join(left: Tree, right: Tree) -> Tree {
        Tree::Join(Box::new(left), Box::new(right))
    }

    /// The parts of a tree.
    pub(super) fn set(&self) -> Set {
        match self {
            Tree::Part(part) => 1 << part,
            Tree::Join(left, right) => left.set() | right.set(),
        }
    }
}

/// What a tree costs, in rows that are looked at.
pub(super) fn cost(tree: &Tree, parts: &impl Parts) -> f64 {
    match tree {
        Tree::Part(_) => 0.0,
        Tree::Join(left, right) => {
            let below = cost(left, parts) + cost(right, parts);
            let rows = |tree: &Tree| parts.rows(tree.set());
            below + join_cost(rows(left), rows(right), rows(tree))
        }
    }
}

/// The tree that costs least; `None` where no tree joins all parts.
pub(super) fn best(parts: &impl Parts) -> Option<Tree> {
    match parts.count() {
        0 => None,
        count if count <= EXHAUSTIVE_PARTS => exhaustive(parts),
        _ => greedy(parts),
    }
}

fn join_cost(left: f64, right: f64, pairs: f64) -> f64 {
    BUILD_COST * left.min(right) + left.max(right) + pairs
}

fn exhaustive(parts: &impl Parts) -> Option<Tree> {
    let sets = 1_usize << parts.count();
    let rows: Vec<f64> = (0..sets as Set).map(|set| parts.rows(set)).collect();
    // The cost of the best tree of each set, and its left side.
    let mut costs = vec![f64::INFINITY; sets];
    let mut lefts: Vec<Set> = vec![0; sets];
    for part in 0..parts.count() {
        costs[1 << part] = 0.0;
    }
    for set in 1..sets as Set {
        let mut left = (set - 1) & set;
        while left > 0 {
            let right = set ^ left;
            let below = costs[left as usize] + costs[right as usize];
            if below < costs[set as usize] && parts.joins(left, right) {
                let rows = |set: Set| rows[set as usize];
                let cost = below + join_cost(rows(left), rows(right), rows(set));
                if cost < costs[set as usize] {
                    (costs[set as usize], lefts[set as usize]) = (cost, left);
                }
            }
            left = (left - 1) & set;
        }
    }
    costs[sets - 1]
        .is_finite()
        .then(|| tree_of(sets as Set - 1, &lefts))
}

fn tree_of(set: Set, lefts: &[Set]) -> Tree {
    if let Some(part) = only_part(set) {
        return Tree::Part(part);
    }
    let left = lefts[set as usize];
    Tree::join(tree_of(left, lefts), tree_of(set ^ left, lefts))
}

fn greedy(parts: &impl Parts) -> Option<Tree> {
    let mut trees: Vec<Tree> = (0..parts.count()).map(Tree::Part).collect();
    let mut pairs = Vec::new();
    for (place, tree) in trees.iter().enumerate() {
        pairs.extend(pairs_of(tree, &trees[place + 1..], parts));
    }
    while trees.len() > 1 {
        let least = pairs
            .iter()
            .min_by(|one, two| one.rows.total_cmp(&two.rows));
        let (left, right) = least.map(|pair| (pair.left, pair.right))?;
        pairs.retain(|pair| (pair.left | pair.right) & (left | right) == 0);
        let mut take = |set| {
            let place = trees.iter().position(|tree| tree.set() == set);
            place.map(|place| trees.swap_remove(place))
        };
        let joined = Tree::join(take(left)?, take(right)?);
        pairs.extend(pairs_of(&joined, &trees, parts));
        trees.push(joined);
    }
    trees.pop()
}

/// Two trees that can be joined.
struct Pair {
    left: Set,
    right: Set,
    rows: f64,
}

/// The joins of a tree with others, on either side.
fn pairs_of(tree: &Tree, others: &[Tree], parts: &impl Parts) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for other in others {
        for (left, right) in [(tree, other), (other, tree)] {
            let (left_set, right_set) = (left.set(), right.set());
            if parts.joins(left_set, right_set) {
                pairs.push(Pair {
                    left: left_set,
                    right: right_set,
                    rows: parts.rows(left_set | right_set),
                });
                break;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of so many rows, and equalities between two of them with their selectivities.
    struct Chain {
        rows: Vec<f64>,
        equalities: Vec<(usize, usize, f64)>,
        reducers: Vec<(usize, usize)>,
    }

    impl Parts for Chain {
        fn count(&self) -> usize {
            self.rows.len()
        }

        fn rows(&self, set: Set) -> f64 {
            let has = |part: usize| set & 1 << part != 0;
            let parts = (0..self.count()).filter(|part| has(*part));
            let rows: f64 = parts.map(|part| self.rows[part]).product();
            let both = self
                .equalities
                .iter()
                .filter(|(a, b, _)| has(*a) && has(*b));
            rows * both.map(|(_, _, selectivity)| selectivity).product::<f64>()
        }

        fn joins(&self, left: Set, right: Set) -> bool {
            let reducer = |set: Set| self.reducers.iter().find(|(part, _)| 1 << part == set);
            if reducer(left).is_some() {
                return false;
            }
            if let Some((_, of)) = reducer(right) {
                return left & 1 << of != 0;
            }
            self.equalities.iter().any(|(a, b, _)| {
                let (a, b): (Set, Set) = (1 << a, 1 << b);
                (left & a != 0 && right & b != 0) || (left & b != 0 && right & a != 0)
            })
        }
    }

    fn chain(rows: &[f64], equalities: &[(usize, usize, f64)]) -> Chain {
        Chain {
            rows: rows.to_vec(),
            equalities: equalities.to_vec(),
            reducers: Vec::new(),
        }
    }

    #[test]
    fn what_drops_rows_comes_first() {
        // Many rows, their partners, and a third part that leaves one of a hundred of those.
        let parts = chain(&[1e6, 1e4, 1.0], &[(0, 1, 1e-4), (1, 2, 1e-2)]);
        let tree = best(&parts).unwrap();
        let first = Tree::join(Tree::Part(1), Tree::Part(2));
        let Tree::Join(left, right) = &tree else {
            panic!("{tree:?}");
        };
        assert!(
            **left == first || **right == first || left.set() == 0b110,
            "{tree:?}"
        );
        let as_written = Tree::join(Tree::join(Tree::Part(0), Tree::Part(1)), Tree::Part(2));
        assert!(cost(&tree, &parts) < cost(&as_written, &parts) / 1.5);
    }

    #[test]
    fn parts_without_an_equality_have_no_tree() {
        assert_eq!(best(&chain(&[10.0, 10.0, 10.0], &[(0, 1, 0.1)])), None);
        let many = chain(&[10.0; 12], &[(0, 1, 0.1)]);
        assert_eq!(best(&many), None);
    }

    #[test]
    fn many_parts_are_joined_too() {
        let equalities: Vec<_> = (0..29).map(|part| (part, part + 1, 0.01)).collect();
        let rows: Vec<f64> = (0..30).map(|part| 100.0 + f64::from(part)).collect();
        let parts = chain(&rows, &equalities);
        assert_eq!(best(&parts).unwrap().set(), (1 << 30) - 1);
    }

    #[test]
    fn a_part_that_drops_rows_is_a_right_side() {
        // It leaves one row of a thousand of the first.
        let parts = Chain {
            rows: vec![1e6, 1e6, 1e-3],
            equalities: vec![(0, 1, 1e-6)],
            reducers: vec![(2, 0)],
        };
        let tree = best(&parts).unwrap();
        let reduced = Tree::join(Tree::Part(0), Tree::Part(2));
        let found = match &tree {
            Tree::Join(left, right) => **left == reduced || **right == reduced,
            Tree::Part(_) => false,
        };
        assert!(found, "{tree:?}");
    }
}
