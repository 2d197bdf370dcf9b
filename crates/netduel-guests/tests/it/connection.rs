//! Runs over an ssh connection that is slow and loses packets. Copying the program over it takes minutes, in which the cores are idle, so this
//! test has a scene of its own beside the others, and a name that starts first.
use netduel_guests::Bed;

use super::coordinator::{Coordinator, FEW_ROUND_TRIPS, assert_all_valid, plan};
use super::scenes::with_waiting_scene;
use super::{end, load, run};

#[test]
fn run_is_whole_over_a_slow_and_lossy_connection() {
    with_waiting_scene("slow-ssh", &[1], |mut bed, timed| {
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        timed.check("slow and lossy connection", || check_connection(&mut bed, &coordinator));
        end(bed);
    });
}

/// ssh to both guests has a long delay and loses packets in each direction; the data has its own interface. The TCP of QEMU's network for
/// users copies the program in minutes even over half of the delay.
fn check_connection(bed: &mut Bed, coordinator: &Coordinator) {
    for guest in bed.guests() {
        run(guest, &slow_down(50));
    }
    run(&bed.guests()[1], "rm -r ~/.cache/netduel");
    let plan = coordinator.plan(&plan("10.1.0.2", &[("one", ""), ("two", "")], FEW_ROUND_TRIPS, 2));
    for copies in [1, 0] {
        let printed = coordinator.run(bed, &["run", &plan, "--json"]).expect_code(0);
        assert_eq!(printed.copies(), copies, "{}", printed.stderr);
        assert_all_valid(&printed.document(), 4);
        // The copy was lost in parts, and so were its acknowledgements.
        for interface in [MANAGEMENT, INCOMING] {
            let shown = run(&bed.guests()[1], &format!("tc -s qdisc show dev {interface} root"));
            assert!(dropped(&shown) > 0, "{shown}");
        }
        for guest in bed.guests() {
            run(guest, &set_delay("change", 100));
        }
    }
}

/// The interface of ssh, and the one that receives its packets after their delay.
const MANAGEMENT: &str = "mgmt";
const INCOMING: &str = "ifb0";

/// Delays the packets of ssh in both directions, and loses one of a hundred.
fn slow_down(delay_ms: u32) -> String {
    let modules = "sch_netem sch_ingress cls_matchall act_mirred ifb";
    format!(
        "set -e; {}; ip link set {INCOMING} up; {}; tc qdisc add dev {MANAGEMENT} ingress; \
         tc filter add dev {MANAGEMENT} ingress matchall action mirred egress redirect dev {INCOMING}",
        load(modules),
        set_delay("add", delay_ms)
    )
}

/// In each direction.
fn set_delay(verb: &str, delay_ms: u32) -> String {
    let of =
        |interface: &str| format!("tc qdisc {verb} dev {interface} root netem delay {delay_ms}ms loss 1%");
    format!("{}; {}", of(MANAGEMENT), of(INCOMING))
}

/// The packets that a qdisc has lost, of `tc -s qdisc show`.
fn dropped(shown: &str) -> u64 {
    let number = shown.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
}
