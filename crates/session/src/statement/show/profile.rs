//! SHOW PROFILES, SHOW PROFILE, and INFORMATION_SCHEMA.PROFILING.

use std::time::Duration;

use mayfly_sql::statement::{ProfileKind, ProfileQuery};

use super::super::Job;
use crate::listing::{Listing, some};
use crate::profile::{Cost, Profile};

/// The columns of resources, with what asks for them.
const COLUMNS: [(&str, ProfileKind); 14] = [
    ("CPU_user", ProfileKind::Cpu),
    ("CPU_system", ProfileKind::Cpu),
    ("Context_voluntary", ProfileKind::ContextSwitches),
    ("Context_involuntary", ProfileKind::ContextSwitches),
    ("Block_ops_in", ProfileKind::BlockIo),
    ("Block_ops_out", ProfileKind::BlockIo),
    ("Messages_sent", ProfileKind::Messages),
    ("Messages_received", ProfileKind::Messages),
    ("Page_faults_major", ProfileKind::PageFaults),
    ("Page_faults_minor", ProfileKind::PageFaults),
    ("Swaps", ProfileKind::Swaps),
    ("Source_function", ProfileKind::Source),
    ("Source_file", ProfileKind::Source),
    ("Source_line", ProfileKind::Source),
];

/// Columns of seconds with six digits.
const SECONDS: [&str; 3] = ["Duration", "CPU_user", "CPU_system"];

/// Columns of whole numbers.
const NUMBERS: [&str; 10] = [
    "Context_voluntary",
    "Context_involuntary",
    "Block_ops_in",
    "Block_ops_out",
    "Messages_sent",
    "Messages_received",
    "Page_faults_major",
    "Page_faults_minor",
    "Swaps",
    "Source_line",
];

impl Job {
    pub(super) fn list_profiles(&self) -> Listing {
        let mut listing =
            Listing::new(&["Query_ID", "Duration", "Query"]).with_numbers(&["Query_ID"]);
        for profile in self.profiles() {
            listing.push(vec![
                some(profile.id),
                Some(format!("{:.8}", profile.duration.as_secs_f64())),
                Some(profile.text),
            ]);
        }
        listing
    }

    pub(super) fn show_profile(&self, asked: &ProfileQuery) -> Listing {
        let columns = COLUMNS
            .iter()
            .filter(|(_, kind)| asked.kinds.contains(kind));
        let names: Vec<&str> = ["Status", "Duration"]
            .into_iter()
            .chain(columns.clone().map(|(name, _)| *name))
            .collect();
        let mut listing = Listing::new(&names)
            .with_numbers(&NUMBERS)
            .with_seconds(&SECONDS);
        let profiles = self.profiles();
        let profile = match asked.query {
            None => profiles.last(),
            Some(id) => profiles.iter().find(|profile| profile.id == id),
        };
        let Some(profile) = profile else {
            return listing;
        };
        let as_count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let costs = profile.costs.iter().skip(as_count(asked.offset));
        for cost in costs.take(asked.limit.map_or(usize::MAX, as_count)) {
            let first = [some(cost.stage.name()), seconds(cost.duration)];
            let rest = columns.clone().map(|(name, _)| resource(cost, name));
            listing.push(first.into_iter().chain(rest).collect());
        }
        listing
    }

    /// The profiles of this connection, the oldest one first.
    fn profiles(&self) -> Vec<Profile> {
        let mut local = self.connection.local();
        let kept_max = local.settings().profiles_max;
        local.profiles.kept(kept_max).iter().cloned().collect()
    }
}

/// INFORMATION_SCHEMA.PROFILING.
pub(in super::super) fn profiling(job: &Job) -> Listing {
    let columns = COLUMNS.map(|(name, _)| name);
    let first = ["QUERY_ID", "SEQ", "STATE", "DURATION"];
    let names: Vec<&str> = first.into_iter().chain(columns).collect();
    let numbers: Vec<&str> = ["QUERY_ID", "SEQ"].into_iter().chain(NUMBERS).collect();
    let mut listing = Listing::new(&names).with_numbers(&numbers);
    listing = listing.with_seconds(&["DURATION", "CPU_user", "CPU_system"]);
    for profile in job.profiles() {
        // MariaDB counts the beginning of a statement as its first stage, and leaves it out.
        for (number, cost) in (2..).zip(&profile.costs) {
            let first = [
                some(profile.id),
                some(number),
                some(cost.stage.name()),
                seconds(cost.duration),
            ];
            let rest = columns.iter().map(|name| resource(cost, name));
            listing.push(first.into_iter().chain(rest).collect());
        }
    }
    listing
}

fn seconds(duration: Duration) -> Option<String> {
    Some(format!("{:.6}", duration.as_secs_f64()))
}

/// What a stage took; `None` where that is not known.
fn resource(cost: &Cost, name: &str) -> Option<String> {
    let resources = cost.resources?;
    match name {
        "CPU_user" => seconds(resources.user),
        "CPU_system" => seconds(resources.system),
        "Block_ops_in" => some(resources.blocks_in),
        "Block_ops_out" => some(resources.blocks_out),
        "Page_faults_major" => some(resources.major_faults),
        "Page_faults_minor" => some(resources.minor_faults),
        _ => None,
    }
}
