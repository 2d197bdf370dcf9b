//! Warnings about forgotten beds: those of the user that are older than their first shutdown. Every command that asks Azure shows those that Azure
//! has; the others show those of this machine, which may exist.
use std::time::Duration;

use netduel_azure::az::{Az, CallError};
use netduel_azure::command::{SUBSCRIPTION, in_subscription};
use netduel_azure::deployment::Subscription;
use netduel_azure::deployment::groups::{self, Group};
use netduel_azure::tags::Tags;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_sys::clock::monotonic_ns;

use super::known::{self, Noted};
use super::session::now_unix_s;
use super::shown;
use crate::console::tell;
use crate::redaction;

/// A bed without a shutdown is old after a day.
const DAY_S: u64 = 24 * 60 * 60;
/// Time limit of a search that only warns: its three calls take 2 s to 7 s in all.
const SEARCH_LIMIT_NS: u64 = 10_000_000_000;

/// Warns of the old beds of a subscription, except one. `listed` are its beds where the command has listed them already. An error here is no reason
/// to stop: the command itself has the subscription, too.
pub fn warn(
    az: &mut dyn Az,
    subscription: &Subscription,
    listed: Option<Vec<(Group, Tags)>>,
    except: Option<&str>,
    now_unix_s: u64,
) {
    let beds = listed.unwrap_or_else(|| groups::list(az, subscription).unwrap_or_default());
    let others = beds.iter().filter(|(_, tags)| Some(tags.bed.as_str()) != except);
    warn_of(others, subscription, now_unix_s);
}

/// As [`warn`], for a command that has not asked for the subscription. It is the current one of `az`. The command needs no bed: the search ends
/// without a message after [`SEARCH_LIMIT_NS`], and where `az` is missing or too old.
pub fn warn_of_all(az: &mut dyn Az, is_quiet: bool) {
    if !is_quiet {
        tell("looking for beds on Azure that are older than their shutdown");
    }
    let mut az = Until { az, end_ns: monotonic_ns().saturating_add(SEARCH_LIMIT_NS) };
    if let Ok(subscription) = Subscription::find(&mut az, None) {
        warn(&mut az, &subscription, None, None, now_unix_s());
    }
}

/// `az` whose calls have to end by a time, all of them.
struct Until<'a> {
    az: &'a mut dyn Az,
    end_ns: u64,
}

impl Az for Until<'_> {
    fn call(&mut self, words: &[&str], limit: Duration) -> Result<String, CallError> {
        let left = Duration::from_nanos(self.end_ns.saturating_sub(monotonic_ns()));
        self.az.call(words, limit.min(left))
    }

    fn pause(&mut self) -> bool {
        self.az.pause()
    }
}

/// Warns of those of these beds of a subscription that are old and not of another user than the one of [`Subscription::user`]. With `--redact` they
/// are counted: the output is about none of them.
pub fn warn_of<'b>(
    beds: impl IntoIterator<Item = &'b (Group, Tags)>,
    subscription: &Subscription,
    now_unix_s: u64,
) {
    let user = subscription.user.as_deref();
    let old = beds.into_iter().filter(|bed| is_forgotten(bed, user, now_unix_s));
    if !redaction::is_on() {
        old.for_each(|(_, tags)| tell(&warning(tags, subscription)));
        return;
    }
    let count = old.count();
    if count > 0 {
        tell(&counted(count, subscription));
    }
}

/// Warns of the old beds that this user has created here and not deleted, for a command that asks Azure nothing.
pub fn warn_of_noted() {
    let now = now_unix_s();
    for bed in known::noted().iter().filter(|bed| is_old(&bed.tags, now)) {
        tell(&noted_warning(bed, now));
    }
}

/// The warning of an old bed that may exist. The current subscription of `az` may be another one by now, so the command names that of the bed.
fn noted_warning(Noted { tags, subscription }: &Noted, now_unix_s: u64) -> String {
    let (name, age) = (&tags.bed, shown::age(tags, now_unix_s));
    let list = in_subscription("netduel azure list", Some(subscription));
    format!(
        "warning: the bed {name}, which `netduel azure up` created or completed from this machine, is {age} and may still cost money; `{list}` shows \
         it if it exists"
    )
}

/// The warning of old beds by their number.
fn counted(count: usize, subscription: &Subscription) -> String {
    let named = subscription.named.as_ref().map(|_| SUBSCRIPTION);
    let list = in_subscription("netduel azure list", named);
    format!(
        "warning: beds that are older than their shutdown, or than a day without one: {count}; they cost money, and `{list}` shows them"
    )
}

/// The warning of an old bed.
fn warning(tags: &Tags, subscription: &Subscription) -> String {
    let shutdown = match tags.shutdown_time() {
        Some(time) => format!(
            "its shutdown at {time} UTC: its disks and addresses cost money, and so do VMs that were started again or whose creation failed"
        ),
        None => "a day, and has no shutdown: it costs money".to_owned(),
    };
    let (name, down) = (&tags.bed, subscription.down(&tags.bed));
    format!("warning: the bed {name} is older than {shutdown}; delete it with `{down}`")
}

/// Whether a bed is old, of no other user than this one, and Azure is not deleting it already.
fn is_forgotten((group, tags): &(Group, Tags), user: Option<&str>, now_unix_s: u64) -> bool {
    !group.is_being_deleted() && !tags.is_of_other(user) && is_old(tags, now_unix_s)
}

/// Whether the first shutdown that the VMs of a bed cannot miss has come.
fn is_old(tags: &Tags, now_unix_s: u64) -> bool {
    tags.created_unix_s.is_some_and(|created| {
        let left = |time: ShutdownTime| time.minutes_left(created, ShutdownTime::CREATION_MIN);
        let until_s = tags.shutdown_time().map_or(DAY_S, |time| u64::from(left(time)) * 60);
        now_unix_s > created.saturating_add(until_s)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netduel_azure::az::CALL_LIMIT;
    use netduel_azure::deployment::groups::GroupProperties;
    use netduel_model::bed::BedSpec;

    use super::*;

    /// `az` without an answer in time, with the limits of its calls.
    #[derive(Default)]
    struct Slow(Vec<Duration>);

    impl Az for Slow {
        fn call(&mut self, words: &[&str], limit: Duration) -> Result<String, CallError> {
            self.0.push(limit);
            Err(CallError::TimedOut { command: words.join(" "), limit })
        }

        fn pause(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn calls_of_a_search_that_only_warns_share_one_limit() {
        let mut slow = Slow::default();
        warn_of_all(&mut slow, true);
        assert_eq!(slow.0.len(), 1);
        assert!(slow.0[0] <= Duration::from_nanos(SEARCH_LIMIT_NS), "{:?}", slow.0);
        let mut over = Until { az: &mut slow, end_ns: 0 };
        assert!(over.call(&["version"], CALL_LIMIT).is_err());
        assert_eq!(slow.0[1], Duration::ZERO);
    }

    #[test]
    fn warning_of_a_bed_that_may_exist_names_its_age_and_its_subscription() {
        let pairs = [("netduel", "x"), ("netduel-created", "1795343407"), ("netduel-shutdown", "19:00")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let tags = Tags::read(&BTreeMap::from(pairs)).expect("a bed");
        let noted = Noted { tags, subscription: "2222".to_owned() };
        let text = noted_warning(&noted, 1_795_343_407 + 3 * DAY_S);
        assert!(text.contains("is 3 days old and may still cost money"), "{text}");
        assert!(text.ends_with("`netduel azure list --subscription 2222` shows it if it exists"), "{text}");
    }

    #[test]
    fn command_of_a_warning_names_the_subscription_that_the_user_named() {
        let pairs = [("netduel", "x"), ("netduel-shutdown", "19:00")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let tags = Tags::read(&BTreeMap::from(pairs)).expect("a bed");
        let subscription = |named: Option<&str>| Subscription {
            id: "2".to_owned(),
            name: "fake".to_owned(),
            named: named.map(str::to_owned),
            user: None,
        };
        let current = warning(&tags, &subscription(None));
        assert!(current.ends_with("delete it with `netduel azure down x`"), "{current}");
        let named = warning(&tags, &subscription(Some("pay as you go")));
        let end = "delete it with `netduel azure down x --subscription 'pay as you go'`";
        assert!(named.ends_with(end), "{named}");
    }

    #[test]
    fn bed_is_old_after_its_first_shutdown() {
        // 2026-11-22T10:30:07Z.
        let created = 1_795_343_407;
        let tags = |shutdown: &str| Tags {
            bed: "x".to_owned(),
            created_unix_s: Some(created),
            owner: Some("me".to_owned()),
            price: None,
            price_read_unix_s: None,
            template_sha256: None,
            kind: None,
            shutdown: Some(shutdown.to_owned()),
            keys: BedSpec::default(),
        };
        let hour = 60 * 60;
        // At 10:32 the VMs may not be there yet: the shutdown of the next day counts.
        for (shutdown, hours) in [("19:00", 9), ("10:00", 24), ("10:32", 25), ("off", 25)] {
            assert!(is_old(&tags(shutdown), created + hours * hour), "{shutdown}");
            assert!(!is_old(&tags(shutdown), created + (hours - 2) * hour), "{shutdown}");
        }
        assert!(!is_old(&Tags { created_unix_s: None, ..tags("19:00") }, created * 2));
        // What Azure deletes is not forgotten, and a bed of another user is not this user's to delete.
        for (state, user, is_named) in
            [("Succeeded", "me", true), ("Succeeded", "other", false), ("Deleting", "me", false)]
        {
            let group = Group {
                name: "netduel-x".to_owned(),
                location: "westeurope".to_owned(),
                tags: None,
                properties: Some(GroupProperties { provisioning_state: state.to_owned() }),
            };
            let bed = (group, tags("19:00"));
            assert_eq!(is_forgotten(&bed, Some(user), created + 9 * hour), is_named, "{state} {user}");
        }
    }
}
