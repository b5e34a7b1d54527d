//! INFORMATION_SCHEMA.MAYFLY_TEMP_FILES: what the operating system keeps of the temp files.

use mayfly_session::{EngineOptions, IoMode};

use crate::engine::{open_with, rows};

const FILES: &str = "SELECT IO, FILE_BYTES >= USED_BYTES, USED_BYTES, CACHED_BYTES, BYTES_READ, \
                     HIT_RATE BETWEEN 0 AND 1 FROM information_schema.MAYFLY_TEMP_FILES";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_cache_of_temp_files_is_seen() {
    for (io, name) in [(IoMode::Direct, "direct"), (IoMode::Buffered, "buffered")] {
        let directory = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            memory_bytes: 4 << 20,
            io,
            ..EngineOptions::default()
        };
        let engine = open_with(options, directory.path());
        let mut session = engine.connect();
        assert!(
            rows(&mut session, FILES).await.is_empty(),
            "nothing is on disk"
        );
        rows(&mut session, "CREATE TABLE t (a INT, c TEXT)").await;
        rows(&mut session, "INSERT INTO t VALUES (1, REPEAT('x', 1000))").await;
        // Texts that repeat take next to nothing.
        let twice = "INSERT INTO t SELECT a + 1, LEFT(CONCAT(RAND(), c), 1000) FROM t";
        for _ in 0..14 {
            rows(&mut session, twice).await;
        }
        rows(&mut session, "SELECT MAX(c) FROM t").await;
        let found = rows(&mut session, FILES).await;
        let [file] = found.as_slice() else {
            panic!("one file, not {found:?}");
        };
        assert_eq!([&file[0], &file[1], &file[5]], [name, "1", "1"], "{file:?}");
        let number = |column: usize| file[column].parse::<u64>().ok();
        assert!(
            number(2) > Some(8 << 20) && number(4) > Some(8 << 20),
            "{file:?}"
        );
        // Kernels before 6.5 do not say; a file system without direct transfers caches anyway.
        if let (Some(cached), "buffered") = (number(3), name) {
            assert!(cached > 1 << 20, "{file:?}");
        }
    }
}
