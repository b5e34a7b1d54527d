//! A tree of losers: which of several sorted inputs has the next row.
//!
//! Owns: [`LoserTree`]. Never: looks at rows; whoever asks compares them.
//!
//! Source: Knuth, The Art of Computer Programming, volume 3, section 5.4.1. Cost: log2(inputs)
//! comparisons a row.

use std::cmp::Ordering;

/// The matches between inputs. `nodes[0]` is the winner, the others are the losers of their
/// matches: node `n` is played by the winners of nodes `2n` and `2n + 1`, and input `i` is the
/// leaf `inputs + i`.
#[derive(Default)]
pub(super) struct LoserTree {
    nodes: Vec<usize>,
    inputs: usize,
}

impl LoserTree {
    /// Plays all matches. An input without rows is greater than all others.
    pub(super) fn new(inputs: usize, compare: impl Fn(usize, usize) -> Ordering) -> Self {
        let mut nodes = vec![0; inputs.max(1)];
        let mut winners = vec![0; 2 * inputs];
        for leaf in 0..inputs {
            winners[inputs + leaf] = leaf;
        }
        for node in (1..inputs).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if compare(a, b).is_lt() {
                (a, b)
            } else {
                (b, a)
            };
            winners[node] = winner;
            nodes[node] = loser;
        }
        if inputs > 1 {
            nodes[0] = winners[1];
        }
        Self { nodes, inputs }
    }

    /// The input with the next row, if any has one.
    pub(super) fn winner(&self) -> usize {
        self.nodes[0]
    }

    /// Plays the matches of one input again after its row changed.
    pub(super) fn replay(&mut self, input: usize, compare: impl Fn(usize, usize) -> Ordering) {
        let mut winner = input;
        let mut node = (self.inputs + input) / 2;
        while node > 0 {
            let rival = self.nodes[node];
            if compare(rival, winner).is_lt() {
                self.nodes[node] = winner;
                winner = rival;
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}
