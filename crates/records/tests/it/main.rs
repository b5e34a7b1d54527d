//! Fuzz targets of the readers of text files, against simple models.

mod csv;
mod delimited;
mod json;
mod limits;

use mayfly_testkit::FuzzTarget;

#[test]
fn csv_is_read_as_its_model_says() {
    FuzzTarget::new("csv", &csv::check)
        .generate(&csv::plausible)
        .tokens(&[
            b"\"",
            b"\"\"",
            b",",
            b"\n",
            b"\r\n",
            b"\r",
            b"\xEF\xBB\xBF",
            b"\xC3\xA9",
        ])
        .inputs(20_000)
        .check();
}

#[test]
fn json_comes_back_as_it_was_written() {
    FuzzTarget::new("json", &json::check)
        .generate(&json::plausible)
        .tokens(&[
            b"{", b"}", b"[", b"]", b"\"", b":", b",", b"\\u00e4", b"null", b"true", b"1e5",
        ])
        .inputs(20_000)
        .check();
}

#[test]
fn load_data_does_not_depend_on_its_pieces() {
    FuzzTarget::new("delimited", &delimited::check)
        .generate(&delimited::plausible)
        .tokens(&[b"\"", b"\\", b"\\N", b"NULL", b",", b"\n", b">>", b"::"])
        .inputs(20_000)
        .check();
}
