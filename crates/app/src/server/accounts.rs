//! The accounts of a running server, which FLUSH PRIVILEGES and SIGHUP read again.
//!
//! **Owns** the users at this moment. **Never** lets a file that is wrong take their place. What
//! the file says is for `users`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Result, bail};
use mayfly_session::Accounts;

use super::users::Users;

/// Who may connect at this moment, and where that is written.
#[derive(Debug)]
pub struct ServerAccounts {
    // fixed
    /// `None` without a users file.
    path: Option<PathBuf>,
    /// An address of the server that other machines reach.
    outside: Option<IpAddr>,
    // state
    users: RwLock<Arc<Users>>,
}

impl ServerAccounts {
    /// Reads the users of a server that is bound to such addresses.
    ///
    /// # Errors
    /// When the file cannot be read, or what it says does not do for a server that other machines
    /// reach.
    pub fn read(path: Option<&Path>, outside: Option<IpAddr>) -> Result<ServerAccounts> {
        Ok(ServerAccounts {
            path: path.map(Path::to_owned),
            outside,
            users: RwLock::new(Arc::new(read(path, outside)?)),
        })
    }

    /// The users at this moment.
    pub fn now(&self) -> Arc<Users> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&users)
    }
}

impl Accounts for ServerAccounts {
    fn read_again(&self) -> Result<(), String> {
        if self.path.is_none() {
            return Ok(());
        }
        // Held while the file is read: of two readers the later one has the newer file.
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let read = read(self.path.as_deref(), self.outside);
        *users = Arc::new(read.map_err(|error| format!("{error:#}"))?);
        Ok(())
    }
}

fn read(path: Option<&Path>, outside: Option<IpAddr>) -> Result<Users> {
    let users = match path {
        Some(path) => Users::read(path)?,
        None => Users::none(),
    };
    let Some(outside) = outside else {
        return Ok(users);
    };
    let file = path.map(|path| format!("in '{}' ", path.display()));
    let file = file.unwrap_or_default();
    if !users.are_any() {
        bail!(
            "--bind: other machines can reach {outside}, so there must be users {file}with \
             passwords: 'mayfly user add NAME --users FILE' makes them, --users FILE names them"
        );
    }
    if let Some(user) = users.without_password().next() {
        bail!("--bind: other machines can reach {outside}, and '{user}' {file}has no password");
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::users::add;
    use super::*;
    use mayfly_wire::Method;

    #[test]
    fn users_that_are_wrong_keep_those_before_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users.toml");
        let outside = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        add(&path, "anna", b"secret", Method::Native).unwrap();
        let users = ServerAccounts::read(Some(&path), outside).unwrap();
        add(&path, "bert", b"secret", Method::Native).unwrap();
        users.read_again().unwrap();
        let before = users.now();
        let name = path.display().to_string();
        // Nobody may come in from another machine without a password, later on neither.
        add(&path, "carla", b"", Method::Native).unwrap();
        let refused = users.read_again().unwrap_err();
        assert!(
            refused.contains("'carla'") && refused.contains(&name),
            "{refused}"
        );
        std::fs::write(&path, "nonsense").unwrap();
        let refused = users.read_again().unwrap_err();
        assert!(refused.contains(&name), "{refused}");
        std::fs::remove_file(&path).unwrap();
        let refused = users.read_again().unwrap_err();
        assert!(refused.contains(&name), "{refused}");
        assert!(Arc::ptr_eq(&before, &users.now()));
    }
}
