//! Waits until VMs of a bed are ready: ssh answers, and cloud-init has installed what the bed needs. It starts no agent.
use std::time::Duration;

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;
use netduel_sys::clock::monotonic_ns;

use super::obstacle::{Obstacle, excerpt};
use super::preparation::Preparation;
use super::stop::Stop;
use super::{NotPrepared, SshHosts};

/// Waits in the VM for a part of the time, so that progress can be shown, and prints how that ended.
const WAIT: &str = "if command -v cloud-init >/dev/null 2>&1; then timeout 10 cloud-init status --wait; echo \"code=$?\"; else echo code=none; fi";
/// The code of timeout(1) when the time is over.
const STILL_RUNNING: &str = "124";
/// Limit of cloud-init: packages take from seconds to some minutes.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Time between two attempts to connect to a VM that is starting.
const RETRY: Duration = Duration::from_secs(3);

/// How cloud-init has ended on a VM.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// Without an error, or there is none.
    Ready,
    /// It runs.
    Running,
    /// With an error, as it says.
    Failed(String),
}

/// The answer to [`WAIT`].
fn ended(answer: &str) -> Ended {
    let (printed, code) = answer.trim().rsplit_once("code=").unwrap_or((answer, ""));
    match code {
        "0" | "none" => Ended::Ready,
        STILL_RUNNING => Ended::Running,
        _ => {
            // Dots show that it waits.
            let lines: Vec<&str> = printed
                .lines()
                .map(|line| line.trim_start_matches('.').trim())
                .filter(|line| !line.is_empty())
                .collect();
            Ended::Failed(if lines.is_empty() { format!("code {code}") } else { excerpt(&lines.join(", ")) })
        }
    }
}

impl SshHosts {
    /// Connects to VMs and waits for their cloud-init. A VM that was started lately has `patience` until ssh answers. `progress` gets a
    /// line for each step and each warning.
    ///
    /// # Errors
    /// The first VM that cannot be reached, or whose cloud-init does not end.
    pub fn wait_until_ready<'a>(
        &mut self,
        hosts: impl IntoIterator<Item = (&'a HostName, &'a SshHost)>,
        patience: Duration,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), NotPrepared> {
        for (name, ssh) in hosts {
            let waited = Stop::new().and_then(|stop| self.wait_for_one(name, ssh, patience, &stop, progress));
            waited.map_err(|obstacle| match obstacle {
                Obstacle::Interrupted => NotPrepared::Interrupted,
                other => NotPrepared::Failed { host: name.clone(), reason: other.to_string() },
            })?;
        }
        Ok(())
    }

    fn wait_for_one(
        &mut self,
        name: &HostName,
        ssh: &SshHost,
        patience: Duration,
        stop: &Stop,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Obstacle> {
        let mut preparation = self.preparation(name, ssh)?;
        let waited = connected(&mut preparation, patience, stop, progress)
            .and_then(|()| cloud_init(&mut preparation, stop, progress));
        // The agents of this host use the connection.
        self.masters
            .extend(preparation.master.filter(|_| waited.is_ok()).map(|master| (name.clone(), master)));
        waited
    }
}

fn connected(
    preparation: &mut Preparation,
    patience: Duration,
    stop: &Stop,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Obstacle> {
    let deadline_ns = monotonic_ns().saturating_add(patience.as_nanos() as u64);
    let mut is_reported = false;
    loop {
        let Err(error) = preparation.machine(stop) else { return Ok(()) };
        let may_come = matches!(error, Obstacle::Connection(_) | Obstacle::Silent { .. });
        if !may_come || monotonic_ns() >= deadline_ns {
            return Err(error);
        }
        if !is_reported {
            progress(&format!("{}: waiting for ssh", preparation.name));
            is_reported = true;
        }
        stop.wait(RETRY)?;
    }
}

fn cloud_init(
    preparation: &mut Preparation,
    stop: &Stop,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Obstacle> {
    let Preparation { name, master: Some(master), .. } = preparation else {
        return Err(Obstacle::Interrupted);
    };
    let started_ns = monotonic_ns();
    loop {
        let waited_s = monotonic_ns().saturating_sub(started_ns) / 1_000_000_000;
        match ended(&master.ask(WAIT, stop)?) {
            Ended::Ready => return Ok(()),
            Ended::Failed(reason) => {
                // Packages may be missing: the step that needs them reports it.
                progress(&format!(
                    "warning: {name}: cloud-init ended with {reason}; `cloud-init status --long` there says more"
                ));
                return Ok(());
            }
            Ended::Running if waited_s >= LIMIT.as_secs() => {
                return Err(Obstacle::Unready { seconds: waited_s });
            }
            Ended::Running => {
                let waited_s = monotonic_ns().saturating_sub(started_ns) / 1_000_000_000;
                progress(&format!("{name}: cloud-init still runs after {waited_s} s"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_the_patience_is_on_the_page_of_errors() {
        let page = include_str!("../../../../docs/azure-errors.md");
        let text = Obstacle::Unready { seconds: LIMIT.as_secs() }.to_string();
        assert!(page.contains(&text), "docs/azure-errors.md lacks this text: {text}");
    }

    #[test]
    fn end_of_cloud_init_is_read_from_its_code_and_words() {
        for (answer, expected) in [
            ("....\nstatus: done\ncode=0", Ended::Ready),
            ("code=none", Ended::Ready),
            ("..........code=124", Ended::Running),
            ("\nstatus: error\ncode=1", Ended::Failed("status: error".to_owned())),
            ("..status: done\ncode=2\n", Ended::Failed("status: done".to_owned())),
            ("code=126", Ended::Failed("code 126".to_owned())),
        ] {
            assert_eq!(ended(answer), expected, "{answer}");
        }
    }
}
