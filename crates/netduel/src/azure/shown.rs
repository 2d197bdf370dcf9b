//! Beds as text and as JSON. Nothing is printed here.
use std::fmt::Write as _;
use std::net::IpAddr;

use netduel_azure::command;
use netduel_azure::deployment::groups::Group;
use netduel_azure::deployment::{DatedPrice, Host, quotas};
use netduel_azure::tags::Tags;
use netduel_model::bed::layout::{End, Nic, NicUse};
use netduel_model::bed::money::Money;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{Bed, Layout};
use netduel_model::units::{human_bit_rate, plural};
use netduel_model::word::word;
use netduel_report::json::bed::{BedHost, BedHostNic, DeployedBed, Price};
use netduel_report::json::envelope::iso_8601;

use super::prices::CheckPrice;

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;

/// A checked bed. `was_looked_up`: the price was looked up for this check, perhaps without an answer.
pub fn checked(file: &str, bed: &Bed, price: Option<&CheckPrice>, was_looked_up: bool) -> String {
    let (layout, size) = (Layout::of(bed), bed.size);
    let zone = bed.zone.map(|zone| format!(", zone {zone}")).unwrap_or_default();
    let rate = human_bit_rate(size.rate().0 as f64);
    let doubt = if size.doubt.is_empty() { String::new() } else { format!("; {}", size.doubt) };
    let arms = if size.can_be_synthetic() {
        "accelerated networking on or off for each NIC"
    } else {
        "accelerated networking on for every NIC: the size requires it, so there is no arm without it"
    };
    let unknown = || format!("the quota of {} (netduel does not know its name)", size.series());
    let family = size.quota_family().map_or_else(unknown, str::to_owned);
    let quotas = quotas(bed, &family).join(" and of ");
    let mut text = format!(
        "{file} is a valid bed: {} in {}{zone}\n  size       {}: {} vCPUs, {} NICs at most, {rate} for all NICs ({}{doubt})\n  \
         quota      {} vCPUs of {quotas} in {}\n  NICs       {arms}\n  image      {}{}\n  placement  {}\n  networks   {}, {} for each test network\n",
        word(&bed.kind),
        bed.region,
        size.name,
        size.vcpus,
        size.nics,
        size.source(),
        layout.vcpus(bed),
        bed.region,
        word(&bed.image),
        if bed.is_spot { ", Spot VMs" } else { "" },
        word(&bed.placement),
        word(&bed.families),
        plural(bed.subnets, "subnet"),
    );
    for vm in &layout.vms {
        let end = if vm.end == End::Client { "client" } else { "server" };
        let nics: Vec<String> = vm.nics.iter().map(nic).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<9}  {end}: {}", vm.name, nics.join(", "));
    }
    let sysctls = bed.sysctls.0.iter().map(|(name, value)| format!("{name} = {value}"));
    let sysctls: Vec<String> = sysctls.collect();
    if !sysctls.is_empty() {
        let _ = writeln!(text, "  sysctls    {}", sysctls.join("; "));
    }
    let shutdown = if let Some(time) = bed.shutdown {
        format!("every day at {time} UTC")
    } else {
        let down = command::down(&bed.name, bed.subscription.as_deref());
        format!("never: the VMs cost money until `{down}`")
    };
    let _ = writeln!(text, "  ssh        {}\n  shutdown   {shutdown}", ssh(bed));
    if let Some(budget) = &bed.budget {
        let until = if bed.shutdown.is_some() {
            format!("until the next shutdown in {} min or more", ShutdownTime::CREATION_MIN)
        } else {
            "in 24 h".to_owned()
        };
        let _ = writeln!(text, "  budget     at most {budget} {until}");
    }
    let price = price_words(price, layout.vms.len(), &bed.region, was_looked_up);
    let _ = writeln!(text, "  price      {price}");
    text
}

/// The price of all VMs, with its date and what it is worth.
fn price_words(price: Option<&CheckPrice>, vms: usize, region: &str, was_looked_up: bool) -> String {
    let Some(CheckPrice { dated: DatedPrice { of_vm, read_unix_s }, is_estimate }) = price else {
        let remedy = "; --price looks it up, and `netduel azure up` before anything is created";
        return format!("unknown{}", if was_looked_up { "" } else { remedy });
    };
    let (all, day) = (of_vm.times(vms as f64), day(*read_unix_s));
    if !is_estimate {
        return format!("{all} an hour for all VMs, as of {day}; `netduel azure up` looks it up again");
    }
    let estimate = format!("estimate: {all} an hour for all VMs (list price of {region}, {day}");
    let remedy = "; --price looks it up, and `netduel azure up` before anything is created)";
    format!("{estimate}{}", if was_looked_up { ")" } else { remedy })
}

/// The day of a time in seconds since 1970-01-01T00:00:00Z, for example `2026-11-22`.
pub fn day(unix_s: u64) -> String {
    iso_8601(unix_s.saturating_mul(1000)).chars().take(10).collect()
}

/// The prefixes that may connect.
fn ssh(bed: &Bed) -> String {
    if bed.ssh_from.is_empty() {
        return "from the addresses of --ssh-from, or that of this machine where it is public".to_owned();
    }
    let prefixes: Vec<String> = bed.ssh_from.iter().map(ToString::to_string).collect();
    format!("from {}", prefixes.join(", "))
}

/// A NIC with what matters of it.
fn nic(nic: &Nic) -> String {
    let mut marks = Vec::new();
    if nic.has_public_address {
        marks.push("ssh");
    }
    if nic.is_accelerated {
        marks.push("accelerated");
    }
    if nic.used_for == NicUse::Spare {
        marks.push("not attached");
    }
    if marks.is_empty() { nic.name.clone() } else { format!("{} ({})", nic.name, marks.join(", ")) }
}

/// A bed in a listing for this user, with a line end.
pub fn listed(group: &Group, tags: &Tags, user: Option<&str>, now_unix_s: u64) -> String {
    let age = age(tags, now_unix_s);
    let cost = match (&tags.price, cost_at_most(tags, now_unix_s)) {
        (Some(price), Some(cost)) => format!("{price} an hour, at most {cost} so far"),
        (Some(price), None) => format!("{price} an hour"),
        (None, _) => "price unknown".to_owned(),
    };
    let shutdown = match tags.shutdown.as_deref() {
        Some(ShutdownTime::OFF) => "no shutdown".to_owned(),
        Some(time) => format!("shutdown at {time} UTC"),
        None => "shutdown unknown".to_owned(),
    };
    let owner = if tags.is_of_other(user) { ", of another user" } else { "" };
    let state = if group.is_being_deleted() { ", being deleted" } else { "" };
    format!("{}  {}, {age}, {cost}, {shutdown}{owner}{state}\n", tags.bed, group.location)
}

/// A bed of a listing in JSON.
pub fn listed_bed(group: &Group, tags: &Tags, now_unix_s: u64) -> DeployedBed {
    let bed = deployed(&group.name, &group.location, tags, now_unix_s);
    DeployedBed { is_being_deleted: group.is_being_deleted(), ..bed }
}

/// A bed that Azure is not deleting in JSON, without its hosts.
pub fn deployed(group: &str, region: &str, tags: &Tags, now_unix_s: u64) -> DeployedBed {
    let created_unix_ms = tags.created_unix_s.and_then(|seconds| seconds.checked_mul(1000));
    DeployedBed {
        name: tags.bed.clone(),
        group: group.to_owned(),
        region: region.to_owned(),
        created: created_unix_ms.map(iso_8601),
        created_unix_ms,
        price_per_hour: tags.price.as_ref().map(Price::of),
        cost_at_most: cost_at_most(tags, now_unix_s).as_ref().map(Price::of),
        shutdown: tags.shutdown.clone(),
        is_being_deleted: false,
        hosts: Vec::new(),
    }
}

/// The age of a bed in words, for example `3 days old`.
pub fn age(tags: &Tags, now_unix_s: u64) -> String {
    match hours(tags, now_unix_s) {
        Some(hours) if hours < 1.0 => format!("{:.0} min old", hours * 60.0),
        Some(hours) if hours < 48.0 => format!("{hours:.1} h old"),
        Some(hours) => format!("{:.0} days old", hours / 24.0),
        None => "age unknown".to_owned(),
    }
}

/// The age of a bed, hours.
fn hours(tags: &Tags, now_unix_s: u64) -> Option<f64> {
    let age_s = now_unix_s.checked_sub(tags.created_unix_s?)?;
    Some(age_s as f64 / HOUR_S)
}

/// What the VMs have cost if they ran since the bed was created.
fn cost_at_most(tags: &Tags, now_unix_s: u64) -> Option<Money> {
    Some(tags.price.as_ref()?.times(hours(tags, now_unix_s)?))
}

/// The destination of a VM for ssh.
fn destination(host: &Host) -> String {
    format!("{}@{}", Bed::USER, host.public)
}

fn addresses(ipv4: IpAddr, ipv6: Option<IpAddr>) -> Vec<IpAddr> {
    std::iter::once(ipv4).chain(ipv6).collect()
}

/// The VMs of a bed in JSON.
pub fn hosts(hosts: &[Host]) -> Vec<BedHost> {
    let nics = |host: &Host| {
        let nic = |nic: &netduel_azure::deployment::HostNic| BedHostNic {
            name: nic.name.clone(),
            addresses: addresses(nic.ipv4, nic.ipv6),
        };
        host.nics.iter().map(nic).collect()
    };
    hosts
        .iter()
        .map(|host| BedHost { name: host.name.clone(), ssh: destination(host), nics: nics(host) })
        .collect()
}

/// The VMs of a bed with the command that logs in, a line for each.
pub fn host_lines(hosts: &[Host]) -> String {
    let mut text = String::new();
    for host in hosts {
        let nics: Vec<String> = host
            .nics
            .iter()
            .map(|nic| {
                let addresses: Vec<String> =
                    addresses(nic.ipv4, nic.ipv6).iter().map(ToString::to_string).collect();
                format!("{} {}", nic.name, addresses.join(" "))
            })
            .collect();
        let _ = writeln!(text, "  {}  ssh {}; {}", host.name, destination(host), nics.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use netduel_azure::deployment::groups::GroupProperties;
    use netduel_azure::deployment::list_price;
    use netduel_model::bed::BedSpec;

    use super::*;

    fn group(state: &str) -> Group {
        Group {
            name: "netduel-x".to_owned(),
            location: "westeurope".to_owned(),
            tags: None,
            properties: Some(GroupProperties { provisioning_state: state.to_owned() }),
        }
    }

    fn tags(price: Option<&str>) -> Tags {
        Tags {
            bed: "x".to_owned(),
            created_unix_s: Some(1_795_343_407),
            owner: Some("me".to_owned()),
            price: price.map(|price| price.parse().expect("a price")),
            price_read_unix_s: None,
            template_sha256: None,
            shutdown: Some("19:00".to_owned()),
            kind: None,
            keys: BedSpec::default(),
        }
    }

    #[test]
    fn listing_has_age_price_and_cost() {
        let now = 1_795_343_407 + 5400;
        let here = group("Succeeded");
        assert_eq!(
            listed(&here, &tags(Some("2.00 EUR")), Some("me"), now),
            "x  westeurope, 1.5 h old, 2.00 EUR an hour, at most 3.00 EUR so far, shutdown at 19:00 UTC\n"
        );
        let young = listed(&here, &tags(None), None, 1_795_343_407 + 120);
        assert!(young.contains(", 2 min old, "), "{young}");
        let unknown = listed(&here, &tags(None), Some("other"), now + 72 * 3600);
        assert!(unknown.contains("3 days old, price unknown"), "{unknown}");
        assert!(unknown.ends_with(", shutdown at 19:00 UTC, of another user\n"), "{unknown}");
        let gone = listed(&group("Deleting"), &tags(None), None, now);
        assert!(gone.ends_with(", shutdown at 19:00 UTC, being deleted\n"), "{gone}");
        let json = listed_bed(&group("Deleting"), &tags(None), now);
        assert!(json.is_being_deleted);
        let json = listed_bed(&here, &tags(Some("2.00 EUR")), now);
        assert!(!json.is_being_deleted);
        assert_eq!(json.created.as_deref(), Some("2026-11-22T10:30:07.000Z"));
        assert_eq!(json.cost_at_most, Some(Price { amount: 3.0, currency: "EUR".to_owned() }));
    }

    #[test]
    fn checked_bed_shows_size_quota_and_nics() {
        let text = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\nbudget = \"20 EUR\"\n";
        let bed = netduel_model::bed::parse(text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let dated = DatedPrice { of_vm: "0.5 EUR".parse().expect("a price"), read_unix_s: 1_795_343_407 };
        let mut price = CheckPrice { dated, is_estimate: false };
        let text = checked("x.toml", &bed, Some(&price), false);
        assert!(text.contains("  price      1.00 EUR an hour for all VMs, as of 2026-11-22; "), "{text}");
        price.is_estimate = true;
        let estimate = "estimate: 1.00 EUR an hour for all VMs (list price of westeurope, 2026-11-22";
        let text = checked("x.toml", &bed, Some(&price), false);
        assert!(text.contains(&format!("{estimate}; --price looks it up, and `netduel azure ")), "{text}");
        let text = checked("x.toml", &bed, Some(&price), true);
        assert!(text.contains(&format!("{estimate})\n")), "{text}");
        let text = checked("x.toml", &bed, None, true);
        assert!(text.contains("  price      unknown\n"), "{text}");
        let text = checked("x.toml", &bed, None, false);
        assert!(text.contains("  price      unknown; "), "{text}");
        for part in [
            "x.toml is a valid bed: two-nic in westeurope\n",
            "Standard_DS4_v2: 8 vCPUs, 8 NICs at most, 6.00 Gbit/s for all NICs (dsv2-series of 2024-07-29)",
            "quota      16 vCPUs of standardDSv2Family and of cores in westeurope\n",
            "image      ubuntu-24.04\n  placement  none\n  networks   ipv4, 1 subnet for each test network\n",
            "ssh        from the addresses of --ssh-from",
            "vm1        client: vm1-management (ssh), vm1-synthetic, vm1-accelerated (accelerated)\n",
            "shutdown   every day at 19:00 UTC\n  budget     at most 20.00 EUR until the next shutdown in 60 min or more\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn estimate_has_the_date_that_the_table_of_list_prices_has_beside_its_source() {
        let text = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\n";
        let bed = netduel_model::bed::parse(text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let dated = list_price::of_vm(&bed).expect("the table has the size");
        let date = day(dated.read_unix_s);
        let table = include_str!("../../../netduel-azure/src/deployment/list_price.csv");
        assert!(table.contains(&format!("# Date: {date}, ")) && table.contains("# Source: "), "{date}");
        let checked = checked("x.toml", &bed, Some(&CheckPrice { dated, is_estimate: true }), false);
        assert!(checked.contains(&format!("(list price of westeurope, {date}; ")), "{checked}");
    }

    #[test]
    fn bed_without_a_shutdown_names_the_command_that_ends_its_costs() {
        let of = |more: &str| {
            let text = format!(
                "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\nshutdown = \"off\"\n{more}"
            );
            let bed = netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
            checked("x.toml", &bed, None, false)
        };
        let current = of("");
        assert!(current.contains("the VMs cost money until `netduel azure down x`\n"), "{current}");
        let named = of("subscription = \"paid\"\n");
        assert!(named.contains("until `netduel azure down x --subscription paid`\n"), "{named}");
    }

    #[test]
    fn checked_bed_shows_its_sysctls_and_none_without_them() {
        let of = |more: &str| {
            let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\n{more}");
            let bed = netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
            checked("x.toml", &bed, None, false)
        };
        assert!(!of("").contains("sysctls"));
        let text = of("[sysctls]\n\"net.ipv4.tcp_rmem\" = \"1 2 3\"\n\"net.core.somaxconn\" = \"4096\"\n");
        let line = "\n  sysctls    net.core.somaxconn = 4096; net.ipv4.tcp_rmem = 1 2 3\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn quota_is_that_of_spot_vms_or_unknown_where_the_table_has_none() {
        let of = |size: &str, more: &str| {
            let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"{size}\"\n{more}");
            let bed = netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
            checked("x.toml", &bed, None, false)
        };
        let spot = of("Standard_DS4_v2", "spot = true\n");
        assert!(spot.contains("quota      16 vCPUs of lowPriorityCores in westeurope\n"), "{spot}");
        let unknown = of("Standard_D4ns_v6", "");
        let quota = "of the quota of dnsv6-series (netduel does not know its name) and of cores in ";
        assert!(unknown.contains(quota), "{unknown}");
    }
}
