//! `netduel azure up`: creates a bed with progress by resource. After the first request every error says what exists and how to delete it.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

use netduel_azure::az::Az;
use netduel_azure::deployment::up::{Prepared, create, prepare};
use netduel_azure::deployment::{BedError, Host, State, Step, inventory, progress};
use netduel_azure::ssh_key::{PublicKey, TEXT_LEN_MAX};
use netduel_azure::template;
use netduel_model::bed::Bed;
use netduel_model::bed::prefix::Prefix;
use netduel_model::shell;
use netduel_model::user_folder::UserFolder;

use super::bed_file::{read_bed, read_text};
use super::document::print_beds;
use super::known::{BED_DRAFT, BED_FILE, PARAMETERS};
use super::session::{az, failed, now_unix_s};
use super::{host_keys, known, old, prices, shown};
use crate::console::{print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _, unwritten};
use crate::output_file::{self, Readers};
use crate::program;

/// A public address, to which the route is looked up. Nothing is sent to it.
const PUBLIC: (Ipv4Addr, u16) = (Ipv4Addr::new(1, 1, 1, 1), 9);

/// Runs the command.
pub fn command(path: &Path, ssh_from: &[Prefix], json: bool) -> Result<(), Failure> {
    let bed = read_bed(path)?;
    let prefixes = ssh_prefixes(&bed, ssh_from)?;
    let key = read_key(&bed.ssh_key)?;
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    let doing = format!("create the bed {}", bed.name);
    let prepared =
        prepare(az, &bed, now_unix_s(), prices::known(&bed)).map_err(|error| refused(&doing, error))?;
    prepared.price.iter().for_each(|price| prices::keep(&bed, price));
    old::warn(az, &prepared.subscription, None, None, now_unix_s());
    announce(&bed, &prepared);
    if !prepared.exists {
        host_keys::forget(&bed.name);
    }
    known::note(&bed.name, None);
    let files = Files::write(&bed, &prepared, &key, &prefixes).inspect_err(|_| {
        // Nothing was requested: a bed that exists is where it was.
        if prepared.exists {
            known::note(&bed.name, Some(&prepared.subscription));
        }
    })?;
    let mut resources = BTreeMap::new();
    let created = created(az, &bed, &prepared, &files, &mut resources);
    files.remove_draft(created.as_ref().err());
    known::note(&bed.name, Some(&prepared.subscription));
    let down = prepared.subscription.down(&bed.name);
    let commands = (up_command(path, ssh_from), down.as_str());
    let hosts = created.map_err(|error| with_remains(&doing, error, &bed, &commands, &resources))?;
    let runs = tell_stopped(az, &bed, &prepared);
    if json {
        let mut deployed = shown::deployed(&bed.group(), &bed.region, &prepared.tags, now_unix_s());
        deployed.hosts = shown::hosts(&hosts);
        return print_beds(vec![deployed], Vec::new());
    }
    let name = &bed.name;
    print_lines(&format!(
        "the bed {name} {} in {}\n{}  cloud-init may still install packages: `cloud-init status --wait` in each VM ends when it is ready\n  \
         delete the bed with: {down}\n",
        if runs { "is up" } else { "exists" },
        bed.region,
        shown::host_lines(&hosts)
    ))
}

/// The prefixes that may connect by ssh: those of the command line, else those of the bed, else the address of this machine where it is public.
fn ssh_prefixes(bed: &Bed, ssh_from: &[Prefix]) -> Result<Vec<Prefix>, Failure> {
    let given = [ssh_from, bed.ssh_from.as_slice()];
    if let Some(given) = given.into_iter().find(|prefixes| !prefixes.is_empty()) {
        return Ok(given.to_vec());
    }
    let Some(own) = own_address().and_then(Prefix::of_public) else {
        let text = format!("failed to create the bed {}: no address may connect by ssh", bed.name);
        return Err(Failure::message(Kind::Usage, text).remedy(
            "add --ssh-from ADDRESS/32 with the address with which this machine appears to Azure, or `ssh_from` to the bed; \
             `ssh HOST 'echo $SSH_CONNECTION'` prints it as the first word where HOST is outside of your network, and the Azure portal \
             shows it for an inbound rule with the source \"My IP address\"",
        ));
    };
    tell(&format!("only {own} may connect by ssh: the address of this machine; --ssh-from names another"));
    Ok(vec![own])
}

/// The source address of the route to a public address. To connect a datagram socket only looks up the route: no packet is sent.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(PUBLIC).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Warns of VMs that do not run, because a deployment starts no VM that exists; whether there are none. The bed is complete in any case.
fn tell_stopped(az: &mut dyn Az, bed: &Bed, prepared: &Prepared) -> bool {
    let vms = match inventory::stopped(az, bed, &prepared.subscription) {
        Ok(vms) => vms,
        Err(error) => {
            tell(&format!("warning: the states of the VMs are unknown: {error}"));
            return false;
        }
    };
    if vms.is_empty() {
        return true;
    }
    let stopped = BedError::Stopped { bed: bed.name.clone(), vms };
    let run = prepared.subscription.command("netduel azure run");
    tell(&format!("warning: {stopped}; `{run}` with --start starts its VMs"));
    false
}

/// An error before anything is created.
fn refused(doing: &str, error: BedError) -> Failure {
    let remedy = match error {
        BedError::NotOurs { .. } => "give the bed another name",
        BedError::OfOther { .. } => "give the new bed another name, or remove the tag if the bed is yours",
        _ => return failed(doing, error),
    };
    failed(doing, error).remedy(remedy)
}

/// Says what will be created, and what it costs.
fn announce(bed: &Bed, prepared: &Prepared) {
    let price = match &prepared.tags.price {
        Some(price) => format!("{price} an hour without disks, addresses and traffic"),
        None => "price unknown".to_owned(),
    };
    let date = match prepared.price.as_ref().filter(|_| prepared.is_price_earlier) {
        Some(price) => format!(" (as of {}: prices cannot be looked up now)", shown::day(price.read_unix_s)),
        None => String::new(),
    };
    let verb = if prepared.exists { "completing" } else { "creating" };
    tell(&format!(
        "{verb} the bed {} in {}, subscription {}: {price}{date}",
        bed.name, bed.region, prepared.subscription.name
    ));
}

/// Requests the deployment and waits for its end. `resources` has the last state of each resource, also after an error. The file of the bed is
/// stored when Azure has accepted the deployment: a refused one changes no bed. Template and parameters stay, also those of a refused one.
fn created(
    az: &mut dyn Az,
    bed: &Bed,
    prepared: &Prepared,
    files: &Files,
    resources: &mut BTreeMap<String, State>,
) -> Result<Vec<Host>, BedError> {
    create(az, bed, prepared, &files.template, &files.parameters, &mut || files.store_bed())?;
    progress::watch(az, bed, &prepared.subscription, &mut |step: &Step| {
        resources.insert(step.resource.clone(), step.state);
        tell(&format!("  {} {}", step.resource, state_words(step.state)));
    })
}

fn state_words(state: State) -> &'static str {
    match state {
        State::Running => "in progress",
        State::Succeeded => "created",
        State::Failed => "failed",
    }
}

/// An error after the first request, with what exists, as far as it is known, and the commands that complete and that delete it.
fn with_remains(
    doing: &str,
    error: BedError,
    bed: &Bed,
    (again, down): &(String, &str),
    resources: &BTreeMap<String, State>,
) -> Failure {
    let listed = |state: State| {
        let own = resources.iter().filter(|(_, known)| **known == state);
        let names: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{}: {}", state_words(state), names.join(", ")))
    };
    let parts: Vec<String> = [State::Succeeded, State::Running].into_iter().filter_map(listed).collect();
    let exists = if parts.is_empty() {
        "may exist with a part of the bed and cost money".to_owned()
    } else {
        format!("has a part of the bed, which costs money ({})", parts.join("; "))
    };
    let unscheduled = match error.perhaps_running().join(", ") {
        vms if vms.is_empty() => vms,
        vms if bed.shutdown.is_none() => {
            format!("; {vms} failed and may run, and the bed has no daily shutdown")
        }
        vms => format!("; {vms} failed and may run without a daily shutdown"),
    };
    failed(doing, error).remedy(format!(
        "the resource group {} {exists}{unscheduled}: complete it with `{again}`, or delete it with `{down}`",
        bed.group()
    ))
}

/// The command that creates the bed again, with the same access by ssh.
fn up_command(path: &Path, ssh_from: &[Prefix]) -> String {
    let mut command = format!("netduel azure up {}", shell::word(&path.to_string_lossy()));
    for prefix in ssh_from {
        let _ = write!(command, " --ssh-from {prefix}");
    }
    command
}

/// Template and parameters of a deployment, in the user's folder for data: `az` reads them, and they show later what was requested. The file of the
/// bed is beside them, for commands that ask Azure nothing: as a draft until Azure has accepted the deployment.
struct Files {
    template: PathBuf,
    parameters: PathBuf,
    bed: PathBuf,
    draft: PathBuf,
}

impl Files {
    fn write(bed: &Bed, prepared: &Prepared, key: &PublicKey, prefixes: &[Prefix]) -> Result<Self, Failure> {
        let folder = program::beds_folder()?.join(&bed.name);
        let files = Self {
            template: folder.join("template.json"),
            parameters: folder.join(PARAMETERS),
            bed: folder.join(BED_FILE),
            draft: folder.join(BED_DRAFT),
        };
        let parameters = template::deployment_parameters(key, prefixes, &prepared.tags);
        let texts = [
            (&files.template, template::text(&template::template(bed)).kind(Kind::Internal)?),
            (&files.parameters, template::text(&parameters).kind(Kind::Internal)?),
            (&files.draft, bed.file_text()),
        ];
        for (path, text) in &texts {
            output_file::create_folder(&folder)
                .and_then(|()| output_file::replace(path, text.as_bytes(), Readers::Owner))
                .map_err(|error| unstored(path, error))?;
        }
        Ok(files)
    }

    /// Makes the draft of the bed its file.
    fn store_bed(&self) {
        if let Err(error) = fs::rename(&self.draft, &self.bed) {
            tell(&format!("warning: {}", unstored(&self.bed, error)));
        }
    }

    /// Removes the draft of a bed whose deployment Azure has not accepted. Where Azure may have accepted it, the file of the bed is not known: that of
    /// the deployment before it goes, too, so that no plan is checked on a bed that is another one by now.
    fn remove_draft(&self, error: Option<&BedError>) {
        // After `store_bed` there is none.
        let was_there = fs::remove_file(&self.draft).is_ok();
        if was_there && error.is_some_and(BedError::may_be_accepted) {
            drop(fs::remove_file(&self.bed));
        }
    }
}

/// A file of a bed that could not be written.
fn unstored(path: &Path, error: io::Error) -> Failure {
    unwritten(Kind::Store, format!("write {}", path.display()), error, program::OTHER_STATE_FOLDER)
}

/// Reads the public key of a bed.
fn read_key(path: &str) -> Result<PublicKey, Failure> {
    let home = || UserFolder::Home.path(|name| std::env::var_os(name));
    let path = match path.strip_prefix("~/") {
        Some(rest) => home().map(|home| home.join(rest)).ok_or_else(|| {
            let fault = UserFolder::faults(&[UserFolder::Home], |name| std::env::var_os(name));
            Failure::message(Kind::Environment, format!("failed to find {path}: {fault}"))
                .remedy("set it to an absolute path, or write `ssh_key` as one")
        })?,
        None => PathBuf::from(path),
    };
    let otherwise = "name another file as `ssh_key` in the bed, or make one with `ssh-keygen -t ed25519`";
    let text = read_text("public key", &path, TEXT_LEN_MAX, otherwise)?;
    PublicKey::parse(&text).map_err(|error| {
        let text = format!("failed to use the public key {}: {error}", path.display());
        Failure::caused(Kind::Usage, text, error)
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::bed::parse;

    use super::*;

    fn bed() -> Bed {
        let text = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n";
        parse(text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn deployment_that_takes_too_long_is_completed_by_one_command_with_the_bed_file() {
        let resources = [("VM vm1", State::Succeeded), ("VM vm2", State::Running)];
        let resources = BTreeMap::from(resources.map(|(name, state)| (name.to_owned(), state)));
        let prefix = Prefix::of_public(Ipv4Addr::new(20, 0, 0, 7)).expect("a public address");
        let commands = (up_command(Path::new("my beds/x.toml"), &[prefix]), "netduel azure down x");
        let error = BedError::TooLong { minutes: progress::LIMIT_MIN };
        let text = with_remains("create the bed x", error, &bed(), &commands, &resources).to_string();
        let complete = "complete it with `netduel azure up 'my beds/x.toml' --ssh-from 20.0.0.7/32`, or";
        assert!(text.contains(complete), "{text}");
        assert_eq!(text.matches("netduel azure up").count(), 1, "{text}");
        assert!(text.contains("(created: VM vm1; in progress: VM vm2)"), "{text}");
    }
}
