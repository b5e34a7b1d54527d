//! What compression and checksums cost on row pages.

use std::time::{Duration, Instant};

use super::{MeasureOptions, Table, mix, rate};
use crate::Result;
use crate::codec::{self, Codec};

const PAGE: usize = 64 << 10;

/// Rows of hash, integer key, count and sum.
fn integers() -> Vec<u8> {
    let row = |n: u64| [mix(n), n * 7 % 1_000_000, 1 + n % 3, n % 1000];
    (0..PAGE as u64 / 32)
        .flat_map(row)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Rows of hash, count and a string of 32 hexadecimal digits.
fn strings() -> Vec<u8> {
    let row = |n: u64| {
        let mut bytes = mix(n).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(1 + n % 2).to_le_bytes());
        bytes.extend_from_slice(format!("{:016x}{:016x}", mix(n), mix(n + 1)).as_bytes());
        bytes
    };
    let mut page: Vec<u8> = (0..PAGE as u64 / 48).flat_map(row).collect();
    page.resize(PAGE, 0);
    page
}

/// Words, as in comments and names.
fn text() -> Vec<u8> {
    let words = [
        "furiously",
        "express",
        "deposits",
        "the",
        "carefully",
        "ironic",
        "special",
    ];
    let mut page = Vec::with_capacity(PAGE + 16);
    let mut n = 0;
    while page.len() < PAGE {
        page.extend_from_slice(words[mix(n) as usize % words.len()].as_bytes());
        page.push(b' ');
        n += 1;
    }
    page.truncate(PAGE);
    page
}

fn repeat(least: Duration, mut body: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut bytes = 0;
    while bytes == 0 || started.elapsed() < least {
        body();
        bytes += PAGE as u64;
    }
    rate(bytes, started.elapsed())
}

/// Ratio and speed of each codec on three kinds of row pages, and the speed of the checksum.
pub fn codecs(options: &MeasureOptions) -> Result<Table> {
    let mut rows = Vec::new();
    let time = options.point / 4;
    for (kind, page) in [
        ("integers", integers()),
        ("hex strings", strings()),
        ("text", text()),
    ] {
        let mut out = vec![0; codec::bound(PAGE)];
        let mut back = vec![0; PAGE];
        for (name, codec) in [("lz4", Codec::Lz4), ("zstd 1", Codec::Zstd)] {
            let coded = codec::encode(codec, &page, &mut out).unwrap_or(PAGE);
            let encode = repeat(time, || {
                std::hint::black_box(codec::encode(codec, &page, &mut out));
            });
            let decode = repeat(time, || {
                std::hint::black_box(codec::decode(codec, &out[..coded], &mut back));
            });
            let ratio = PAGE as f64 / coded as f64;
            rows.push(vec![
                kind.into(),
                name.into(),
                ratio.into(),
                encode.into(),
                decode.into(),
            ]);
        }
        let sum = repeat(time, || {
            std::hint::black_box(codec::checksum(&page));
        });
        rows.push(vec![
            kind.into(),
            "xxh3".into(),
            1.0.into(),
            sum.into(),
            sum.into(),
        ]);
    }
    Ok(Table {
        name: "codecs",
        title: "codecs on row pages of 64 KiB",
        columns: &["page", "codec", "ratio", "encode MB/s", "decode MB/s"],
        rows,
    })
}
