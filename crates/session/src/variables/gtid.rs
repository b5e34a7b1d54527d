//! Sets of identifiers of transactions, as `gtid_purged` takes them from dumps.

/// The longest set that is kept: nobody reads it, and each SET may add to it.
const BYTES_MAX: usize = 64 << 10;

/// A set of identifiers of transactions, `uuid:1-5,uuid:7`, as it is kept; behind a `+` it is added
/// to the one before. `None` for what is none, or would be longer than is kept.
pub(super) fn set(text: &str, current: &str) -> Option<String> {
    let (mut set, added) = match text.trim_start().strip_prefix('+') {
        Some(rest) => (current.to_owned(), rest),
        None => (String::new(), text),
    };
    for one in added.split(',') {
        let one: String = one.split_whitespace().collect();
        if one.is_empty() {
            continue;
        }
        if !is_of_one_server(&one) {
            return None;
        }
        if !set.is_empty() {
            set.push(',');
        }
        set.push_str(&one);
        if set.len() > BYTES_MAX {
            return None;
        }
    }
    Some(set)
}

/// `uuid:interval`, with any number of tags and intervals.
fn is_of_one_server(text: &str) -> bool {
    let mut parts = text.split(':');
    let is_server = parts.next().is_some_and(is_uuid);
    let mut ends_with_interval = false;
    for part in parts {
        ends_with_interval = is_interval(part);
        if !ends_with_interval && !is_tag(part) {
            return false;
        }
    }
    is_server && ends_with_interval
}

fn is_uuid(text: &str) -> bool {
    let is_group = |(part, digits): (&str, usize)| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    text.split('-').count() == 5 && text.split('-').zip([8, 4, 4, 4, 12]).all(is_group)
}

/// One number of a transaction, or the first and the last of several.
fn is_interval(text: &str) -> bool {
    let is_number = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits && text.parse().is_ok_and(|number: i64| number > 0)
    };
    match text.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(text),
    }
}

/// What tells the transactions of one server apart: a word of 32 characters at most.
fn is_tag(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_of_word = |byte: u8| is_letter(byte) || byte.is_ascii_digit();
    text.len() <= 32 && text.bytes().next().is_some_and(is_letter) && text.bytes().all(is_of_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";

    #[test]
    fn sets_have_one_form() {
        for (text, current, expected) in [
            (format!("{ONE}:1-5"), "x", Some(format!("{ONE}:1-5"))),
            (
                format!(" {ONE}:1-5:7 ,\n{ONE}:9,"),
                "",
                Some(format!("{ONE}:1-5:7,{ONE}:9")),
            ),
            (format!("+{ONE}:7"), "x", Some(format!("x,{ONE}:7"))),
            (format!("+{ONE}:7"), "", Some(format!("{ONE}:7"))),
            (format!("{ONE}:a_tag:7"), "", Some(format!("{ONE}:a_tag:7"))),
            ("+".to_owned(), "x", Some("x".to_owned())),
            (String::new(), "x", Some(String::new())),
            ("nonsense".to_owned(), "", None),
            ("a:1".to_owned(), "", None),
            (ONE.to_owned(), "", None),
            (format!("{ONE}:"), "", None),
            (format!("{ONE}:0"), "", None),
            (format!("{ONE}:1-"), "", None),
            (format!("{ONE}:1-2-3"), "", None),
            (format!("{ONE}:+1"), "", None),
            (format!("{ONE}:a_tag"), "", None),
            (format!("{ONE}:9223372036854775808"), "", None),
            (format!("{ONE}0:1"), "", None),
            (format!("{}:1", ONE.replace('-', "")), "", None),
        ] {
            assert_eq!(set(&text, current), expected, "{text}");
        }
    }

    #[test]
    fn no_set_grows_for_ever() {
        let more = format!("+{ONE}:1");
        let mut kept = String::new();
        let mut times = 0;
        while let Some(longer) = set(&more, &kept) {
            kept = longer;
            times += 1;
        }
        assert_eq!(times, BYTES_MAX / more.len());
        assert!(kept.len() <= BYTES_MAX);
    }
}
