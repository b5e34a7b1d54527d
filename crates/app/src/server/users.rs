//! Who may come in: the users file, and the user whose process the server is.
//!
//! **Owns** the file: a TOML table for each user, with its name and what its password is compared
//! with; passwords themselves are never kept.
//!
//! ```toml
//! [[user]]
//! name = "anna"
//! secret = "2441243030352470..."    # hexadecimal: its salt may be any bytes
//! ```
//!
//! The operating system's user whose process the server is needs no password over the Unix socket,
//! which says who is at its other end: as `root` or under its own name, and under any without a
//! users file. With one, a password that it gives must be right all the same. Without a users file
//! nobody else comes in, and that user also over TCP from the same machine, where the system's
//! table of sockets says who it is.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mayfly_wire::{Account, Method, Peer, Secret};
use serde::{Deserialize, Serialize};

/// Only its owner reads a users file.
const FILE_MODE: u32 = 0o600;
/// `overflowuid`: stands for each user that a container does not know.
const UNKNOWN_USER: u32 = 65_534;
/// The longest password that can be checked by `caching_sha2_password`.
const PASSWORD_BYTES_MAX: usize = 256;
/// The longest name of a user, as MariaDB has it.
const NAME_CHARACTERS_MAX: usize = 80;
/// How often the system's table of sockets is read before a connection is nobody's.
const READINGS: usize = 4;
/// The state of a connection that is open, in the system's table of sockets.
const ESTABLISHED: &str = "01";

/// The users of a server.
#[derive(Debug)]
pub struct Users {
    /// `None` without a file.
    known: Option<Vec<(String, Secret)>>,
    /// The operating system's user whose process the server is.
    own_id: Option<u32>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "user")]
    users: Vec<User>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct User {
    name: String,
    secret: String,
}

impl Users {
    /// Nobody but the user whose process the server is.
    pub fn none() -> Users {
        Users {
            known: None,
            own_id: own_user_id(),
        }
    }

    /// Reads a users file.
    ///
    /// # Errors
    /// When it cannot be read, others than its owner can, or it is not what it should be.
    pub fn read(path: &Path) -> Result<Users> {
        let mode = fs::metadata(path)
            .with_context(|| format!("reading the users of '{}'", path.display()))?
            .permissions()
            .mode();
        if mode & others_of(path) != 0 {
            bail!(
                "'{0}' can be read by others: chmod 600 '{0}'",
                path.display()
            );
        }
        let mut known = Vec::new();
        for user in File::read(path)?.users {
            let secret = bytes_of(&user.secret).and_then(|bytes| Secret::parse(&bytes));
            let secret = secret.with_context(|| {
                format!("the secret of '{}' in '{}'", user.name, path.display())
            })?;
            known.push((user.name, secret));
        }
        Ok(Users {
            known: Some(known),
            own_id: own_user_id(),
        })
    }

    /// Whether a client is the user whose process the server is, over a Unix socket.
    pub fn is_own(&self, peer: &Peer) -> bool {
        matches!(peer, Peer::Unix { user_id } if self.own_id == Some(*user_id))
    }

    /// Whether somebody can come in from another machine.
    pub fn are_any(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    /// The users without a password.
    pub fn without_password(&self) -> impl Iterator<Item = &str> {
        let known = self.known.iter().flatten();
        let empty = known.filter(|(_, secret)| *secret == Secret::Empty);
        empty.map(|(name, _)| name.as_str())
    }

    /// How a user proves who it is, to a server that listens there.
    pub fn account(&self, name: &str, peer: &Peer, listening: &[SocketAddr]) -> Option<Account> {
        let own = self.own_id;
        let mut known = self.known.iter().flatten();
        let secret = known.find(|(known, _)| known == name);
        let secret = secret.map(|(_, secret)| secret.clone());
        match (secret, peer) {
            // Without a users file all names are those of one user.
            (None, Peer::Unix { .. }) if self.known.is_none() => Some(Account {
                secret: Secret::Locked,
                socket_user_id: own,
            }),
            // With one, two are, beside those of the file.
            (secret, Peer::Unix { user_id })
                if own == Some(*user_id) && is_name_of(name, *user_id) =>
            {
                Some(Account {
                    // Only the empty password is right where there is none.
                    secret: secret.unwrap_or(Secret::Empty),
                    socket_user_id: own,
                })
            }
            (Some(secret), _) => Some(Account {
                secret,
                socket_user_id: None,
            }),
            (None, Peer::Tcp(address)) if self.known.is_none() && own.is_some() => {
                (user_of(*address, listening) == own).then_some(Account {
                    secret: Secret::Empty,
                    socket_user_id: None,
                })
            }
            _ => None,
        }
    }
}

/// The bits of a file's mode that would let others read it.
///
/// systemd lays credentials out for one service alone, in a directory that nobody else may enter,
/// and lets its user read them by an access list. The bits of the group then show the list's mask.
fn others_of(path: &Path) -> u32 {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    // All paths start with an empty one.
    let credentials = credentials.filter(|directory| directory.is_absolute());
    match credentials.is_some_and(|directory| path.starts_with(directory)) {
        true => 0o007,
        false => 0o077,
    }
}

/// Whether a user is called as a user of the operating system, or as the one that MySQL has from
/// its beginning.
fn is_name_of(name: &str, user_id: u32) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_user = |line: &str| {
        let mut words = line.split(':');
        words.next() == Some(name) && words.nth(1) == Some(user_id.to_string().as_str())
    };
    name == "root" || users.lines().any(is_user)
}

/// Adds a user to a users file, which is made if there is none, or gives it another password.
///
/// # Errors
/// When the password is too long, the file cannot be read or written, or the system gives no random
/// numbers.
pub fn add(path: &Path, name: &str, password: &[u8], method: Method) -> Result<()> {
    if name.is_empty() || name.chars().any(char::is_control) {
        bail!("the name of a user has letters, and none that control a terminal");
    }
    if name.chars().count() > NAME_CHARACTERS_MAX {
        bail!("the name of a user has at most {NAME_CHARACTERS_MAX} characters");
    }
    if password.len() > PASSWORD_BYTES_MAX {
        bail!("a password has at most {PASSWORD_BYTES_MAX} bytes");
    }
    let mut file = match fs::exists(path)? {
        true => File::read(path)?,
        false => File::default(),
    };
    let secret = Secret::of_password(password, method)?;
    let secret = secret.to_bytes();
    let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let user = User {
        name: name.to_owned(),
        secret,
    };
    match file.users.iter_mut().find(|user| user.name == name) {
        Some(known) => *known = user,
        None => file.users.push(user),
    }
    let text = toml::to_string(&file)?;
    // Whoever reads the file at this moment sees the old one or the new one.
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    if fs::exists(&beside)? {
        // What an addition left that did not end; it may be readable for others.
        fs::remove_file(&beside)?;
    }
    let mut new = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&beside)
        .with_context(|| format!("writing the users of '{}'", path.display()))?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, path)?;
    Ok(())
}

impl File {
    fn read(path: &Path) -> Result<File> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("reading the users of '{}'", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the users of '{}'", path.display()))
    }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_even = digits.len().is_multiple_of(2);
    is_even.then(|| pairs.map(byte).collect())?
}

/// The operating system's user whose process this is. Not the number for all users that a
/// container does not know.
fn own_user_id() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let effective = users.split_ascii_whitespace().nth(1)?.parse().ok()?;
    (effective != UNKNOWN_USER).then_some(effective)
}

/// The operating system's user at the other end of a connection from this machine, by the table of
/// sockets; `None` for one from elsewhere.
///
/// Several sockets may have the address of the peer, of several users: only the one whose other end
/// is ours is meant, and there must be one. The kernel hands the table out in pieces, between which
/// sockets come and go, so that one may be missing or there twice: it is read again then.
fn user_of(peer: SocketAddr, listening: &[SocketAddr]) -> Option<u32> {
    (0..READINGS).find_map(|_| user_by_table(peer, listening))
}

fn user_by_table(peer: SocketAddr, listening: &[SocketAddr]) -> Option<u32> {
    let canonical = |address: &SocketAddr| (address.ip().to_canonical(), address.port());
    let peer = canonical(&peer);
    let ours: Vec<(IpAddr, u16)> = listening.iter().map(canonical).collect();
    if !peer.0.is_loopback() || ours.iter().any(|(ip, _)| !ip.is_loopback()) {
        return None;
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let lines = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1));
    let mut users = lines.filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, remote) = (address(words.get(1)?)?, address(words.get(2)?)?);
        let (state, user, inode) = (words.get(3)?, words.get(7)?, words.get(9)?);
        // A socket without an inode is nobody's any more.
        let is_open = *state == ESTABLISHED && *inode != "0";
        (local == peer && ours.contains(&remote) && is_open).then(|| user.parse().ok())?
    });
    let user = users.next();
    match users.next() {
        None => user,
        Some(_) => None,
    }
}

/// Reads `0100007F:0CEB`: each 32 bits of the address are in the order of the machine.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let bytes = bytes_of(address)?;
    let words: Option<Vec<[u8; 4]>> = bytes
        .chunks(4)
        .map(|word| Some(u32::from_be_bytes(word.try_into().ok()?).to_ne_bytes()))
        .collect();
    let bytes = words?.concat();
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    Some((address, port))
}
