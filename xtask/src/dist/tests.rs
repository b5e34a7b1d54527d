use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{dependencies_of, strip};
use super::release::Release;
use super::{is_missing, pack};
use crate::repository::{output_of, root, text_of};

/// A directory that goes with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("mayfly-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the tools are there that packages are made with.
fn has_tools() -> bool {
    ["dpkg-deb", "objcopy", "tar"].iter().all(|tool| {
        let asked = output_of(Command::new(tool).arg("--version"));
        let is_there = !asked.as_ref().is_err_and(is_missing);
        if !is_there {
            println!("skipped: {tool} is not installed");
        }
        is_there
    })
}

fn release() -> Release {
    Release {
        version: "1.2.0-rc.1".to_owned(),
        description: "a stand-in".to_owned(),
        homepage: "https://example.org/mayfly".to_owned(),
        epoch: "1000000000".to_owned(),
    }
}

/// Packs a small program of this system.
fn packed(out: &Path) -> (PathBuf, PathBuf) {
    fs::create_dir_all(out).unwrap();
    let (program, symbols) = (out.join("mayfly"), out.join("mayfly.debug"));
    strip(Path::new("/bin/true"), &program, &symbols).unwrap();
    let libraries = out.join("LIBRARIES.md");
    fs::write(&libraries, "none\n").unwrap();
    let packed = pack(&root().unwrap(), &release(), &program, &libraries, out).unwrap();
    let [archive, package] = <[PathBuf; 2]>::try_from(packed).unwrap();
    (archive, package)
}

/// Modes, owners and names of an archive, as `tar` and `dpkg-deb` list them.
fn members(listing: &mut Command) -> Vec<String> {
    let listing = text_of(listing).unwrap();
    let lines = listing.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {} {}", words[0], words[1], words[5])
    });
    lines.collect()
}

#[test]
fn both_packages_have_what_they_are_to_have() {
    if !has_tools() {
        return;
    }
    let scratch = Scratch::new("dist");
    let (archive, package) = packed(&scratch.0.join("one"));

    let folder = format!("mayfly-1.2.0-rc.1-{}-linux", std::env::consts::ARCH);
    let expected = [
        ("drwxr-xr-x", ""),
        ("-rw-r--r--", "CHANGELOG.md"),
        ("-rw-r--r--", "COMPAT.md"),
        ("-rw-r--r--", "LIBRARIES.md"),
        ("-rw-r--r--", "LICENSE"),
        ("-rw-r--r--", "README.md"),
        ("-rwxr-xr-x", "mayfly"),
        ("-rw-r--r--", "mayfly.default"),
        ("-rw-r--r--", "mayfly.service"),
        ("-rw-r--r--", "mayfly.toml"),
    ];
    let expected = expected.map(|(mode, name)| format!("{mode} 0/0 {folder}/{name}"));
    let found = members(Command::new("tar").arg("-tvzf").arg(&archive));
    assert_eq!(found, expected);

    let expected = [
        "drwxr-xr-x root/root ./",
        "drwxr-xr-x root/root ./etc/",
        "drwxr-xr-x root/root ./etc/default/",
        "-rw-r--r-- root/root ./etc/default/mayfly",
        "drwxr-xr-x root/root ./etc/mayfly/",
        "-rw-r--r-- root/root ./etc/mayfly/mayfly.toml",
        "drwxr-xr-x root/root ./usr/",
        "drwxr-xr-x root/root ./usr/bin/",
        "-rwxr-xr-x root/root ./usr/bin/mayfly",
        "drwxr-xr-x root/root ./usr/lib/",
        "drwxr-xr-x root/root ./usr/lib/systemd/",
        "drwxr-xr-x root/root ./usr/lib/systemd/system/",
        "-rw-r--r-- root/root ./usr/lib/systemd/system/mayfly.service",
        "drwxr-xr-x root/root ./usr/share/",
        "drwxr-xr-x root/root ./usr/share/doc/",
        "drwxr-xr-x root/root ./usr/share/doc/mayfly/",
        "-rw-r--r-- root/root ./usr/share/doc/mayfly/CHANGELOG.md",
        "-rw-r--r-- root/root ./usr/share/doc/mayfly/COMPAT.md",
        "-rw-r--r-- root/root ./usr/share/doc/mayfly/LIBRARIES.md",
        "-rw-r--r-- root/root ./usr/share/doc/mayfly/README.md",
        "-rw-r--r-- root/root ./usr/share/doc/mayfly/copyright",
    ];
    let found = members(Command::new("dpkg-deb").arg("-c").arg(&package));
    assert_eq!(found, expected);

    let asked = |option: &str, name: &str| {
        let mut command = Command::new("dpkg-deb");
        text_of(command.arg(option).arg(&package).arg(name)).unwrap()
    };
    let field = |name: &str| asked("-f", name).trim().to_owned();
    assert_eq!(field("Package"), "mayfly");
    assert_eq!(field("Version"), "1.2.0~rc.1");
    assert_eq!(
        field("Maintainer"),
        "The Mayfly authors <mayfly@example.org>"
    );
    assert!(
        field("Depends").starts_with("libc6 (>= 2."),
        "{}",
        field("Depends")
    );
    let told = |name: &str| asked("-I", name);
    assert_eq!(
        told("conffiles"),
        "/etc/default/mayfly\n/etc/mayfly/mayfly.toml\n"
    );
    assert!(told("md5sums").contains("  usr/bin/mayfly\n"));
    for script in ["postinst", "prerm", "postrm"] {
        assert!(told(script).starts_with("#!/bin/sh\n"), "{script}");
    }
}

#[test]
fn the_same_files_make_the_same_packages() {
    if !has_tools() {
        return;
    }
    let scratch = Scratch::new("dist-twice");
    let (archive, package) = packed(&scratch.0.join("one"));
    let (other_archive, other_package) = packed(&scratch.0.join("other"));
    assert!(fs::read(archive).unwrap() == fs::read(other_archive).unwrap());
    assert!(fs::read(package).unwrap() == fs::read(other_package).unwrap());
}

#[test]
fn dependencies_are_packages_with_their_least_versions() {
    let headers = "\
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libm.so.6
  NEEDED               libc.so.6
  SONAME               ignored

Version References:
  required from libgcc_s.so.1:
    0x0b792655 0x00 09 GCC_3.3
  required from libc.so.6:
    0x09691972 0x00 05 GLIBC_2.3.2
    0x069691b4 0x00 04 GLIBC_2.34
    0x09691a75 0x00 03 GLIBC_2.2.5
    0xfd0e42a4 0x00 02 GLIBC_ABI_DT_RELR
";
    assert_eq!(
        dependencies_of(headers).unwrap(),
        "libc6 (>= 2.34), libgcc-s1"
    );
    let foreign = "  NEEDED               libssl.so.3\n";
    assert!(dependencies_of(foreign).is_err());
}
