//! Devices that are removed while a treatment is in force, and return.
use std::fs;

use netduel_agent::treatment::Treatments;
use netduel_model::plan::TreatmentAction;
use netduel_sys::link;

use super::{guard, in_namespace, mtu, must};

#[test]
fn device_that_returned_with_another_index_is_restored_and_no_other() {
    in_namespace("returned::device_that_returned_with_another_index_is_restored_and_no_other", || {
        let address = "02:00:00:00:00:a1";
        must("ip", &["link", "set", "va", "address", address]);
        let links = netduel_host::link_states().unwrap();
        let index = links.iter().find(|link| link.name == "va").unwrap().index.to_string();
        let filter = || fs::read_to_string("/proc/sys/net/ipv4/conf/va/rp_filter").unwrap();
        let before = filter();
        let value = if before.trim() == "1" { "2" } else { "1" };
        let name = "net.ipv4.conf.va.rp_filter".to_owned();
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[mtu(1400), TreatmentAction::Sysctl { name, value: value.to_owned() }]).unwrap();
        must("ip", &["link", "del", "va"]);
        // Another one has its index now, and what returns has the settings of the treatment.
        let other = "link add other mtu 1400 index INDEX type veth peer name ov".replace("INDEX", &index);
        let back = format!("link add va address {address} mtu 1400 type veth peer name vb");
        for words in [other, back] {
            must("ip", &words.split(' ').collect::<Vec<_>>());
        }
        fs::write("/proc/sys/net/ipv4/conf/va/rp_filter", value).unwrap();
        treatments.undo_all().unwrap();
        let now = |interface| link::mtu(interface).unwrap();
        assert_eq!((now("va"), now("other"), filter()), (1500, 1400, before));
    });
}
