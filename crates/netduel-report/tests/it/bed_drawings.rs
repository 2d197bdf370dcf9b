//! The drawing of each bed of `beds/`, as Azure claims it after its deployment.
use std::collections::BTreeSet;
use std::net::IpAddr;

use netduel_model::bed::{BedType, Placement, RunBed};
use netduel_model::run::Run;
use netduel_model::word::word;
use netduel_report::{document, html};

use crate::bed::run_on;

/// A run on a bed of `beds/`, with addresses, placement and zone of its VMs.
pub fn deployed(kind: BedType) -> Run {
    let mut run = run_on(word(&kind));
    let bed = run.header.bed.as_mut().unwrap();
    let group = match bed.placement {
        Placement::ProximityGroup => Some("netduel-proximity"),
        Placement::AvailabilitySet => Some("netduel-availability"),
        Placement::None | Placement::IsolatedSize => None,
    };
    let subnets = subnets(bed);
    for (vm, host) in bed.vms.iter_mut().zip(4_u8..) {
        vm.claimed.placement = group.map(str::to_owned);
        vm.nics[0].public_address = Some(IpAddr::from([192, 0, 2, host + 3]));
        let mut used: Vec<usize> = Vec::new();
        for nic in &mut vm.nics {
            let number = subnets.iter().position(|subnet| Some(subnet) == nic.subnet.as_ref()).unwrap();
            // A further NIC of the VM in a subnet has an address beyond those of the first ones.
            let earlier = used.iter().filter(|one| **one == number).count() as u8;
            nic.addresses = vec![IpAddr::from([10, 77, number as u8, host + 16 * earlier])];
            used.push(number);
        }
    }
    run
}

fn subnets(bed: &RunBed) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for subnet in bed.vms.iter().flat_map(|vm| &vm.nics).filter_map(|nic| nic.subnet.clone()) {
        if !all.contains(&subnet) {
            all.push(subnet);
        }
    }
    all
}

/// The drawing of a bed in the report of a run.
fn drawing(run: &Run) -> String {
    drawing_of(run, "Networks, VMs and NICs of the bed ")
}

/// The drawing with this label in the report of a run, a line for each element.
pub fn drawing_of(run: &Run, label: &str) -> String {
    let page = html::page(&document(run));
    let label = page.find(&format!("aria-label=\"{label}")).unwrap();
    let start = page[..label].rfind("<svg").unwrap();
    let end = start + page[start..].find("</svg>").unwrap();
    page[start..end].replace("><", ">\n<") + "</svg>\n"
}

/// The number of an attribute of an element.
fn number(element: &str, attribute: &str) -> f64 {
    let (_, after) = element.split_once(&format!(" {attribute}=\"")).unwrap_or_else(|| panic!("{element}"));
    after.split('"').next().unwrap().parse().unwrap()
}

/// What a drawing must show of a bed, and that nothing of it is cut off.
fn assert_shows(bed: &RunBed, drawing: &str) {
    let nics = || bed.vms.iter().flat_map(|vm| &vm.nics);
    let own: BTreeSet<&IpAddr> = nics().flat_map(|nic| &nic.addresses).collect();
    assert_eq!(own.len(), nics().count(), "each NIC has an address of its own");
    let names = bed.vms.iter().map(|vm| &vm.name).chain(nics().map(|nic| &nic.name));
    let addresses = nics().flat_map(|nic| nic.addresses.iter().chain(&nic.public_address));
    let texts: Vec<String> =
        names.cloned().chain(addresses.map(ToString::to_string)).chain(subnets(bed)).collect();
    for text in texts {
        assert!(drawing.contains(&text), "{text} is not drawn:\n{drawing}");
    }
    assert!(!drawing.contains('…'), "a text is shortened:\n{drawing}");
    let boxes = |class: &str| drawing.matches(&format!("class=\"{class}\"")).count();
    let serves = nics().filter(|nic| nic.is_attached && nic.is_accelerated).count();
    let withheld = nics().filter(|nic| !nic.is_attached).count();
    assert_eq!((boxes("cell serves"), boxes("cell withheld")), (serves, withheld), "{drawing}");
    assert_eq!(boxes("cell"), nics().count() - serves - withheld, "{drawing}");
    assert_within_frame(drawing);
}

/// Asserts that no box of a drawing leaves it.
pub fn assert_within_frame(drawing: &str) {
    let frame = drawing.lines().next().unwrap();
    let (width, height) = (number(frame, "width"), number(frame, "height"));
    for element in drawing.lines().filter(|line| line.starts_with("<rect")) {
        let is_within = number(element, "x") + number(element, "width") <= width
            && number(element, "y") + number(element, "height") <= height;
        assert!(is_within, "{element} is outside of {frame}");
    }
}

/// The drawing as a picture of its own, with the colours and the rules of the page.
fn picture(drawing: &str) -> String {
    let style = include_str!("../../assets/style.css");
    let colours = style.find(":root {").unwrap()..style.find("* { box-sizing").unwrap();
    let rules: Vec<&str> = style.lines().filter(|line| line.starts_with(".topology ")).collect();
    let font = "svg { font-family: system-ui, sans-serif; background: var(--paper); }";
    let style = format!("<style>\n{}{font}\n{}\n</style>\n", &style[colours], rules.join("\n"));
    let drawing = drawing.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    let (opening, elements) = drawing.split_once('\n').unwrap();
    format!("{opening}\n{style}{elements}")
}

/// Compares a picture with the one of docs/beds.md, or writes that for `cargo xtask bless`.
fn assert_is_in_docs(kind: &str, picture: &str) {
    let file = format!("docs/images/bed-{kind}.svg");
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, picture).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == picture, "{file} is not current: run `cargo xtask bless` and commit it");
}

#[test]
fn drawing_of_each_bed_has_its_vms_nics_and_subnets() {
    for kind in BedType::ALL {
        let run = deployed(kind);
        let drawing = drawing(&run);
        assert_shows(run.header.bed.as_ref().unwrap(), &drawing);
        assert_is_in_docs(word(&kind), &picture(&drawing));
        insta::assert_snapshot!(format!("bed_{}", word(&kind).replace('-', "_")), drawing);
    }
}
