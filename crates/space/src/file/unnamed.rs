//! Opening a file that has no name.
//!
//! **Owns** nothing. Where the file system cannot make a file without a name (`O_TMPFILE`), one is
//! made under a name that nobody can guess or prepare, and loses it at once.

#[cfg(not(miri))]
pub(super) use kernel::open;

#[cfg(miri)]
pub(super) fn open(
    _dir: &std::path::Path,
    _mode: crate::IoMode,
    faults: Option<std::sync::Arc<dyn crate::Faults>>,
) -> std::io::Result<super::handle::Handle> {
    Ok(super::handle::Handle {
        file: std::fs::File::open("/dev/null")?,
        direct: false,
        faults,
        heap: std::sync::Mutex::default(),
    })
}

#[cfg(not(miri))]
mod kernel {
    use std::fmt::Write;
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use crate::file::{Handle, SECTOR};
    use crate::{Faults, IoMode};

    const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);
    const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
    /// A name of 128 random bits is in use once in the age of the universe.
    const NAMES_TRIED: u32 = 4;

    /// Opens a file that has no name.
    pub(in crate::file) fn open(
        dir: &Path,
        mode: IoMode,
        faults: Option<Arc<dyn Faults>>,
    ) -> io::Result<Handle> {
        const TMPFS: i64 = 0x0102_1994;
        let in_memory = rustix::fs::statfs(dir).is_ok_and(|stat| stat.f_type == TMPFS);
        if mode == IoMode::Direct && !in_memory {
            let direct = FLAGS | OFlags::TMPFILE | OFlags::DIRECT;
            if let Ok(file) = rustix::fs::open(dir, direct, OWNER_ONLY) {
                let file = File::from(file);
                if accepts_direct(&file) {
                    return Ok(Handle {
                        file,
                        direct: true,
                        faults,
                    });
                }
            }
        }
        let file = match rustix::fs::open(dir, FLAGS | OFlags::TMPFILE, OWNER_ONLY) {
            Ok(file) => File::from(file),
            Err(Errno::MFILE | Errno::NFILE) => return Err(Errno::MFILE.into()),
            Err(_) => open_and_unlink(dir)?,
        };
        Ok(Handle {
            file,
            direct: false,
            faults,
        })
    }

    /// Makes a file that did not exist, follows no link to it, and takes its name away.
    fn open_and_unlink(dir: &Path) -> io::Result<File> {
        let dir = rustix::fs::open(
            dir,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let new = FLAGS | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        for _ in 0..NAMES_TRIED {
            let name = random_name()?;
            let file = match rustix::fs::openat(&dir, &name, new, OWNER_ONLY) {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            rustix::fs::unlinkat(&dir, &name, AtFlags::empty())?;
            // Whoever may write the directory could have renamed it, or linked to it, meanwhile.
            if file.metadata()?.nlink() != 0 {
                return Err(io::Error::other("somebody else uses the temp file's name"));
            }
            return Ok(file);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn random_name() -> io::Result<String> {
        let mut bits = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bits)?;
        let mut name = "mayfly-".to_owned();
        for byte in bits {
            write!(name, "{byte:02x}").expect("a string takes what is written");
        }
        Ok(name)
    }

    /// Whether an aligned transfer works; some file systems accept the flag only.
    fn accepts_direct(file: &File) -> bool {
        let mut scratch = crate::io::Scratch::new(SECTOR as usize);
        file.write_all_at(scratch.bytes_mut(), 0).is_ok()
            && file.read_exact_at(scratch.bytes_mut(), 0).is_ok()
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::PermissionsExt;

        use super::*;

        #[test]
        fn a_file_that_had_a_name_is_its_owners_alone() {
            let dir = std::env::temp_dir().join(format!("unnamed-{}", std::process::id()));
            std::fs::create_dir(&dir).unwrap();
            let file = open_and_unlink(&dir).unwrap();
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
            assert_eq!(metadata.nlink(), 0);
            file.write_all_at(b"it can be used", 4096).unwrap();
            std::fs::remove_dir(&dir).unwrap();
        }

        #[test]
        fn no_name_comes_twice_or_tells_the_process() {
            let names: std::collections::HashSet<_> =
                (0..100).map(|_| random_name().unwrap()).collect();
            assert_eq!(names.len(), 100);
            let id = format!("{}-{}", std::process::id(), 0);
            assert!(
                names
                    .iter()
                    .all(|name| name.len() == 39 && !name.contains(&id))
            );
        }
    }
}
