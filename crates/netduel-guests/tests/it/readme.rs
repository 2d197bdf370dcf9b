//! The second example of the README between two guests on which no netduel is installed, in few short trials.
use netduel_guests::Bed;

use super::coordinator::{Coordinator, assert_all_valid};
use super::run;

/// The plan, and the text after it.
pub fn example() -> (String, &'static str) {
    let readme = include_str!("../../../../README.md");
    let (_, plan) = readme.split_once("```toml\nname = \"eight\"").unwrap();
    let (plan, after) = plan.split_once("```").unwrap();
    (format!("name = \"eight\"{plan}"), after)
}

/// The words of the command of the example that begins with these, as far as its comment.
pub fn words(start: &str) -> Vec<&'static str> {
    let (_, after) = example();
    let mut lines = after.lines().filter_map(|line| line.strip_prefix("    netduel "));
    let line = lines.find(|line| line.starts_with(start)).unwrap();
    line.split('#').next().unwrap().split_whitespace().collect()
}

/// Makes the guests the machines of the example: without netduel, with its addresses.
pub fn become_its_machines(bed: &mut Bed) {
    for (guest, address) in bed.guests().iter().zip(["192.0.2.6", "192.0.2.7"]) {
        run(guest, &format!("rm -rf ~/.cache/netduel /bin/netduel; ip address add {address}/24 dev virt0"));
    }
}

/// Only its number of blocks and its duration are less.
pub fn example_of_the_readme_runs(bed: &mut Bed, coordinator: &Coordinator) {
    become_its_machines(bed);
    let plan = coordinator.plan(&example().0);
    let duration = coordinator.duration("500 ms");
    let few = ["--set", "blocks_min=2", "--set", "blocks_max=2", "--set", &duration];
    let words: Vec<&str> = ["run", &plan, "--json"].into_iter().chain(few).collect();
    let printed = coordinator.run(bed, &words).expect_code(0);
    assert_eq!(printed.copies(), 2, "{}", printed.stderr);
    assert_all_valid(&printed.document(), 4);
}
