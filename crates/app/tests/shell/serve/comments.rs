//! Texts that are only a comment, as dumps and clients send them.

use super::raw::Raw;
use super::running::Server;

const ALONE: [&str; 7] = [
    "-- x",
    "# x",
    "/* x */",
    "/*!999999 for later versions */",
    "/*M!999999\\- enable the sandbox mode */",
    "/*! */",
    "/* x */;",
];

/// COM_STMT_PREPARE.
const PREPARE: u8 = 0x16;
/// The number of an error, behind the mark of an ERR packet.
const EMPTY_QUERY: [u8; 2] = 1065_u16.to_le_bytes();

#[test]
fn a_comment_alone_is_answered_and_an_empty_text_refused() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, 0);
    for text in ALONE {
        assert_eq!(client.query(text).end[0], 0, "{text}");
        client.command(PREPARE, text.as_bytes());
        let answer = client.read();
        // OK, the number of the statement, no columns, no parameters.
        assert_eq!((answer[0], &answer[5..9]), (0, &[0; 4][..]), "{text}");
    }
    for text in ["", " ", ";"] {
        assert_eq!(client.query(text).end[1..3], EMPTY_QUERY, "{text:?}");
        client.command(PREPARE, text.as_bytes());
        assert_eq!(client.read()[1..3], EMPTY_QUERY, "{text:?}");
    }
    assert_eq!(client.query("SELECT 1").rows.len(), 1);
}
