//! How much memory a text takes when it is read.

/// What a word, a number or a literal takes as a token and in the syntax tree. Measured with lists
/// of a million: the tree has 330 bytes for each expression, whatever it is.
const WORD_BYTES: u64 = 400;
/// What any other token takes, each space too.
const TOKEN_BYTES: u64 = 96;

/// How often each byte of a text is there: in the packet, in the text, in the token, twice in the
/// tree, in the select list that labels are taken from, and in the value that a literal becomes.
/// Measured with literals of 20 MB in queries and in changes.
const COPIES: u64 = 7;

/// About as many bytes as the tokens and the tree of a text take: a text of `1,1,1` takes 250 times
/// its length, a long literal a few times.
pub fn text_bytes(text: &str) -> u64 {
    let (mut words, mut others) = (0, 0);
    let mut is_in_word = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_of_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        match byte {
            b'\'' | b'"' | b'`' => {
                words += 1;
                skip_quoted(&mut bytes, byte);
            }
            _ if is_of_word => words += u64::from(!is_in_word),
            _ => others += 1,
        }
        is_in_word = is_of_word;
    }
    words * WORD_BYTES + others * TOKEN_BYTES + COPIES * text.len() as u64
}

/// Goes behind the next `quote` that no backslash stands before.
fn skip_quoted(bytes: &mut impl Iterator<Item = u8>, quote: u8) {
    while let Some(byte) = bytes.next() {
        if byte == quote {
            return;
        }
        if byte == b'\\' && quote != b'`' {
            bytes.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_count_once_and_by_their_bytes() {
        let check = |text: &str, words: u64, others: u64| {
            let tokens = words * WORD_BYTES + others * TOKEN_BYTES;
            let expect = tokens + COPIES * text.len() as u64;
            assert_eq!(text_bytes(text), expect, "{text}");
        };
        check("", 0, 0);
        check("SELECT 12, a_b", 3, 3);
        check("'a, b', \"c, \\\" d\"", 2, 2);
        check("`a b` 'it\\'s'", 2, 1);
        check("'open, ", 1, 0);
        check("1,1,1", 3, 2);
    }
}
