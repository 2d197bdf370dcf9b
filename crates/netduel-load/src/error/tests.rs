//! Causes of errors, and their texts.
use super::*;

#[test]
fn lack_of_the_host_and_wrong_setting_are_not_failed_traffic() {
    let error = io::Error::from_raw_os_error;
    let (again, permission, size, no_port, no_option) = (11, 1, 90, 99, 92);
    let address = IpAddr::from([192, 0, 2, 1]);
    for (failed, cause) in [
        (LoadError::LocalPorts { needed: 100, first: 40_000, last: 40_049 }, Cause::Host),
        (LoadError::connect((address, 5201).into(), error(no_port)), Cause::Host),
        (LoadError::thread_of(3, 64, error(again)), Cause::Host),
        (LoadError::merging(error(no_option)), Cause::Host),
        (LoadError::system("open a socket", error(permission)), Cause::Host),
        (LoadError::segmentation(9000, error(size)), Cause::Settings),
        (LoadError::DatagramTooLarge { size: 9000, mtu: 1500, most: 1472 }, Cause::Settings),
        (LoadError::Family { address, family: Family::Ipv6 }, Cause::Settings),
        (LoadError::Peer { address, kind: "a multicast address" }, Cause::Settings),
        (LoadError::NoClient { connected: 0, expected: 1 }, Cause::Traffic),
        (LoadError::system("open a socket", error(again)), Cause::Traffic),
    ] {
        assert_eq!(failed.cause(), cause, "{failed}");
    }
}

#[test]
fn missing_thread_is_reported_with_its_number_and_the_limits() {
    let text = LoadError::thread_of(3, 64, io::Error::from_raw_os_error(11)).to_string();
    assert!(text.starts_with("start thread 3 of 64 of the workload: "), "{text}");
    assert!(text.contains("ulimit -u") && text.contains("use fewer streams"), "{text}");
}

/// A plan of a run file, which another person may have written, was not checked.
#[test]
fn name_from_a_plan_is_one_word_of_a_command() {
    let (name, available) = ("x; reboot".to_owned(), "reno".to_owned());
    let error = LoadError::Congestion { name, available, source: io::Error::from_raw_os_error(2) };
    let text = error.to_string();
    assert!(text.contains("(`modprobe 'tcp_x; reboot'`)"), "{text}");
}
