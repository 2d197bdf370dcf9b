//! The names of messages in errors: their tags in the protocol.
use crate::protocol::{FromAgent, ToAgent};

pub(super) fn name_of_answer(message: &FromAgent) -> &'static str {
    match message {
        FromAgent::Hello { .. } => "hello",
        FromAgent::Described { .. } => "described",
        FromAgent::Locked => "locked",
        FromAgent::HostBusy { .. } => "host-busy",
        FromAgent::Applied => "applied",
        FromAgent::Undone { .. } => "undone",
        FromAgent::Prepared { .. } => "prepared",
        FromAgent::Started => "started",
        FromAgent::Progress { .. } => "progress",
        FromAgent::Done { .. } => "done",
        FromAgent::Aborted => "aborted",
        FromAgent::Failed { .. } => "failed",
        FromAgent::Bye { .. } => "bye",
    }
}

pub(super) fn name_of_request(message: &ToAgent) -> &'static str {
    match message {
        ToAgent::Hello { .. } => "hello",
        ToAgent::Describe { .. } => "describe",
        ToAgent::LockHost { .. } => "lock-host",
        ToAgent::Apply { .. } => "apply",
        ToAgent::Undo => "undo",
        ToAgent::PrepareServer { .. } => "prepare-server",
        ToAgent::PrepareClient { .. } => "prepare-client",
        ToAgent::Start => "start",
        ToAgent::Finish => "finish",
        ToAgent::Abort => "abort",
        ToAgent::Bye => "bye",
    }
}
