//! The section "Test bed": what a run on a bed was measured on, from what the provider claimed and what the guests showed; its file and
//! commands, and what it cost. It judges no disagreement: findings of the hosts do.
use netduel_model::bed::{BedNetwork, BedNic, BedType, BedVm, Placement, RunBed, VfUse, VmFacts, parse};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::Run;
use netduel_model::word::word;

use super::block::{Block, FactGroup, Scope, Section};
use super::chart::{BedDrawing, Chart, DrawnBand, DrawnNic, DrawnVm, Figure, VmRow};
use super::price;
use super::table::{Cell, Column, Table};
use crate::analysis::Analysis;
use crate::words;

/// VMs that stand side by side in the drawing.
const VMS_IN_A_ROW: usize = 2;

/// The section; absent for a run without a bed.
pub fn section(run: &Run, analysis: &Analysis) -> Option<Section> {
    let bed = run.header.bed.as_ref()?;
    let mut blocks = vec![Block::Reading(
        "Each NIC has what Azure claims and what its guest showed before the first trial.".to_owned(),
    )];
    let has_vms = !bed.vms.is_empty();
    if has_vms {
        blocks.push(Block::Figure(Box::new(figure(bed))));
    }
    let facts = FactGroup { rows: facts(&run.header.plan, bed), ..FactGroup::default() };
    blocks.push(Block::Facts(vec![facts]));
    if has_vms {
        blocks.extend([Block::Heading("VMs".to_owned()), Block::Table(vms(bed))]);
    }
    blocks.extend(price::blocks(run, bed, analysis));
    blocks.push(Block::Heading("Repeat the bed".to_owned()));
    blocks.extend(repetition(run, bed));
    let (anchor, title) = ("bed".to_owned(), "Test bed".to_owned());
    Some(Section { anchor, title, scope: Scope::Detail, blocks })
}

fn figure(bed: &RunBed) -> Figure {
    let table = nics(bed);
    let sentences: Vec<String> = table.rows.iter().map(|row| table.sentence(row)).collect();
    Figure {
        title: "Networks, VMs and NICs".to_owned(),
        reading:
            "Rows: subnets. Filled: accelerated networking is on by Azure; dashed: the NIC is not attached."
                .to_owned(),
        alternative: sentences.join("; "),
        chart: Chart::Bed(drawing(bed)),
        data: Some(table),
        in_text: true,
    }
}

fn facts(plan: &ResolvedPlan, bed: &RunBed) -> Vec<(String, String)> {
    let kind =
        bed.kind.map_or_else(|| "deployed by other means".to_owned(), |kind| format!("type {}", word(&kind)));
    let mut rows = vec![
        ("Bed".to_owned(), format!("{} ({kind})", bed.name)),
        ("Resource group".to_owned(), format!("{} in {}", bed.group, bed.region)),
    ];
    if let Some(created) = bed.created_unix_s {
        rows.push(("Created".to_owned(), words::date_and_time(created.saturating_mul(1000))));
    }
    let placements = distinct(bed.vms.iter().filter_map(|vm| vm.claimed.placement.as_deref()));
    rows.push((
        "Placement".to_owned(),
        if placements.is_empty() { "none".to_owned() } else { placements.join(", ") },
    ));
    let hosts =
        plan.hosts.iter().filter_map(|(name, host)| Some(format!("{name} is {}", host.vm.as_deref()?)));
    let hosts: Vec<String> = hosts.collect();
    if !hosts.is_empty() {
        rows.push(("Hosts of the plan".to_owned(), hosts.join(", ")));
    }
    rows
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// A row for each VM; where Azure and guest say different things, both.
fn vms(bed: &RunBed) -> Table {
    let columns = ["size", "zone", "placement", "physical host", "VM id"];
    let mut table = Table::new(vec![Column::key("VM")]);
    table.columns.extend(columns.map(Column::titled));
    let facts: [fn(&VmFacts) -> Option<&str>; 5] = [
        |facts| facts.size.as_deref(),
        |facts| facts.zone.as_deref(),
        |facts| facts.placement.as_deref(),
        |facts| facts.physical_host.as_deref(),
        |facts| facts.id.as_deref(),
    ];
    for vm in &bed.vms {
        let cells = facts.map(|fact| claim_and_sight(fact(&vm.claimed), vm.seen.as_ref().and_then(fact)));
        table.rows.push(std::iter::once(Cell::from(vm.name.clone())).chain(cells).collect());
    }
    table.without_empty_columns()
}

/// A fact of Azure and of the guest: once when both say the same, or one says nothing.
fn claim_and_sight(claimed: Option<&str>, seen: Option<&str>) -> Cell {
    match (claimed, seen) {
        (Some(claimed), Some(seen)) if !claimed.eq_ignore_ascii_case(seen) => {
            Cell::from(format!("{claimed} by Azure, {seen} by the guest"))
        }
        (Some(one), _) | (None, Some(one)) => Cell::from(one),
        (None, None) => Cell::Absent,
    }
}

/// A row for each NIC.
fn nics(bed: &RunBed) -> Table {
    let mut table = Table::new(vec![Column::key("VM"), Column::key("NIC")]);
    let titles = ["subnet", "addresses", "accelerated networking by Azure", "in the guest", "MAC address"];
    table.columns.extend(titles.map(Column::titled));
    for (vm, nic) in bed.vms.iter().flat_map(|vm| vm.nics.iter().map(move |nic| (vm, nic))) {
        let addresses: Vec<String> = nic.addresses.iter().map(ToString::to_string).collect();
        table.rows.push(vec![
            Cell::from(vm.name.clone()),
            Cell::from(nic.name.clone()),
            nic.subnet.clone().map_or(Cell::Absent, Cell::Text),
            if addresses.is_empty() { Cell::Absent } else { Cell::Text(addresses.join(" ")) },
            Cell::from(claimed(nic)),
            seen(vm, nic).map_or(Cell::Absent, |(text, _)| Cell::Text(text)),
            nic.mac.clone().map_or(Cell::Absent, Cell::Text),
        ]);
    }
    table.without_empty_columns()
}

fn claimed(nic: &BedNic) -> String {
    let flag = if nic.is_accelerated { "on" } else { "off" };
    if nic.is_attached { flag.to_owned() } else { format!("{flag}, not attached") }
}

/// What the guest shows of a NIC, and whether it carries traffic by a virtual function. Absent for a guest that was not inspected.
fn seen(vm: &BedVm, nic: &BedNic) -> Option<(String, bool)> {
    vm.seen.as_ref()?;
    let Some(seen) = &nic.seen else {
        return nic.is_attached.then(|| ("no interface with its MAC address".to_owned(), false));
    };
    let driver =
        |driver: &Option<String>| driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default();
    let below = match &seen.vf {
        None => "no virtual function".to_owned(),
        Some(vf) => {
            let model = vf.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
            format!("virtual function {}{}{model}: {}", vf.name, driver(&vf.driver), state(vf.state))
        }
    };
    let is_used = seen.vf.as_ref().is_some_and(|vf| vf.state.carries());
    Some((format!("{}{}, {below}", seen.interface, driver(&seen.driver)), is_used))
}

fn state(state: VfUse) -> &'static str {
    match state {
        VfUse::Active => "active",
        VfUse::Paired => "paired",
        VfUse::Idle => "paired, no packets yet",
        VfUse::Down => "down",
        VfUse::Unpaired => "not paired",
        VfUse::NoDriver => "no driver",
        VfUse::NoInterface => "no interface",
    }
}

fn drawing(bed: &RunBed) -> BedDrawing {
    let rows = bed
        .vms
        .chunks(VMS_IN_A_ROW)
        .map(|vms| VmRow { vms: vms.iter().map(|vm| drawn_vm(bed, vm)).collect(), bands: bands(vms) });
    BedDrawing {
        label: format!("Networks, VMs and NICs of the bed {}; the same stands in its table", bed.name),
        title: format!("virtual network of {} in {}", bed.group, bed.region),
        rows: rows.collect(),
    }
}

fn drawn_vm(bed: &RunBed, vm: &BedVm) -> DrawnVm {
    let facts = |pick: fn(&VmFacts) -> Option<&String>| {
        pick(&vm.claimed).or_else(|| vm.seen.as_ref().and_then(pick)).cloned()
    };
    let zone = facts(|facts| facts.zone.as_ref()).map(|zone| format!("zone {zone}"));
    let has_groups = bed.vms.iter().any(|vm| vm.claimed.placement.is_some());
    let placement = match facts(|facts| facts.placement.as_ref()) {
        None => has_groups.then(|| "no placement group".to_owned()),
        own => own,
    };
    let host = facts(|facts| facts.physical_host.as_ref()).map(|host| format!("on {host}"));
    let lines = [facts(|facts| facts.size.as_ref()), zone, placement, host];
    DrawnVm { name: vm.name.clone(), lines: lines.into_iter().flatten().collect() }
}

/// The subnets of these VMs from top to bottom, each with the NIC of each VM in it. Subnets of one network are one row.
fn bands(vms: &[BedVm]) -> Vec<DrawnBand> {
    let key = |nic: &BedNic| (nic.network, if nic.network.is_some() { None } else { nic.subnet.clone() });
    let mut keys: Vec<(Option<BedNetwork>, Option<String>)> = Vec::new();
    for nic in vms.iter().flat_map(|vm| &vm.nics) {
        if !keys.contains(&key(nic)) {
            keys.push(key(nic));
        }
    }
    keys.into_iter()
        .map(|own| {
            let nics = vms.iter().map(|vm| {
                vm.nics.iter().filter(|nic| key(nic) == own).map(|nic| drawn_nic(vm, nic)).collect()
            });
            let subnets = vms.iter().flat_map(|vm| &vm.nics).filter(|nic| key(nic) == own);
            let subnets = distinct(subnets.filter_map(|nic| nic.subnet.as_deref()));
            let title = if subnets.is_empty() {
                "no subnet".to_owned()
            } else {
                format!("subnet {}", subnets.join(", "))
            };
            DrawnBand { title, nics: nics.collect() }
        })
        .collect()
}

fn drawn_nic(vm: &BedVm, nic: &BedNic) -> DrawnNic {
    let mut lines: Vec<String> = nic.addresses.iter().map(ToString::to_string).collect();
    if let Some(public) = nic.public_address {
        lines.push(format!("ssh {public}"));
    }
    lines.push(format!("Azure: {}", claimed(nic)));
    let short = nic.seen.as_ref().map(|seen| match &seen.vf {
        None => "no VF".to_owned(),
        Some(vf) => format!("VF {}", state(vf.state)),
    });
    let is_used = seen(vm, nic).is_some_and(|(_, is_used)| is_used);
    let guest = short.map(|text| (format!("guest: {text}"), is_used == nic.is_accelerated));
    DrawnNic {
        name: nic.name.clone(),
        lines,
        guest,
        is_accelerated: nic.is_accelerated,
        is_attached: nic.is_attached,
    }
}

/// The file of the bed, and the commands that print its template and create, run and delete the same bed.
fn repetition(run: &Run, bed: &RunBed) -> Vec<Block> {
    let Some(kind) = bed.kind else {
        let group = words::plain(&bed.group);
        return vec![Block::Code(vec![format!("# the resource group {group} was not deployed by netduel")])];
    };
    let name = words::bed_name(bed);
    let hash = bed.template_sha256.as_deref().map(words::plain);
    let compared = hash.map(|hash| {
        format!(
            " The template of the bed has the SHA-256 {hash}: `netduel azure template {name}.toml | sha256sum` prints this hash \
             if your template is the same."
        )
    });
    let (reading, lines) = match &bed.file {
        Some(text) => (
            format!(
                "{name}.toml with every default written out. The keys `subscription`, `ssh_key` and `ssh_from` are not in it: they are yours. \
                 The ARM template follows from this file. The run had {}; another version may write another template.{}",
                words::plain(&run.header.program),
                compared.unwrap_or_default()
            ),
            text.lines().map(words::plain).collect(),
        ),
        None => (
            format!("{name}.toml as far as the run knows it: families, subnets and image are missing."),
            known_keys(bed, kind),
        ),
    };
    let changes = changes(bed).join(", ");
    let changed = (!changes.is_empty())
        .then(|| Block::Reading(format!("Azure claimed otherwise when the run began: {changes}.")));
    // By its file, which names the subscription where its user has to: a run does not keep that.
    let commands = vec![
        format!("netduel azure template {name}.toml          # the ARM template"),
        format!("netduel azure up {name}.toml --ssh-from ADDRESS/32"),
        format!("netduel azure run PLAN.toml --bed {name}.toml   # the plan is in \"Reproduction\""),
        format!("netduel azure down {name}.toml"),
    ];
    let subscription = Block::Reading(
        "`up`, `run` and `down` use the subscription that the key `subscription` of the file names, or else the current one of `az`."
            .to_owned(),
    );
    let file = [Block::Reading(reading), Block::Code(lines)];
    file.into_iter().chain(changed).chain([subscription, Block::Code(commands)]).collect()
}

/// The keys of a bed whose tags have no file, from what Azure claims.
fn known_keys(bed: &RunBed, kind: BedType) -> Vec<String> {
    let size = bed.vms.iter().find_map(|vm| vm.claimed.size.as_deref()).unwrap_or("SIZE");
    let zone = bed.vms.iter().find_map(|vm| vm.claimed.zone.as_deref());
    let mut lines = vec![
        format!("name = \"{}\"", words::plain(&bed.name)),
        format!("type = \"{}\"", word(&kind)),
        format!("region = \"{}\"", words::plain(&bed.region)),
        format!("size = \"{}\"", words::plain(size)),
        format!("placement = \"{}\"", word(&bed.placement)),
    ];
    lines.extend(zone.map(|zone| format!("zone = {}", words::plain(zone))));
    lines
}

/// What Azure claims of the bed in place of what its file says: the bed, or the tags of its group, changed after its creation.
fn changes(bed: &RunBed) -> Vec<String> {
    let file = bed.file.as_deref().and_then(|text| parse(text, "the run").ok());
    let Some(file) = file else { return Vec::new() };
    let claimed =
        |pick: fn(&VmFacts) -> Option<&str>| distinct(bed.vms.iter().filter_map(|vm| pick(&vm.claimed)));
    let zone = file.zone.map(|zone| zone.to_string());
    let sizes = claimed(|facts| facts.size.as_deref());
    let sizes = sizes.into_iter().filter(|size| !size.eq_ignore_ascii_case(&file.size.name));
    let zones = claimed(|facts| facts.zone.as_deref());
    let zones = zones.into_iter().filter(|claimed| Some(*claimed) != zone.as_deref());
    // A size whose VM has its host to itself is recognized also where the file does not ask for it.
    let is_same = bed.placement == file.placement
        || (bed.placement == Placement::IsolatedSize && file.placement == Placement::None);
    let placement = (!is_same).then(|| format!("placement {}", word(&bed.placement)));
    let sizes = sizes.map(|size| format!("size {size}"));
    let zones = zones.map(|zone| format!("zone {zone}"));
    sizes.chain(zones).chain(placement).map(|change| words::plain(&change)).collect()
}
