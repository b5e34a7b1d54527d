//! Functions that wait: SLEEP and GET_LOCK, and the others over the names of locks.
//!
//! A function returns when it has its values, so one that waits keeps its thread. Whoever runs
//! plans says with [`Waiting`](super::Waiting) where that does no harm. What waits looks now and
//! then whether its statement is to end.
//!
//! Rows wait one after the other, as in MySQL: [`waits`] tells which plans must not be cut into
//! partitions that run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::ArrayRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use mayfly_types::{ErrorCode, MySqlError};

use super::call::Call;
use super::define::{Definition, Returns, name_of, volatile};
use super::named_locks::{LockHolder, NAP, Waited};
use super::raise::raise;

/// Longer than anybody waits; clocks can add it.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);
/// The characters of the name of a lock.
const NAME_CHARACTERS_MAX: usize = 64;

pub(super) static FUNCTIONS: &[Definition] = &[
    volatile("sleep", &[], (1, 1), Returns::Integer, sleep),
    volatile("get_lock", &[], (2, 2), Returns::Integer, get_lock),
    volatile("release_lock", &[], (1, 1), Returns::Integer, |call| {
        took_effect(call);
        of_names(call, |locks, name| locks.release(name).map(i64::from))
    }),
    volatile("is_free_lock", &[], (1, 1), Returns::Integer, |call| {
        of_names(call, |locks, name| {
            Some(i64::from(locks.used_by(name).is_none()))
        })
    }),
    volatile("is_used_lock", &[], (1, 1), Returns::Integer, |call| {
        of_names(call, |locks, name| {
            locks.used_by(name).and_then(|id| i64::try_from(id).ok())
        })
    }),
    volatile("release_all_locks", &[], (0, 0), Returns::Integer, |call| {
        let locks = locks(call);
        took_effect(call);
        call.make_integers(|_| Ok(i64::try_from(locks.release_all()).ok()))
    }),
];

/// Whether an expression has functions that wait or whose value depends on those that do.
pub(crate) fn has_waiting(expr: &Expr) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => name_of(&call.func).is_some_and(is_waiting),
        _ => false,
    };
    expr.exists(|expr| Ok(is_one(expr))).unwrap_or(true)
}

/// Whether a function of this name is one.
pub(crate) fn is_waiting(name: &str) -> bool {
    FUNCTIONS
        .iter()
        .any(|of| of.name.eq_ignore_ascii_case(name))
}

/// Whether a plan has such functions.
pub fn waits(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= has_waiting(expr);
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })
    });
    found || walked.is_err()
}

/// Keeps this thread, or another one, for a while.
fn wait(call: &Call<'_>, mut wait: impl FnMut()) -> Result<()> {
    let waiting = { call.session }.and_then(|session| session.lock().waiting.clone());
    match waiting {
        Some(waiting) => waiting.wait(&mut wait).map_err(raise),
        None => {
            wait();
            Ok(())
        }
    }
}

fn stop(call: &Call<'_>) -> Arc<AtomicBool> {
    { call.session }.map_or_else(Arc::default, |session| Arc::clone(&session.lock().stop))
}

fn locks(call: &Call<'_>) -> LockHolder {
    { call.session }.map_or_else(LockHolder::default, |session| session.lock().locks.clone())
}

/// Says that the statement cannot run a second time as if it had not run before.
fn took_effect(call: &Call<'_>) {
    if let Some(session) = call.session {
        session.lock().took_effect = true;
    }
}

/// A time in seconds; none where there is no number, or it is negative.
fn duration(seconds: Option<f64>) -> Duration {
    let seconds = seconds.map(|seconds| seconds.min(FOR_EVER.as_secs_f64()));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.unwrap_or_default()
}

/// One that was interrupted returns 1, unless the statement ends with it.
fn sleep(call: &Call<'_>) -> Result<ArrayRef> {
    let (seconds, stop) = (call.doubles(0)?, stop(call));
    let times: Vec<Duration> = (0..call.rows)
        .map(|row| duration(seconds.at(row)))
        .collect();
    let mut interrupted = vec![false; call.rows];
    if times.iter().any(|time| !time.is_zero()) {
        took_effect(call);
        wait(call, || {
            for (time, interrupted) in times.iter().zip(&mut interrupted) {
                let mut left = *time;
                while !left.is_zero() && !stop.load(Ordering::SeqCst) {
                    let nap = left.min(NAP);
                    std::thread::sleep(nap);
                    left -= nap;
                }
                *interrupted = stop.load(Ordering::SeqCst);
            }
        })?;
    }
    call.make_integers(|row| Ok(Some(i64::from(interrupted[row]))))
}

/// 1 with the lock, 0 if it took too long to come, NULL if the statement was stopped or no time was
/// given. A time that is negative has no end.
fn get_lock(call: &Call<'_>) -> Result<ArrayRef> {
    let (names, times) = (call.texts(0)?, call.doubles(1)?);
    let (locks, stop) = (locks(call), stop(call));
    took_effect(call);
    call.make_integers(|row| {
        let name = lock_name(names.at(row))?;
        let patience = match times.at(row) {
            Some(seconds) if seconds < 0.0 => FOR_EVER,
            Some(seconds) => duration(Some(seconds)),
            None => {
                let code = ErrorCode::WrongValueForType;
                call.warn(code, &[&"timeout", &"NULL", &"get_lock"]);
                return Ok(None);
            }
        };
        let mut waited = match locks.take(&name) {
            true => Waited::Taken,
            false => Waited::TooLong,
        };
        if waited != Waited::Taken && !patience.is_zero() {
            wait(call, || waited = locks.wait_for(&name, patience, &stop))?;
        }
        match waited {
            Waited::Taken => Ok(Some(1)),
            Waited::TooLong => Ok(Some(0)),
            Waited::Stopped => Ok(None),
            Waited::Deadlock => Err(raise(MySqlError::new(ErrorCode::UserLockDeadlock, &[]))),
        }
    })
}

fn of_names(call: &Call<'_>, value: impl Fn(&LockHolder, &str) -> Option<i64>) -> Result<ArrayRef> {
    let (names, locks) = (call.texts(0)?, locks(call));
    call.make_integers(|row| Ok(value(&locks, &lock_name(names.at(row))?)))
}

/// The name of a lock, which counts no case.
fn lock_name(name: Option<&str>) -> Result<String> {
    let wrong = |code, name: &str| Err(raise(MySqlError::new(code, &[&name])));
    match name {
        None => wrong(ErrorCode::UserLockWrongName, "NULL"),
        Some("") => wrong(ErrorCode::UserLockWrongName, ""),
        Some(name) if name.chars().count() > NAME_CHARACTERS_MAX => {
            wrong(ErrorCode::UserLockLongName, name)
        }
        Some(name) => Ok(name.to_lowercase()),
    }
}
