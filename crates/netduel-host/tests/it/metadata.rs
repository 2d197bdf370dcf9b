//! The client with services on the loopback that answer like each cloud, and with invalid ones.
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use netduel_host::{MetadataService, snapshot_of};
use netduel_model::snapshot::{Cloud, Provider};
use rustix::net::{AddressFamily, SocketType};

use crate::fixture::Host;
use crate::service::{Answer, Request, Service, ok, status};

type Words = fn(&Request) -> Answer;

const TAG: &str = "7783-7084-3265-9085-8269-3286-77";

fn azure_machine() -> Host {
    let host = Host::new();
    host.write("sys/class/dmi/id/chassis_asset_tag", TAG);
    host
}

/// The cloud facts of a machine with this answer of its service.
fn cloud(host: &Host, answer: impl Fn(&Request) -> Answer + Send + 'static) -> Cloud {
    let service = Service::start(answer);
    seen(host, service.patiently())
}

fn seen(host: &Host, service: MetadataService) -> Cloud {
    let mut sources = host.sources();
    sources.metadata = Some(service);
    snapshot_of(&mut sources).unwrap().cloud.unwrap()
}

/// Why the service did not answer.
fn failure(answer: impl Fn(&Request) -> Answer + Send + 'static) -> String {
    let cloud = cloud(&azure_machine(), answer);
    assert_eq!((cloud.provider, &cloud.size), (Provider::Azure, &None));
    assert!(cloud.evidence.contains(TAG));
    cloud.metadata_failure.unwrap()
}

#[test]
fn missing_answer_is_a_fact_and_no_error() {
    let say = |text: &str| Answer::Say(text.as_bytes().to_vec());
    let json = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"vmSize\"";
    let cases: [(&str, Words); 5] = [
        ("404", |_| status("404 Not Found")),
        ("status \"429\"", |_| status("429 Too Many Requests")),
        ("not JSON", |_| ok("<html>sign in to the hotel's network</html>")),
        ("not a JSON object", |_| ok("[1, 2]")),
        ("closed without an answer", |_| Answer::Say(Vec::new())),
    ];
    for (why, words) in cases {
        let failure = failure(words);
        assert!(failure.contains(why), "{why}: {failure}");
    }
    let half = failure(move |_| say(json));
    assert!(half.contains("9 of 100 bytes"), "{half}");
    let garbage = failure(|_| Answer::Say((0..=255).cycle().take(4000).collect()));
    assert!(garbage.contains("not HTTP"), "{garbage}");
}

#[test]
fn silent_or_stalled_service_is_limited_by_its_timeouts() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{";
    for part in [&b""[..], &half[..]] {
        let service = Service::start(move |_| Answer::Stall(part.to_vec()));
        let failure = seen(&azure_machine(), service.as_in_a_cloud()).metadata_failure.unwrap();
        assert!(failure.contains("did not answer") && failure.contains("300 ms"), "{failure}");
    }
}

#[test]
fn endless_answer_is_cut_at_the_limit() {
    let endless = failure(|_| {
        let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        bytes.resize(1 << 20, b' ');
        Answer::Say(bytes)
    });
    assert!(endless.contains("more than 256 KiB"), "{endless}");
}

#[test]
fn missing_service_is_reported_at_once() {
    // A bound port without a listener.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    let service = MetadataService { address, try_ms: 60_000, total_ms: 60_000 };
    let failure = seen(&azure_machine(), service).metadata_failure.unwrap();
    assert!(failure.contains("connect to 127.0.0.1"), "{failure}");
}

#[test]
fn facts_before_a_failure_are_kept() {
    let host = Host::new();
    host.write("sys/class/dmi/id/product_name", "Google Compute Engine\n");
    let seen = cloud(&host, |request| match request.line.as_str() {
        "GET /computeMetadata/v1/instance/machine-type" => ok("projects/1/machineTypes/e2-medium"),
        _ => status("503 Service Unavailable"),
    });
    assert_eq!((seen.size.as_deref(), seen.zone), (Some("e2-medium"), None));
    assert!(seen.metadata_failure.unwrap().contains("503"));
}

#[test]
fn token_with_line_breaks_is_not_sent_back() {
    let host = Host::new();
    host.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    let seen = cloud(&host, |request| {
        assert!(request.line.starts_with("PUT "), "no request follows such a token: {}", request.line);
        ok("abc\r\nX-Other: 1")
    });
    assert!(seen.metadata_failure.unwrap().contains("token"));
}

#[test]
fn answers_contain_no_control_characters() {
    let seen = cloud(&azure_machine(), |_| {
        ok(&format!(
            "{{\"vmSize\": \"D2\\u001b]0;x\\u0007\", \"zone\": \"\\n\", \"vmId\": \"{}\"}}",
            "a".repeat(5000)
        ))
    });
    assert_eq!((seen.size.as_deref(), seen.zone), (Some("D2]0;x"), None));
    assert_eq!(seen.instance.unwrap().len(), 256);
}

#[test]
fn machine_outside_clouds_queries_no_service() {
    let host = Host::new();
    host.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
    let seen = || cloud(&host, |request| panic!("unexpected request {}", request.line));
    // Without KVM, QEMU has the same firmware.
    assert_eq!((seen().provider, seen().metadata_failure), (Provider::Qemu, None));
    host.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc\n");
    assert_eq!(seen().provider, Provider::Kvm);
}
