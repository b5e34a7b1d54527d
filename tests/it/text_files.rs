//! Text files and files of clients: what is long, slow or broken.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use mayfly_session::{FileRequest, Session};
use mayfly_testkit::{Random, repository};
use tokio::time::timeout;

use crate::engine::{check_nothing_left, error, open, rows, run};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file that begins with some bytes and goes on with a GiB of zeros, which take no room.
fn endless(path: &Path, begins: &str) -> String {
    let mut file = File::create(path).unwrap();
    file.write_all(begins.as_bytes()).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"\n").unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_records_end_at_a_quarter_of_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a LONGTEXT)").await;
    let begins = ["a,b\n1,2\n3,", "a\tb\n1\t2\n3\t", "{\"a\":1}\n\n{\"a\":\""];
    for (name, begins) in ["a.csv", "a.tsv", "a.json"].into_iter().zip(begins) {
        let file = endless(&files.path().join(name), begins);
        for sql in [
            format!("SELECT COUNT(*) FROM '{file}'"),
            format!("LOAD DATA INFILE '{file}' INTO TABLE t"),
        ] {
            // LOAD DATA takes the lines that come before.
            rows(&mut session, "SET sql_mode = ''").await;
            let (code, text) = error(&mut session, &sql).await;
            assert_eq!(code, 1118, "{sql}: {text}");
            assert!(text.contains("begins on line 3 of file"), "{sql}: {text}");
            assert!(text.contains("4194304 bytes"), "{sql}: {text}");
        }
    }
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t").await, [["0"]]);
    drop(session);
    check_nothing_left(&engine, "endless records").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_records_are_read_as_far_as_there_is_memory() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(32 << 20, directory.path());
    let mut session = engine.connect();
    let file = files.path().join("long.csv");
    let long = "x".repeat(3 << 20);
    fs::write(&file, format!("a,b\n1,{long}\n2,{long}\n")).unwrap();
    let file = file.display();
    let sql = format!("SELECT SUM(a), MAX(LENGTH(b)) FROM '{file}'");
    assert_eq!(rows(&mut session, &sql).await, [["3", "3145728"]]);
    // Records that are allowed find no room.
    let file = endless(&files.path().join("endless.csv"), "a,b\n1,");
    rows(&mut session, "SET mayfly_max_record_bytes = 1073741824").await;
    let (code, text) = error(&mut session, &format!("SELECT COUNT(*) FROM '{file}'")).await;
    assert_eq!(code, 1038, "{text}");
    assert!(text.contains("begins on line 2 of file"), "{text}");
    drop(session);
    check_nothing_left(&engine, "long records").await;
}

/// A session whose client is asked for a file, and has not sent any of it.
async fn asked(session: &mut Session) -> FileRequest {
    rows(session, "CREATE TEMPORARY TABLE t (a INT)").await;
    let mut requests = session.client_files();
    let load = "LOAD DATA LOCAL INFILE 'slow' INTO TABLE t";
    let request = tokio::select! {
        ran = run(session, load) => panic!("it ended without its file: {ran:?}"),
        request = timeout(PATIENCE, requests.recv()) => request,
    };
    request.expect("it asks in time").expect("it asks")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_hold_no_threads() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut loads = Vec::new();
    for _ in 0..8 {
        let mut session = engine.connect();
        rows(&mut session, "CREATE TEMPORARY TABLE t (a INT)").await;
        let mut requests = session.client_files();
        let load = "LOAD DATA LOCAL INFILE 'slow' INTO TABLE t";
        let running = tokio::spawn(async move {
            let ran = run(&mut session, load).await;
            (ran, session)
        });
        let request = timeout(PATIENCE, requests.recv()).await;
        let request = request.expect("all of them are asked").expect("it asks");
        request.pieces.send(Ok(b"1\n2".to_vec())).await.unwrap();
        loads.push((request, running));
    }
    // Others load and ask meanwhile.
    let mut session = engine.connect();
    let others = async {
        rows(&mut session, "CREATE TEMPORARY TABLE o (a INT)").await;
        let file = directory.path().join("o.txt");
        fs::write(&file, "1\n2\n").unwrap();
        let load = format!("LOAD DATA INFILE '{}' INTO TABLE o", file.display());
        rows(&mut session, &load).await;
        rows(
            &mut session,
            "SELECT a, COUNT(*) FROM o GROUP BY a ORDER BY a",
        )
        .await
    };
    let found = timeout(PATIENCE, others)
        .await
        .expect("nobody is in the way");
    assert_eq!(found, [["1", "1"], ["2", "1"]]);
    for (request, running) in loads {
        request.pieces.send(Ok(b"3\n".to_vec())).await.unwrap();
        request.pieces.send(Ok(Vec::new())).await.unwrap();
        let (ran, mut session) = running.await.unwrap();
        ran.unwrap();
        let sum = rows(&mut session, "SELECT COUNT(*), SUM(a) FROM t").await;
        assert_eq!(sum, [["2", "24"]]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_whose_client_is_silent_can_be_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let request = asked(&mut session).await;
    // Dropping the statement, as a client that goes away does, lets go of the file.
    let closed = timeout(PATIENCE, request.pieces.closed()).await;
    closed.expect("nobody waits for the file any more");
    let records = "1\n".repeat(10);
    let mut requests = session.client_files();
    let load = "LOAD DATA LOCAL INFILE 'quick' INTO TABLE t";
    let send = async {
        let request = requests.recv().await.expect("it asks");
        for piece in [records.into_bytes(), Vec::new()] {
            request.pieces.send(Ok(piece)).await.unwrap();
        }
    };
    let (ran, ()) = tokio::join!(run(&mut session, load), send);
    ran.unwrap();
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t").await, [["10"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_record_of_a_client_ends_the_load() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a LONGTEXT)").await;
    let mut requests = session.client_files();
    let load = "LOAD DATA LOCAL INFILE 'endless' INTO TABLE t";
    let send = async {
        let request = requests.recv().await.expect("it asks");
        let mut pieces = 0;
        while request.pieces.send(Ok(vec![b'x'; 64 << 10])).await.is_ok() {
            pieces += 1;
        }
        pieces
    };
    let (ran, pieces) = tokio::join!(run(&mut session, load), send);
    assert_eq!(ran.unwrap_err().code, 1118);
    assert!(pieces < 300, "{pieces} pieces were taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_files_warn() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a TEXT, b TEXT)").await;
    let files = tempfile::tempdir().unwrap();
    let load = "LOAD DATA INFILE 'THE_FILE' INTO TABLE t FIELDS TERMINATED BY ',' ENCLOSED BY '\"'";
    for (text, sql, expected) in [
        (
            ",a,b\n0,x,1\n1,y,2\n",
            "SELECT column_1, a, b FROM 'THE_FILE'",
            Some("1166 Line 1 of file 'THE_FILE' lacks 1 names of 3: these columns are called by"),
        ),
        (
            "u,,w\nx,y,z\n",
            "SELECT column_1, column_2, column_3 FROM 'THE_FILE'",
            Some("1166 Line 1 of file 'THE_FILE' lacks 1 names of 3: it is read as a row"),
        ),
        ("u,v,w\nx,y,z\n", "SELECT u, v, w FROM 'THE_FILE'", None),
        ("1,,w\nx,y,z\n", "SELECT column_1 FROM 'THE_FILE'", None),
        ("1,\"x\"\n2,y\n", load, None),
        (
            "1,\"x\n2,y\n",
            load,
            Some(
                "1261 Row 1 of file 'THE_FILE' has a quote without an end: it takes 2 lines as one \
                 field",
            ),
        ),
        (
            "x\ny\nz\n",
            &format!("{load} LINES TERMINATED BY '\\r\\n' (a)"),
            Some(
                "1261 Row 1 of file 'THE_FILE' does not end with LINES TERMINATED BY \
                 '\\\\r\\\\n': it takes 3 lines as one field",
            ),
        ),
        (
            "x\ny\nz\n",
            &format!("{load} LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a)"),
            Some("1261 IGNORE 1 LINES leaves out all 3 lines of file 'THE_FILE': fewer"),
        ),
        (
            "x\ny",
            &format!("{load} LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a)"),
            Some("1261 IGNORE 1 LINES leaves out all 2 lines of file 'THE_FILE': fewer"),
        ),
        (
            "x",
            &format!("{load} LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a)"),
            None,
        ),
        (
            "x\ny\nz",
            &format!("{load} LINES TERMINATED BY '\\n' IGNORE 1 LINES (a)"),
            None,
        ),
        (
            "x;y;\n",
            &format!("{load} LINES TERMINATED BY ';' (a)"),
            None,
        ),
    ] {
        let path = files.path().join("file.csv");
        fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        rows(&mut session, &sql.replace("THE_FILE", &path)).await;
        let warnings = rows(&mut session, "SHOW WARNINGS").await;
        let told: Vec<String> = warnings.iter().map(|it| it[1..].join(" ")).collect();
        match expected {
            None => assert_eq!(told, [""; 0], "{text}"),
            Some(expected) => {
                let expected = expected.replace("THE_FILE", &path);
                assert_eq!(told.len(), 1, "{told:?}");
                assert!(told[0].starts_with(&expected), "{told:?}");
            }
        }
    }
}

/// A frame of zstd with a window, whose content is not compressed.
fn zstd_frame(window: u8, content: &str) -> Vec<u8> {
    let block = 1 | (content.len() as u32) << 3;
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0, window];
    frame.extend_from_slice(&block.to_le_bytes()[..3]);
    frame.extend_from_slice(content.as_bytes());
    frame
}

/// `a`, `1`, `2` in three lines, compressed with dictionaries of 8 and 64 MiB.
const XZ_8_MIB: &str = "FD377A585A0000016922DE360200210116000000742FE5A3010005610A310A320A00000080C27F70\
     00011A06C5EAC8799042990D010000000001595A";
const XZ_64_MIB: &str = "FD377A585A0000016922DE36020021011C00000010CF58CC010005610A310A320A00000080C27F70\
     00011A06C5EAC8799042990D010000000001595A";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap());
    bytes.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_of_compressed_files_are_granted() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    // 1 KiB, 8 MiB and 128 MiB.
    let (small, middle, large) = (0x00, 0x68, 0x88);
    let several = [
        zstd_frame(small, "a\n"),
        zstd_frame(middle, "1\n"),
        zstd_frame(small, "2\n"),
    ];
    let later = [zstd_frame(small, "a\n1\n"), zstd_frame(large, "2\n")];
    for (name, bytes, needs) in [
        ("several.csv.zst", several.concat(), None),
        ("later.csv.zst", later.concat(), Some("takes 128 MiB")),
        (
            "large.csv.zst",
            zstd_frame(large, "a\n1\n"),
            Some("takes 128 MiB"),
        ),
        ("middle.csv.xz", bytes_of(XZ_8_MIB), None),
        ("large.csv.xz", bytes_of(XZ_64_MIB), Some("takes 65 MiB")),
    ] {
        let path = files.path().join(name);
        fs::write(&path, bytes).unwrap();
        let sql = format!("SELECT COUNT(*), SUM(a) FROM '{}'", path.display());
        match needs {
            None => assert_eq!(rows(&mut session, &sql).await, [["2", "3"]], "{name}"),
            Some(needs) => {
                let (code, text) = error(&mut session, &sql).await;
                assert_eq!(code, 1038, "{text}");
                assert!(text.contains(name) && text.contains(needs), "{text}");
            }
        }
    }
    drop(session);
    check_nothing_left(&engine, "windows").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parquet_files_that_are_none_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let path = files.path().join("x.parquet");
    let sql = format!("SELECT * FROM '{}' LIMIT 1", path.display());
    for (bytes, expected) in [
        (
            b"PAR1garbagePAR1".as_slice(),
            "more than the file of 15 bytes",
        ),
        (b"PAR1PAR1", "8 bytes are too few"),
        (b"PAR1\x01\0\0\0PAR1", "more than the file of 12 bytes"),
        (b"PAR1\0\0\0\0PAR2", "does not end as"),
        (b"PAR1\0\0\0\0PAR1", ""),
    ] {
        fs::write(&path, bytes).unwrap();
        let (code, text) = error(&mut session, &sql).await;
        assert_eq!(code, 1024, "{text}");
        assert!(
            text.contains("x.parquet") && text.contains(expected),
            "{text}"
        );
    }
    // Wherever its description is damaged, it is refused or read, and nothing panics.
    let flights = repository().join("demo/flights.parquet");
    let whole = fs::read(flights).unwrap();
    let length = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    let length = u32::from_le_bytes(length) as usize;
    let seed = 7;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        let first = bytes.len() - 8 - length;
        for _ in 0..=random.below(3) {
            let at = first + random.below(length as u64 + 4) as usize;
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&path, bytes).unwrap();
        if let Err(error) = run(&mut session, &sql).await {
            assert!(!error.message.contains("panic"), "{}", error.message);
            assert!(!error.message.contains("internal"), "{}", error.message);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_without_number_take_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a TEXT, b TEXT)").await;
    let fields = 3 << 20;
    let write = |name: &str, text: String| {
        let path = files.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let header = write("header.csv", format!("{}\n", ",".repeat(fields - 1)));
    let record = write(
        "record.csv",
        format!("a,b\n1,2\n{}\n", ",".repeat(fields - 1)),
    );
    let load = write("load.csv", format!("1,2\nx,y,{}\n", ",".repeat(fields - 3)));
    let keys = |first: usize, count: usize| {
        let keys = (first..first + count).map(|key| format!("\"k{key}\":1"));
        format!("{{{}}}\n", keys.collect::<Vec<_>>().join(","))
    };
    let many_keys = write("many.json", keys(0, 4097));
    // Each of them is narrow enough.
    write("one_1.json", keys(0, 2500));
    let two = write("one_2.json", keys(2500, 2500));
    let both = files.path().join("one_*.json").display().to_string();
    let count = |file: &str| format!("SELECT COUNT(*) FROM '{file}'");
    for (sql, code, told) in [
        (count(&header), 1117, "at most 4096 (line 1 of file"),
        (
            count(&record),
            1262,
            "3145728 fields instead of 2 (line 3 of file",
        ),
        (count(&many_keys), 1117, "at most 4096 (line 1 of file"),
        (count(&both), 1117, "one_2.json"),
    ] {
        let (found, text) = error(&mut session, &sql).await;
        assert_eq!(found, code, "{sql}: {text}");
        assert!(text.contains(told), "{sql}: {text}");
    }
    assert_eq!(rows(&mut session, &count(&two)).await, [["1"]]);
    let load = |local: &str| {
        format!("LOAD DATA {local} INFILE '{load}' INTO TABLE t FIELDS TERMINATED BY ','")
    };
    assert_eq!(error(&mut session, &load("")).await.0, 1262);
    rows(&mut session, &load("LOCAL")).await;
    let warnings = rows(&mut session, "SHOW WARNINGS").await;
    let codes: Vec<&str> = warnings.iter().map(|it| it[1].as_str()).collect();
    assert_eq!(codes, ["1262"]);
    let found = rows(&mut session, "SELECT * FROM t ORDER BY a").await;
    assert_eq!(found, [["1", "2"], ["x", "y"]]);
    drop(session);
    check_nothing_left(&engine, "fields").await;
}

/// A file of zstd that begins with some bytes and goes on with 128 GiB of blank lines, which take
/// 4 MiB.
fn blank_lines(path: &Path, begins: &str) -> String {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x38];
    let mut block = |header: u32, content: &[u8]| {
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(content);
    };
    block((begins.len() as u32) << 3, begins.as_bytes());
    // Each repeats one byte 128 Ki times.
    for _ in 0..1 << 20 {
        block(1 << 1 | (128 << 10) << 3, b"\n");
    }
    block(1, b"");
    fs::write(path, frame).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_without_rows_can_be_cancelled_and_are_in_nobodys_way() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let blank = blank_lines(&files.path().join("blank.csv.zst"), "a,b\n1,2\n");
    let zeros = files.path().join("zeros");
    File::create(&zeros).unwrap().set_len(1 << 40).unwrap();
    let zeros = zeros.display();
    // Columns are looked for in all rows; rows are read; a line is looked for that never begins.
    let count = format!("SELECT COUNT(*) FROM '{blank}'");
    let load = format!("LOAD DATA INFILE '{zeros}' INTO TABLE t LINES STARTING BY '>>'");
    let mut watcher = engine.connect();
    for (infer_rows, sql) in [(0, &count), (1, &count), (1, &load)] {
        let mut running = Vec::new();
        for _ in 0..3 {
            let mut session = engine.connect();
            rows(&mut session, "CREATE TEMPORARY TABLE t (a TEXT)").await;
            let set = format!("SET mayfly_infer_rows = {infer_rows}");
            rows(&mut session, &set).await;
            let cancel = session.cancel_handle();
            let sql = sql.clone();
            let ran = tokio::spawn(async move { run(&mut session, &sql).await });
            running.push((cancel, ran));
        }
        let others = async {
            loop {
                let listed = rows(&mut watcher, "SHOW FULL PROCESSLIST").await;
                let busy = listed.iter().filter(|row| row.last() == Some(sql));
                if busy.count() == running.len() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // Long enough that they are in the middle of their files.
            tokio::time::sleep(Duration::from_millis(50)).await;
            rows(&mut watcher, "SELECT 1 + 1").await
        };
        let found = timeout(PATIENCE, others).await;
        assert_eq!(found.expect("nobody is in the way"), [["2"]], "{sql}");
        for (cancel, ran) in running {
            cancel.cancel();
            let ran = timeout(PATIENCE, ran).await;
            let ran = ran.expect("it ends when it is cancelled").unwrap();
            assert_eq!(ran.expect_err(sql).code, 1317, "{sql}");
        }
    }
    drop(watcher);
    check_nothing_left(&engine, "cancelled readers").await;
}
