//! Small changes of an input, as libFuzzer makes them.

use crate::Random;

/// Changes of one input.
const CHANGES_MAX: u64 = 5;
/// Bytes that often are limits of something.
const EDGES: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFE, 0xFF];

pub(super) struct Mutator<'a> {
    tokens: &'a [&'a [u8]],
    bytes_max: usize,
}

impl<'a> Mutator<'a> {
    pub(super) fn new(tokens: &'a [&'a [u8]], bytes_max: usize) -> Mutator<'a> {
        Mutator { tokens, bytes_max }
    }

    /// Changes an input in a few places; pieces of the corpus come in.
    pub(super) fn mutate(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
        for _ in 0..=random.below(CHANGES_MAX) {
            self.change(input, corpus, random);
        }
        input.truncate(self.bytes_max);
    }

    fn change(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
        let at = place(input.len(), random);
        match random.below(9) {
            0 => input.truncate(at),
            1 => insert(input, at, &[random.next_u64() as u8]),
            2 => drop(input.drain(range(input.len(), random))),
            3 => insert(
                input,
                at,
                &[EDGES[random.below(EDGES.len() as u64) as usize]],
            ),
            4 if !self.tokens.is_empty() => {
                let token = self.tokens[random.below(self.tokens.len() as u64) as usize];
                insert(input, at, token);
            }
            // A piece of itself again.
            5 => {
                let piece = input[range(input.len(), random)].to_vec();
                insert(input, at, &piece);
            }
            // A piece of another input.
            6 if !corpus.is_empty() => {
                let other = &corpus[random.below(corpus.len() as u64) as usize];
                let piece = other[range(other.len(), random)].to_vec();
                insert(input, at, &piece);
            }
            7 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = random.next_u64() as u8;
                }
            }
        }
    }
}

fn place(len: usize, random: &mut Random) -> usize {
    random.below(len as u64 + 1) as usize
}

/// A piece of up to a quarter: short ones are more common.
fn range(len: usize, random: &mut Random) -> std::ops::Range<usize> {
    let start = place(len, random);
    let longest = 1 + random.below(len as u64 / 4 + 1);
    let end = start + random.below(longest + 1) as usize;
    start..end.min(len)
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_stay_within_their_length() {
        let corpus = vec![vec![b'x'; 90], Vec::new()];
        let mutator = Mutator::new(&[b"token"], 100);
        let mut random = Random::new(3);
        let mut input = Vec::new();
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..5000 {
            mutator.mutate(&mut input, &corpus, &mut random);
            assert!(input.len() <= 100);
            lengths.insert(input.len());
        }
        assert!(lengths.len() > 50, "{lengths:?}");
    }
}
