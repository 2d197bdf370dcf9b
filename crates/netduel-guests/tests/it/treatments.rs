//! Treatments on the devices of a scene: in force while the traffic runs, as ethtool(8), sysfs and /proc show it, and undone after it.
use std::collections::BTreeMap;

use netduel_guests::{Bed, Guest};

use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::{run, run_in_both};

/// A treatment, a command that prints what it changes, and a text of its output while it is in force, and only then.
pub struct InForce {
    pub treatment: &'static str,
    pub shown_by: &'static str,
    pub shows: &'static str,
}

/// A treatment that a device refuses, and texts of the reason.
pub struct Refused {
    pub treatment: &'static str,
    pub because: &'static [&'static str],
}

/// Everything of the interfaces that a treatment may change, as the guest's own programs print it. Of an RSS table it has how many entries each
/// queue has: a table that is reset to that of the driver may deal them in another order (igb). A NIC that was removed returns with another
/// index. A virtual function loses its link some time after its physical function was restarted. Each process costs an emulated processor tens
/// of milliseconds: one program reads as many files as it can.
const STATE: &str = "for entry in /sys/class/net/*; do \
     until { carrier=; read -r carrier < \"$entry/carrier\"; [ \"$carrier\" != 0 ]; } 2>/dev/null; do usleep 50000; done; done; \
     ip -d -o link show | sed \"s/^[0-9]*: //\" | sort; \
     for entry in /sys/class/net/*; do name=${entry##*/}; echo \"== $name\"; \
     for option in -k -g -l -c; do ethtool $option \"$name\" 2>&1; done; done; \
     for entry in /sys/class/net/*; do name=${entry##*/}; ethtool -x \"$name\" 2>&1 | sed \"s/^/$name /\"; done | \
     awk '{ for (field = 2; field <= NF; field++) count[$1 \" \" $field]++ } END { for (one in count) print one, count[one] }' | sort; \
     grep -H . /sys/class/net/*/queues/*/[rx]ps_cpus /proc/irq/[0-9]*/smp_affinity_list 2>&1; \
     sysctl -a 2>/dev/null | grep -v -e random -e nr_ -e dentry -e inode -e file-nr -e ns_last_pid -e pty -e conntrack_count";

fn state(guests: &[Guest]) -> Vec<String> {
    run_in_both(guests, |_| STATE.to_owned())
}

/// The last known state of both guests. The state after a check is that before the next one, also when runs of netduel without this
/// comparison are between them: they leave nothing either. What changes guests on purpose comes before the first or after the last check.
#[derive(Debug, Default)]
pub struct LastState(Option<Vec<String>>);

impl LastState {
    /// Both guests are after the work as they were.
    #[track_caller]
    pub fn is_kept_by<R>(&mut self, bed: &mut Bed, work: impl FnOnce(&mut Bed) -> R) -> R {
        let before = self.0.take().unwrap_or_else(|| state(bed.guests()));
        let result = work(bed);
        let after = state(bed.guests());
        for (before, after) in before.iter().zip(&after) {
            let lines = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
            let differing: Vec<(&str, &str)> = lines.collect();
            assert!(differing.is_empty(), "before and after: {differing:#?}");
            assert_eq!(before.lines().count(), after.lines().count(), "{before}\n\n{after}");
        }
        self.0 = Some(after);
        result
    }
}

/// Runs two arms, each with some of the treatments on the client. A command treatment after them, which is applied after them, stores what is
/// shown. Nothing of it may be shown before: such a row would pass without its treatment.
pub fn check_in_force(
    bed: &mut Bed,
    coordinator: &Coordinator,
    state: &mut LastState,
    address: &str,
    table: [&[InForce]; 2],
) {
    let looks = [0, 1].map(|arm| looks(arm, table[arm]));
    let keys = [0, 1].map(|arm| {
        let treatments: Vec<String> =
            table[arm].iter().map(|row| format!("{{ {}, on = \"client\" }}, ", row.treatment)).collect();
        format!(
            "treatments = [{}{{ command = [\"sh\", \"-c\", '{{ {} }} >/tmp/shown-{arm} 2>&1'], undo = [\"true\"], on = \"client\" }}]",
            treatments.concat(),
            looks[arm]
        )
    });
    let printed = run(&bed.guests()[0], &looks.concat());
    let before = shown(&printed);
    let text = plan(address, &[("first", &keys[0]), ("second", &keys[1])], SHORT, 2);
    let report = state.is_kept_by(bed, |bed| coordinator.report(bed, &text));
    assert_all_valid(&report, 4);
    let printed = run(&bed.guests()[0], "cat /tmp/shown-0 /tmp/shown-1");
    let during = shown(&printed);
    for (arm, rows) in table.iter().enumerate() {
        for (place, row) in rows.iter().enumerate() {
            let (before, during) = (before[&*mark(arm, place)], during[&*mark(arm, place)]);
            assert!(!before.contains(row.shows), "{}: {:?} was in\n{before}", row.treatment, row.shows);
            assert!(during.contains(row.shows), "{}: {:?} is not in\n{during}", row.treatment, row.shows);
        }
    }
}

/// Prints what the rows of an arm change, each after its mark.
fn looks(arm: usize, rows: &[InForce]) -> String {
    let look = |(place, row): (usize, &InForce)| format!("echo {}; {}; ", mark(arm, place), row.shown_by);
    rows.iter().enumerate().map(look).collect::<Vec<_>>().concat()
}

/// The line before what a row shows.
fn mark(arm: usize, place: usize) -> String {
    format!("{MARK}{arm}-{place}")
}

const MARK: &str = "netduel-row-";

/// What was printed after each mark.
fn shown(printed: &str) -> BTreeMap<String, &str> {
    let parts = printed.split(MARK).filter_map(|part| part.split_once('\n'));
    parts.map(|(row, shown)| (format!("{MARK}{row}"), shown)).collect()
}

/// Runs an arm for each treatment on the client, each of which is refused with its reason.
pub fn check_refused(
    bed: &mut Bed,
    coordinator: &Coordinator,
    state: &mut LastState,
    address: &str,
    table: &[Refused],
) {
    let keys: Vec<(String, String)> = table
        .iter()
        .enumerate()
        .map(|(index, row)| {
            (format!("r{index}"), format!("treatments = [{{ {}, on = \"client\" }}]", row.treatment))
        })
        .collect();
    let mut arms = vec![("plain", "")];
    arms.extend(keys.iter().map(|(name, keys)| (name.as_str(), keys.as_str())));
    // Two refusals of an arm are fewer than those that drop it: each is in the output.
    let plan = coordinator.plan(&plan(address, &arms, SHORT, 2));
    let printed = state.is_kept_by(bed, |bed| coordinator.run(bed, &["run", &plan])).expect_code(6);
    for (index, row) in table.iter().enumerate() {
        let arm = format!(" r{index} ");
        let is_of_arm = |line: &&str| line.contains(&arm) && line.contains("failed");
        let failures: Vec<&str> = printed.stderr.lines().filter(is_of_arm).collect();
        for part in row.because {
            assert!(
                failures.iter().any(|line| line.contains(part)),
                "{}: {part:?} is not in {failures:#?}\n{}",
                row.treatment,
                printed.stderr
            );
        }
    }
}

/// Round trips for as long as a treatment takes to be looked at.
const SHORT: &str =
    "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\nrequest_rate = \"100 /s\"\n";
