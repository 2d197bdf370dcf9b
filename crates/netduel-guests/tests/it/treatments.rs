//! Treatments on the devices of a scene: in force as ethtool(8), sysfs and /proc show it, or refused; and the state of the guests before and
//! after.
use netduel_guests::{Bed, Guest};

use super::coordinator::{Coordinator, plan};
use super::run_in_both;

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

/// Waits until no interface that is up lacks its carrier: a treatment restarts some, and a virtual function loses its link some time after its
/// physical function was restarted.
const CARRIERS: &str = "for entry in /sys/class/net/*; do \
     until { carrier=; read -r carrier < \"$entry/carrier\"; [ \"$carrier\" != 0 ]; } 2>/dev/null; do usleep 50000; done; done";

/// Everything of the interfaces that a treatment may change, as the guest's own programs print it. Of an RSS table it has how many entries each
/// queue has: a table that is reset to that of the driver may deal them in another order (igb). A NIC that was removed returns with another
/// index, and a bond counts how often a port failed. Each process costs an emulated processor tens of milliseconds: one program reads as many
/// files as it can.
const STATE: &str = "ip -d -o link show | sed \"s/^[0-9]*: //; s/ link_failure_count [0-9]*//\" | sort; \
     for entry in /sys/class/net/*; do name=${entry##*/}; echo \"== $name\"; \
     for option in -k -g -l -c; do ethtool $option \"$name\" 2>&1; done; done; \
     for entry in /sys/class/net/*; do name=${entry##*/}; echo \"== $name\"; ethtool -x \"$name\" 2>&1; done | \
     awk '$1 == \"==\" { name = $2; next } { for (field = 1; field <= NF; field++) count[name \" \" $field]++ } \
     END { for (one in count) print one, count[one] }' | sort; \
     grep -H . /sys/class/net/*/queues/*/[rx]ps_cpus /proc/irq/[0-9]*/smp_affinity_list 2>&1; \
     sysctl -a 2>/dev/null | grep -v -e random -e nr_ -e dentry -e inode -e file-nr -e ns_last_pid -e pty -e conntrack_count";

/// The state of both guests before checks of which none leaves anything. Reading it takes seconds, so the checks of a scene share one; what changes
/// guests on purpose comes before or after all of them. It is read again after all, and before a change of queues: with other queues a driver sets
/// interrupts, packet steering and RSS anew, whatever a check before has left.
#[derive(Debug)]
pub struct State(Vec<String>);

impl State {
    /// As it is now.
    pub fn read(bed: &mut Bed) -> Self {
        Self(run_in_both(bed.guests(), |_| format!("{CARRIERS}; {STATE}")))
    }

    /// Both guests are as they were.
    #[track_caller]
    pub fn assert_kept(&self, bed: &mut Bed) {
        let Self(after) = Self::read(bed);
        for (before, after) in self.0.iter().zip(&after) {
            let lines = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
            let differing: Vec<(&str, &str)> = lines.collect();
            assert!(differing.is_empty(), "before and after: {differing:#?}");
            assert_eq!(before.lines().count(), after.lines().count(), "{before}\n\n{after}");
        }
    }
}

/// Waits until the interfaces of both guests have their links again.
#[track_caller]
pub fn await_links(bed: &mut Bed) {
    run_in_both(bed.guests(), |_| CARRIERS.to_owned());
}

/// Treatments that are in force at a time, on a path.
#[derive(Clone, Copy)]
pub struct Treated<'a> {
    /// The server's.
    pub address: &'a str,
    tables: &'a [&'a [InForce]],
    /// As in a plan.
    on: &'static str,
}

impl<'a> Treated<'a> {
    /// Treatments of the client.
    pub fn client(address: &'a str, tables: &'a [&'a [InForce]]) -> Self {
        Self { address, tables, on: "client" }
    }

    /// Treatments of both ends.
    pub fn both(address: &'a str, tables: &'a [&'a [InForce]]) -> Self {
        Self { address, tables, on: "both" }
    }

    /// The guests that have them.
    pub fn guests<'b>(&self, bed: &'b mut Bed) -> &'b [Guest] {
        let count = if self.on == "both" { 2 } else { 1 };
        &bed.guests()[..count]
    }

    /// The treatments of a plan, and a command after them that stores what the rows show in [`SHOWN`].
    pub fn in_plan(&self) -> String {
        let on = self.on;
        let treatment = |row: &InForce| format!("{{ {}, on = \"{on}\" }}, ", row.treatment);
        let treatments: String = self.rows().map(treatment).collect();
        let look = self.look();
        format!(
            "{treatments}{{ command = [\"sh\", \"-c\", '{{ {look} }} >{SHOWN} 2>&1'], undo = [\"true\"], on = \"{on}\" }}"
        )
    }

    /// Prints what the rows change, each after a mark.
    pub fn look(&self) -> String {
        let look = |row: &InForce| format!("echo {MARK}; {}; ", row.shown_by);
        self.rows().map(look).collect()
    }

    /// All rows show their treatment in what [`Self::look`] printed, or none of them does.
    #[track_caller]
    pub fn assert_shown(&self, printed: &str, is_in_force: bool) {
        let mut parts = printed.split(MARK).skip(1);
        for row in self.rows() {
            let part = parts.next().unwrap_or_else(|| panic!("{}: nothing in\n{printed}", row.treatment));
            let is_shown = part.contains(row.shows);
            assert_eq!(is_shown, is_in_force, "{}: {:?} in\n{part}", row.treatment, row.shows);
        }
    }

    /// No row shows its treatment in a guest that had it: a check that leaves one fails itself, before a comparison with [`State`] names what is left.
    #[track_caller]
    pub fn assert_gone(&self, bed: &mut Bed) {
        await_links(bed);
        for printed in run_in_both(self.guests(bed), |_| self.look()) {
            self.assert_shown(&printed, false);
        }
    }

    fn rows(&self) -> impl Iterator<Item = &'a InForce> + use<'a> {
        self.tables.iter().copied().flatten()
    }
}

/// Prints what the rows showed after the treatments of a trial; once, so that no later trial shows it.
pub fn take_shown() -> String {
    format!("cat {SHOWN}; rm {SHOWN}")
}

const SHOWN: &str = "/tmp/shown";
/// The line before what a row shows.
const MARK: &str = "netduel-row";

/// Runs an arm for each treatment on the client, each of which is refused with its reason.
pub fn check_refused(bed: &Bed, coordinator: &Coordinator, address: &str, table: &[Refused]) {
    let keys: Vec<(String, String)> = table
        .iter()
        .enumerate()
        .map(|(index, row)| {
            (format!("r{index}"), format!("treatments = [{{ {}, on = \"client\" }}]", row.treatment))
        })
        .collect();
    let mut arms = vec![("plain", "")];
    arms.extend(keys.iter().map(|(name, keys)| (name.as_str(), keys.as_str())));
    let plan = coordinator.plan(&(plan(address, &arms, SHORT, 2) + ONE_BLOCK));
    let printed = coordinator.run(bed, &["run", &plan]).expect_code(6);
    let mut missing = Vec::new();
    for (index, row) in table.iter().enumerate() {
        let arm = format!(" r{index} ");
        let is_of_arm = |line: &&str| line.contains(&arm) && line.contains("failed");
        let failures: Vec<&str> = printed.stderr.lines().filter(is_of_arm).collect();
        let is_missing = |part: &&&str| !failures.iter().any(|line| line.contains(**part));
        for part in row.because.iter().filter(is_missing) {
            missing.push(format!("{}: {part:?} is not in {failures:#?}", row.treatment));
        }
    }
    assert!(missing.is_empty(), "{}\n{}", missing.join("\n"), printed.stderr);
}

/// Less than the first block takes, with its refusals and a comparison of the hosts at its end: no second block repeats them. Where one does, the
/// outcome is the same.
const ONE_BLOCK: &str = "budget = \"1 s\"\n";

/// Round trips of a trial that is refused before them.
const SHORT: &str =
    "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\nrequest_rate = \"100 /s\"\n";
