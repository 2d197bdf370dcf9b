//! Listens to changes of the links of a network namespace while traffic runs: netlink's groups of links and of device settings, and the
//! kernel's log if it is readable. A thread sleeps until a notification arrives; must not read counters.
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;

use netduel_model::link_event::{LinkChange, LinkEvent};
use netduel_sys::clock::monotonic_ns;
use netduel_sys::netlink::{RTM_DELLINK, RTM_NEWLINK, link_notifications, messages};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::device_settings::DeviceSettings;
use crate::link::{Link, link, links};
use crate::netlink::RouteSocket;
use crate::source::LinkSource as _;

/// Buffer of a notification, which is far shorter than the datagrams of a list (32 KiB).
const RECEIVE_LEN: usize = 32 << 10;
/// A record of `/dev/kmsg` is 1 KiB at most, with its tags 8 KiB.
const RECORD_LEN: usize = 8 << 10;
/// Messages of `hv_netvsc` when its data path moves or its VF is added or removed (drivers/net/hyperv/netvsc_drv.c).
const PATH_WORDS: [&str; 5] =
    ["Data path switched", "VF slot", "VF registering", "VF unregistering", "joined to"];
/// The driver of these messages.
const PATH_DRIVER: &str = "hv_netvsc";

/// A running listener. Dropping it ends its thread.
pub(crate) struct Watch {
    stop: OwnedFd,
    thread: Option<JoinHandle<Vec<LinkEvent>>>,
}

impl Watch {
    /// Starts to listen in the calling thread's network namespace; times count from now.
    pub fn begin() -> io::Result<Self> {
        Self::with_log(kernel_log())
    }

    fn with_log(log: Option<OwnedFd>) -> io::Result<Self> {
        let notices = link_notifications()?;
        let mut lists = RouteSocket::open()?;
        // After joining the group: a change during the listing is notified again and is then already known.
        let known = known(&mut lists)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let listener = Listener {
            notices,
            settings: DeviceSettings::listen().ok(),
            log,
            stop: stop.try_clone()?,
            lists,
            known,
            start_ns: monotonic_ns(),
            events: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("link-watch".to_owned()).spawn(|| listener.run())?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// All events until now.
    pub fn finish(mut self) -> Vec<LinkEvent> {
        self.join()
    }

    fn join(&mut self) -> Vec<LinkEvent> {
        // The counter of an eventfd that is never read cannot overflow here.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.join();
    }
}

/// The kernel's log from now on; absent when this user may not read it.
fn kernel_log() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let log = open("/dev/kmsg", flags, Mode::empty()).ok()?;
    seek(&log, SeekFrom::End(0)).ok()?;
    Some(log)
}

fn known(lists: &mut RouteSocket) -> io::Result<Known> {
    let mut list = Vec::new();
    lists.links(&mut list)?;
    Ok(links(&list).into_iter().map(|link| (link.index, State::of(&link))).collect())
}

/// Known state of each link, by index.
type Known = BTreeMap<u32, State>;

/// The parts of a link whose changes are events.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    name: String,
    up: bool,
    carrier: Option<bool>,
    master: Option<u32>,
    mtu: Option<u32>,
}

impl State {
    fn of(link: &Link) -> Self {
        let Link { name, up, carrier, master, mtu, .. } = link;
        Self { name: name.clone(), up: *up, carrier: *carrier, master: *master, mtu: *mtu }
    }
}

struct Listener {
    notices: OwnedFd,
    /// Absent on a kernel that does not notify about settings.
    settings: Option<DeviceSettings>,
    log: Option<OwnedFd>,
    stop: OwnedFd,
    lists: RouteSocket,
    known: Known,
    start_ns: u64,
    events: Vec<LinkEvent>,
}

impl Listener {
    fn run(mut self) -> Vec<LinkEvent> {
        let mut received = vec![0; RECEIVE_LEN];
        loop {
            let (stopped, log_ended) = self.wait();
            if log_ended {
                self.log = None;
            }
            self.take_notices(&mut received);
            self.take_settings(&mut received);
            self.take_log(&mut received[..RECORD_LEN]);
            if stopped {
                return self.events;
            }
        }
    }

    /// Waits for a notification. Returns whether to stop, and whether the log has ended.
    fn wait(&self) -> (bool, bool) {
        let log = self.log.as_ref().unwrap_or(&self.stop);
        let settings = self.settings.as_ref().map_or(&self.stop, |settings| &settings.notices);
        let mut sources = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.notices, PollFlags::IN),
            PollFd::new(log, PollFlags::IN),
            PollFd::new(settings, PollFlags::IN),
        ];
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Waiting failed; events received so far are kept.
            Err(_) => return (true, false),
        }
        let ended = sources[2].revents().intersects(PollFlags::HUP | PollFlags::NVAL);
        (sources[0].revents().contains(PollFlags::IN), self.log.is_some() && ended)
    }

    fn note(&mut self, interface: String, master: Option<String>, change: LinkChange) {
        let at_ns = monotonic_ns().saturating_sub(self.start_ns);
        self.events.push(LinkEvent { at_ns, interface, master, change });
    }

    fn take_notices(&mut self, buffer: &mut [u8]) {
        loop {
            match recv(&self.notices, &mut *buffer, RecvFlags::empty()) {
                Ok((_, length)) => {
                    for message in messages(buffer.get(..length).unwrap_or_default()) {
                        let Some(notified) = link(message.payload) else { continue };
                        for (interface, master, change) in apply(&mut self.known, message.kind, &notified) {
                            self.note(interface, master, change);
                        }
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => {
                    self.note(String::new(), None, LinkChange::EventsLost);
                    if let Ok(now) = known(&mut self.lists) {
                        self.known = now;
                    }
                }
                Err(_) => return,
            }
        }
    }

    fn take_settings(&mut self, buffer: &mut [u8]) {
        loop {
            let Some(settings) = &mut self.settings else { return };
            match recv(&settings.notices, &mut *buffer, RecvFlags::empty()) {
                Ok((_, length)) => {
                    for (interface, change) in settings.changes(buffer.get(..length).unwrap_or_default()) {
                        self.note(interface, None, change);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => {
                    // Without a new list the next change is compared with an old one: still a change.
                    let _ = settings.relist();
                    self.note(String::new(), None, LinkChange::EventsLost);
                }
                Err(Errno::AGAIN) => return,
                // A socket that cannot be read would always be ready.
                Err(_) => {
                    self.settings = None;
                    return;
                }
            }
        }
    }

    fn take_log(&mut self, buffer: &mut [u8]) {
        loop {
            let Some(log) = &self.log else { return };
            match rustix::io::read(log.as_fd(), &mut *buffer) {
                // A log never ends: this is another file in its place, such as `/dev/null` in a container.
                Ok(0) => {
                    self.log = None;
                    return;
                }
                Ok(length) => {
                    let record =
                        String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
                    if let Some((interface, words)) = path_message(&record) {
                        self.note(interface, None, LinkChange::DataPath { message: words });
                    }
                }
                // Records were overwritten before they were read (EPIPE): the next one follows.
                Err(Errno::INTR | Errno::PIPE) => {}
                Err(Errno::AGAIN) => return,
                // A log that cannot be read would always be ready.
                Err(_) => {
                    self.log = None;
                    return;
                }
            }
        }
    }
}

/// Applies a notification to the known state and returns the changes. Messages of a bridge about its ports (`AF_BRIDGE`) are not about links;
/// [`link`] ignores them.
fn apply(known: &mut Known, kind: u16, notified: &Link) -> Vec<(String, Option<String>, LinkChange)> {
    let name_of = |known: &Known, index: u32| {
        known.get(&index).map_or_else(|| index.to_string(), |state| state.name.clone())
    };
    let before = known.get(&notified.index).cloned();
    let above = before.as_ref().and_then(|state| state.master).map(|index| name_of(known, index));
    if kind == RTM_DELLINK {
        return match known.remove(&notified.index) {
            Some(state) => vec![(state.name, above, LinkChange::Removed)],
            None => Vec::new(),
        };
    }
    if kind != RTM_NEWLINK {
        return Vec::new();
    }
    let now = State::of(notified);
    let mut changes = Vec::new();
    match before {
        None => changes.push(LinkChange::Added),
        Some(before) => {
            if before.name != now.name {
                changes.push(LinkChange::Renamed { from: before.name });
            }
            match now.master {
                Some(master) if before.master != now.master => {
                    changes.push(LinkChange::Enslaved { to: name_of(known, master) });
                }
                None if before.master.is_some() => changes.push(LinkChange::Released),
                _ => {}
            }
            if let (Some(from), Some(to)) = (before.mtu, now.mtu)
                && from != to
            {
                changes.push(LinkChange::Mtu { from, to });
            }
            match (before.up, now.up) {
                (true, false) => changes.push(LinkChange::Down),
                (false, true) => changes.push(LinkChange::Up),
                // A link that is set down also loses its carrier: one change, not two.
                (true, true) if before.carrier == Some(true) && now.carrier == Some(false) => {
                    changes.push(LinkChange::CarrierLost);
                }
                (true, true) if before.carrier == Some(false) && now.carrier == Some(true) => {
                    changes.push(LinkChange::CarrierGained);
                }
                _ => {}
            }
        }
    }
    let name = now.name.clone();
    known.insert(notified.index, now);
    changes.into_iter().map(|change| (name.clone(), above.clone(), change)).collect()
}

/// Interface and text of a record of the kernel's log about the data path of a synthetic NIC, as in
/// `6,1,2,-;hv_netvsc 000d3a eth0: Data path switched to VF: enP1s1`.
fn path_message(record: &str) -> Option<(String, String)> {
    let (_, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    if !text.contains(PATH_DRIVER) || !PATH_WORDS.iter().any(|words| text.contains(words)) {
        return None;
    }
    let (head, words) = text.split_once(": ")?;
    Some((head.split_whitespace().last()?.to_owned(), words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(index: u32, name: &str, up: bool, carrier: bool, master: Option<u32>) -> Link {
        Link { index, name: name.into(), up, carrier: Some(carrier), master, ..Link::default() }
    }

    /// The changes of a sequence of notifications, each as `interface: change`.
    fn course(notices: &[(u16, Link)]) -> Vec<String> {
        let first = [changed(1, "eth0", true, true, None), changed(2, "vf0", true, true, Some(1))];
        let mut known: Known = first.iter().map(|link| (link.index, State::of(link))).collect();
        let changes = notices.iter().flat_map(|(kind, link)| apply(&mut known, *kind, link));
        changes.map(|(name, master, change)| format!("{name} {master:?} {change:?}")).collect()
    }

    #[test]
    fn removal_and_return_of_a_vf_are_reported_and_other_notifications_ignored() {
        let seen = course(&[
            (RTM_NEWLINK, changed(2, "vf0", true, true, Some(1))),
            (RTM_NEWLINK, changed(2, "vf0", true, false, Some(1))),
            (RTM_NEWLINK, changed(2, "vf0", false, false, Some(1))),
            (RTM_NEWLINK, changed(2, "vf0", false, false, None)),
            (RTM_DELLINK, changed(2, "vf0", false, false, None)),
            (RTM_DELLINK, changed(2, "vf0", false, false, None)),
            (RTM_NEWLINK, changed(9, "vf0", false, false, None)),
            (RTM_NEWLINK, changed(9, "enP1s1", false, false, None)),
            (RTM_NEWLINK, changed(9, "enP1s1", true, false, Some(1))),
            (RTM_NEWLINK, changed(9, "enP1s1", true, true, Some(1))),
        ]);
        assert_eq!(
            seen,
            [
                "vf0 Some(\"eth0\") CarrierLost",
                "vf0 Some(\"eth0\") Down",
                "vf0 Some(\"eth0\") Released",
                "vf0 None Removed",
                "vf0 None Added",
                "enP1s1 None Renamed { from: \"vf0\" }",
                "enP1s1 None Enslaved { to: \"eth0\" }",
                "enP1s1 None Up",
                "enP1s1 Some(\"eth0\") CarrierGained",
            ]
        );
    }

    #[test]
    fn another_file_in_place_of_the_log_does_not_block_the_watch() {
        let other = open("/dev/null", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        let watch = Watch::with_log(Some(other.unwrap())).unwrap();
        let events = watch.finish();
        assert!(
            events.iter().all(|event| !matches!(event.change, LinkChange::DataPath { .. })),
            "{events:?}"
        );
    }

    #[test]
    fn only_data_path_messages_of_the_log_are_events() {
        let record = "6,339,5140900,-;hv_netvsc 000d3a12-3456 eth0: Data path switched to VF: enP1s1\n SUBSYSTEM=vmbus\n";
        let message = path_message(record).unwrap();
        assert_eq!(message, ("eth0".to_owned(), "Data path switched to VF: enP1s1".to_owned()));
        for other in ["6,1,2,-;eth0: Data path switched to VF: x", "6,1,2,-;hv_netvsc a eth0: hello", "", ";"]
        {
            assert_eq!(path_message(other), None, "{other}");
        }
    }
}
