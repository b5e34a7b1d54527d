//! Drivers of other languages, and tools over them, against the server.
//!
//! `tests/clients/run install` brings them; those that are not there are left out, with the reason.

use std::process::Command;

use mayfly_testkit::repository;

/// Runs the checks of one client against a server of its own.
fn check(client: &str) {
    let script = repository().join("tests/clients/run");
    let mut command = Command::new("bash");
    command
        .arg(script)
        .arg(client)
        .env("MAYFLY", env!("CARGO_BIN_EXE_mayfly"));
    // Its table goes past what the harness hides of tests that pass.
    let status = command.status().expect("bash is everywhere");
    assert!(status.success(), "{client}: {status}");
}

/// A test for each client that `tests/clients/run` knows: they run side by side.
macro_rules! clients {
    ($($name:ident: $client:literal;)*) => {
        const CLIENTS: &[&str] = &[$($client),*];

        $(#[test]
        fn $name() {
            check($client);
        })*
    };
}

clients! {
    activerecord: "activerecord";
    adminer: "adminer";
    connector: "connector";
    connector_pure: "connector-pure";
    dbeaver: "dbeaver";
    django: "django";
    doctrine: "doctrine";
    drizzle: "drizzle";
    eloquent: "eloquent";
    go: "go";
    gorm: "gorm";
    hibernate: "hibernate";
    java: "java";
    knex: "knex";
    mariadb_programs: "mariadb-programs";
    mysql_programs: "mysql-programs";
    mysqld_exporter: "mysqld-exporter";
    node: "node";
    peewee: "peewee";
    phpmyadmin: "phpmyadmin";
    pony: "pony";
    prisma: "prisma";
    pymysql: "pymysql";
    rust: "rust";
    sequelize: "sequelize";
    shell: "shell";
    spring: "spring";
    sqlalchemy: "sqlalchemy";
    typeorm: "typeorm";
    wordpress: "wordpress";
    workbench: "workbench";
}

#[test]
fn every_client_has_a_test() {
    let script = include_str!("../../../../../tests/clients/run");
    let list = script.lines().find_map(|line| line.strip_prefix("all=("));
    let mut listed: Vec<&str> = { list.and_then(|list| list.strip_suffix(')')) }
        .expect("the script lists its clients")
        .split(' ')
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, CLIENTS);
}
