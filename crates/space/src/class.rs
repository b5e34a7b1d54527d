//! Page classes: the five fixed page sizes.
//!
//! **Owns** nothing. **Never** allocates. A value larger than the largest class is kept as a run
//! of superblocks and has no class.

/// One of the five fixed page sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageClass {
    /// 4 KiB.
    K4,
    /// 16 KiB: tree nodes, small tables, the tails of many partitions.
    K16,
    /// 64 KiB: the default page.
    K64,
    /// 256 KiB.
    K256,
    /// 1 MiB.
    M1,
}

impl PageClass {
    /// Every class, smallest first.
    pub const ALL: [PageClass; 5] = [
        PageClass::K4,
        PageClass::K16,
        PageClass::K64,
        PageClass::K256,
        PageClass::M1,
    ];

    /// The size of a page of this class.
    pub const fn bytes(self) -> usize {
        4096 << (2 * self.index())
    }

    /// The position of this class in [`PageClass::ALL`].
    pub const fn index(self) -> usize {
        match self {
            PageClass::K4 => 0,
            PageClass::K16 => 1,
            PageClass::K64 => 2,
            PageClass::K256 => 3,
            PageClass::M1 => 4,
        }
    }

    /// The smallest class that holds `len` bytes; `None` above 1 MiB.
    pub fn holding(len: usize) -> Option<PageClass> {
        PageClass::ALL
            .into_iter()
            .find(|class| class.bytes() >= len)
    }

    /// The page class a budget of `memory_bytes` uses when nothing else is asked: 64 KiB,
    /// 16 KiB below 32 MiB and 4 KiB below 4 MiB, so that many pages fit at every budget.
    pub fn for_budget(memory_bytes: u64) -> PageClass {
        match memory_bytes {
            0..0x40_0000 => PageClass::K4,
            0x40_0000..0x200_0000 => PageClass::K16,
            _ => PageClass::K64,
        }
    }
}
