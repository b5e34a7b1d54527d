//! The table and the statement of seed4.
//!
//! Owns: both as the page has them, rows made for the purpose, and the right answer.
//!
//! The page does not show its rows. Its table would give the number 102,048 next; here the first
//! is 100,001, two rows have the same time, and every row has an address of its own.

/// One line, as mariadb-slap reads it.
pub(super) const STATEMENT: &str = "select * from (select user_id, created, \
    (select user_email from login2 b where b.user_id=a.user_id) as mail from login2 a \
    where a.user_id IN (100005, 100002, 100004, 100003)) as a order by created";
pub(super) const DROP: &str = "DROP TABLE IF EXISTS login2";

const FIRST_ID: u64 = 100_001;
const ROWS: u64 = 2_047;
/// The users that the statement asks for.
const ASKED: std::ops::RangeInclusive<u64> = 100_002..=100_005;

/// The statements that make the table.
pub(super) fn table() -> String {
    let mut statements = format!(
        "{DROP};\n\
         CREATE TABLE login2 (user_id int(10) unsigned NOT NULL AUTO_INCREMENT, \
         user_name varchar(50) DEFAULT NULL, user_email varchar(2000) CHARACTER SET utf8 \
         DEFAULT NULL, created datetime DEFAULT NULL, PRIMARY KEY (user_id)) \
         ENGINE=InnoDB AUTO_INCREMENT={FIRST_ID} DEFAULT CHARSET=latin1;\n\
         INSERT INTO login2 (user_name, user_email, created) VALUES "
    );
    for id in FIRST_ID..FIRST_ID + ROWS {
        let (created, mail) = (created(id), mail(id));
        let comma = if id == FIRST_ID { "" } else { ", " };
        statements.push_str(&format!("{comma}('user {id}', '{mail}', '{created}')"));
    }
    statements
}

/// The rows of the statement, by number.
pub(super) fn answer() -> Vec<String> {
    ASKED
        .map(|id| format!("{id}\t{}\t{}", created(id), mail(id)))
        .collect()
}

fn mail(id: u64) -> String {
    format!("user{id}@example.com")
}

/// Two rows a second.
fn created(id: u64) -> String {
    let second = id / 2 - FIRST_ID / 2;
    format!("2011-01-11 17:{:02}:{:02}", second / 60, second % 60)
}
