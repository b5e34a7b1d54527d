//! Insertion: into a leaf that has room, or by cutting the nodes that have none.
//!
//! **Owns** nothing between calls. **Never** changes a node before every page that takes part is
//! pinned or allocated.

use mayfly_space::{PageClass, WriteGuard};

use super::cut::{self, InnerCut, LeafCut};
use super::edit::{Fit, NodeMut};
use super::node::{CHILD_BYTES, NODE_BYTES, Node};
use super::writer::Held;
use super::{Payload, Tree};
use crate::error::Result;

/// What inserting an entry changes, decided before anything does.
struct Plan {
    leaf: LeafCut,
    /// From the parent of the leaf upwards.
    inner: Vec<InnerCut>,
    /// Whether even the root is cut.
    grows: bool,
}

/// Every page that takes part in cutting nodes.
struct Parts {
    /// The parent of the leaf, its parent, ..: all that are cut and the one that takes the last
    /// separator.
    ancestors: Vec<WriteGuard>,
    /// The right part of the leaf, of its parent, .., and a root if there has to be another.
    fresh: Vec<WriteGuard>,
}

impl Tree {
    pub(super) fn insert_held(
        &mut self,
        held: &mut Option<Held>,
        key: &[u8],
        payload: &[u8],
    ) -> Result<Option<Payload>> {
        self.check_key(key)?;
        self.check_payload(payload)?;
        if self.levels.is_empty() {
            self.plant()?;
        }
        self.hold(held, key)?;
        let leaf = held.as_mut().expect("the leaf is held");
        let node = Node::new(&leaf.guard);
        let position = match node.expected(key) {
            Some(position) => position,
            None => {
                let found = node.search(key);
                if found.is_equal {
                    return Ok(Some(Payload::new(node.payload(found.position))));
                }
                found.position
            }
        };
        if !NodeMut::new(&mut leaf.guard).insert(position, key, payload, true) {
            self.make_room(leaf, position, key, payload)?;
        }
        self.entry_count += 1;
        Ok(None)
    }

    /// Gives an empty tree its first leaf.
    fn plant(&mut self) -> Result<()> {
        let mut guard = self.pages.allocate(PageClass::K4)?;
        NodeMut::format(&mut guard, 0, self.payload_bytes);
        self.root = self.pages.adopt(guard.page().clone());
        self.levels.push(1);
        self.path.clear();
        self.hint.forget();
        Ok(())
    }

    /// Inserts into a leaf that has no room.
    fn make_room(
        &mut self,
        leaf: &mut Held,
        position: usize,
        key: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        if leaf.guard.len() < NODE_BYTES {
            self.enlarge(leaf.number, &mut leaf.guard)?;
            // One key without the prefix that many others share takes it from all of them: 200 keys
            // with 1000 bytes in common are 3 KiB, and 200 KiB with it.
            if NodeMut::new(&mut leaf.guard).insert(position, key, payload, false) {
                return Ok(());
            }
        }
        self.find_path(key)?;
        let plan = self.plan(Node::new(&leaf.guard), position, key)?;
        let parts = self.gather(&plan)?;
        self.cut(plan, parts, leaf, position, key, payload);
        Ok(())
    }

    /// Gives the first leaf, of this number, a page of full size.
    pub(super) fn enlarge(&mut self, number: u32, leaf: &mut WriteGuard) -> Result<()> {
        let mut larger = self.pages.allocate(PageClass::K16)?;
        let small = Node::new(leaf);
        let mut node = NodeMut::format(&mut larger, 0, self.payload_bytes);
        node.append_part(small, 0..small.count());
        node.set_run(small.run(), small.last_insert());
        self.pages.replace(number, larger.page().clone());
        *leaf = larger;
        Ok(())
    }

    /// Decides which nodes are cut, and where. Changes nothing.
    fn plan(&self, leaf: Node<'_>, position: usize, key: &[u8]) -> Result<Plan> {
        let leaf = cut::leaf_cut(leaf, position, key);
        let mut inner: Vec<InnerCut> = Vec::new();
        for step in self.path.iter().rev() {
            let guard = self.pages.read(step.number)?;
            let node = Node::new(&guard);
            let separator = inner.last().map_or(&leaf.separator, |cut| &cut.separator);
            if node.fit(separator, true) != Fit::No {
                let grows = false;
                return Ok(Plan { leaf, inner, grows });
            }
            let cut = cut::inner_cut(node, step.index, separator);
            inner.push(cut);
        }
        let grows = true;
        Ok(Plan { leaf, inner, grows })
    }

    /// Pins and allocates what a plan needs. Changes nothing.
    fn gather(&mut self, plan: &Plan) -> Result<Parts> {
        let ancestor_count = plan.inner.len() + usize::from(!plan.grows);
        let fresh_count = 1 + plan.inner.len() + usize::from(plan.grows);
        let mut ancestors = Vec::with_capacity(ancestor_count);
        for step in self.path.iter().rev().take(ancestor_count) {
            ancestors.push(self.pages.write(step.number)?);
        }
        let mut fresh = Vec::with_capacity(fresh_count);
        for _ in 0..fresh_count {
            fresh.push(self.pages.allocate(PageClass::K16)?);
        }
        Ok(Parts { ancestors, fresh })
    }

    /// Carries a plan out. Cannot fail.
    fn cut(
        &mut self,
        plan: Plan,
        parts: Parts,
        leaf: &mut Held,
        position: usize,
        key: &[u8],
        payload: &[u8],
    ) {
        let mut fresh = parts.fresh.into_iter();
        let mut ancestors = parts.ancestors.into_iter();
        let mut next_fresh = || fresh.next().expect("gathered as planned");
        let mut right = next_fresh();
        cut_leaf(
            &plan.leaf,
            &mut leaf.guard,
            &mut right,
            position,
            key,
            payload,
        );
        let mut child = self.pages.adopt(right.page().clone());
        self.levels[0] += 1;
        let went_right = !plan.leaf.entry_left;
        self.hint.cut(&plan.leaf.separator, child, went_right);
        if went_right {
            leaf.guard = right;
            leaf.number = child;
        }
        let mut separator = plan.leaf.separator;
        let mut indexes = self.path.iter().rev().map(|step| step.index);
        for (cut, level) in plan.inner.into_iter().zip(1..) {
            let mut left = ancestors.next().expect("gathered as planned");
            let index = indexes.next().expect("planned along the path");
            let mut right = next_fresh();
            cut_inner(&cut, &mut left, &mut right, index, &separator, child);
            child = self.pages.adopt(right.page().clone());
            separator = cut.separator;
            self.levels[level] += 1;
        }
        if let Some(mut parent) = ancestors.next() {
            let index = indexes.next().expect("planned along the path");
            insert_child(
                &mut NodeMut::new(&mut parent),
                index,
                &separator,
                child,
                true,
            );
        } else {
            let mut root = next_fresh();
            let mut node = NodeMut::format(&mut root, self.levels.len(), CHILD_BYTES);
            node.set_first_child(self.root);
            insert_child(&mut node, 0, &separator, child, false);
            self.root = self.pages.adopt(root.page().clone());
            self.levels.push(1);
        }
        // The way leads to the left part, and perhaps no longer to it.
        self.path.clear();
    }
}

/// Inserts a separator and the child behind it.
fn insert_child(node: &mut NodeMut<'_>, index: usize, separator: &[u8], child: u32, slack: bool) {
    let is_in = node.insert(index, separator, &child.to_le_bytes(), slack);
    assert!(is_in, "a separator fits where it was planned to");
}

fn cut_leaf(
    cut: &LeafCut,
    left: &mut WriteGuard,
    right: &mut WriteGuard,
    position: usize,
    key: &[u8],
    payload: &[u8],
) {
    let whole = Node::new(left);
    let run = whole.run();
    let mut right = NodeMut::format(right, 0, whole.payload_bytes());
    right.append_part(whole, cut.at..whole.count());
    let mut neighbour = Vec::new();
    if cut.at == whole.count() {
        whole.copy_key(cut.at - 1, &mut neighbour);
        right.expect_keys_near(&neighbour, key);
    } else if cut.at == 0 {
        whole.copy_key(0, &mut neighbour);
    }
    let mut left = NodeMut::new(left);
    left.truncate(cut.at);
    if cut.at == 0 {
        left.expect_keys_near(&neighbour, key);
    }
    let is_in = if cut.entry_left {
        left.insert(position, key, payload, false)
    } else {
        let position = position - cut.at;
        let is_in = right.insert(position, key, payload, false);
        // The run goes on where the entry went.
        right.set_run(run, position);
        is_in
    };
    assert!(is_in, "half of a node has room for the longest key");
}

fn cut_inner(
    cut: &InnerCut,
    left: &mut WriteGuard,
    right: &mut WriteGuard,
    position: usize,
    separator: &[u8],
    child: u32,
) {
    let whole = Node::new(left);
    let mut right = NodeMut::format(right, whole.level(), CHILD_BYTES);
    let stored = cut.index - usize::from(cut.index > position);
    if cut.index == position {
        right.set_first_child(child);
        right.append_part(whole, stored..whole.count());
        NodeMut::new(left).truncate(stored);
        return;
    }
    right.set_first_child(whole.child(stored + 1));
    right.append_part(whole, stored + 1..whole.count());
    let mut left = NodeMut::new(left);
    left.truncate(stored);
    if cut.index < position {
        insert_child(&mut right, position - stored - 1, separator, child, false);
    } else {
        insert_child(&mut left, position, separator, child, false);
    }
}
