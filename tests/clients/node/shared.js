"use strict";
// What the checks of mappers have in common: where the server is, and how checks are run.

const assert = require("node:assert/strict");

const { CHECK_HOST, CHECK_PORT, CHECK_USER, CHECK_PASSWORD, CHECK_DATABASE, CHECK_SERVER } =
  process.env;

exports.address = {
  host: CHECK_HOST,
  port: Number(CHECK_PORT),
  user: CHECK_USER,
  password: CHECK_PASSWORD,
  database: CHECK_DATABASE,
};
exports.onMariadb = CHECK_SERVER === "mariadb";

// The names that a table has after a transaction that added `lost` and was rolled back: shared
// tables of Mayfly keep their rows, as those of MyISAM do.
exports.afterRollback = (names, lost) => (exports.onMariadb ? names : [...names, lost].sort());

// So many books, each with the fields of `more`.
exports.volumes = (count, more = {}) =>
  [...Array(count).keys()].map((n) => ({
    title: `Volume ${n}`,
    price: n,
    kind: n % 2 ? "novel" : "atlas",
    ...more,
  }));

// Fails unless `act` is refused with this number.
exports.refused = async (number, act) => {
  let found = "nothing";
  try {
    await act();
  } catch (error) {
    const own = error.parent ?? error.driverError ?? error;
    found = own.errno ?? error;
  }
  assert.equal(found, number);
};

// Runs checks, prints a line for each, and ends the program: with 1 if one has failed.
exports.run = async (checks, close) => {
  let failed = false;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`${name}\tok`);
    } catch (error) {
      failed = true;
      const line = /_checks\.js:(\d+)/.exec(error.stack ?? "")?.[1] ?? "?";
      const statement = error.sql ?? error.query ?? "";
      const text = `${error.message ?? error} ${statement}`.replace(/\s+/g, " ");
      console.log(`${name}\tFAIL\tline ${line}: ${text.slice(0, 600)}`);
    }
  }
  await close().catch(() => {});
  process.exit(failed ? 1 : 0);
};
