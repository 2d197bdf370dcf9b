//! Messages of agents that the coordinator has received and not read. Each answers a request, except live figures, so that only those can be
//! many. No IO.
use std::collections::VecDeque;

use netduel_model::ids::HostName;

use crate::peer::AgentEvent;

/// Live figures that are kept at most.
const FIGURES_MAX: usize = 1024;

/// Drops the oldest live figures beyond the limit: an agent that sends them without a pause must not fill the memory while another agent
/// is awaited.
pub(super) fn drop_old_figures(unread: &mut VecDeque<(HostName, AgentEvent)>) {
    let is_figures = |event: &AgentEvent| matches!(event, AgentEvent::Progress(_));
    let count = unread.iter().filter(|(_, event)| is_figures(event)).count();
    let mut surplus = count.saturating_sub(FIGURES_MAX);
    unread.retain(|(_, event)| {
        let is_dropped = surplus > 0 && is_figures(event);
        surplus -= usize::from(is_dropped);
        !is_dropped
    });
}

#[cfg(test)]
mod tests {
    use netduel_model::sample::LiveFigures;

    use super::*;
    use crate::protocol::FromAgent;

    #[test]
    fn newest_figures_and_all_other_messages_are_kept() {
        let host = HostName::new("a").unwrap();
        let figures = |elapsed_ns| AgentEvent::Progress(LiveFigures { elapsed_ns, ..LiveFigures::default() });
        let mut unread: VecDeque<(HostName, AgentEvent)> =
            (0..3000).map(|number| (host.clone(), figures(number))).collect();
        unread.insert(7, (host.clone(), AgentEvent::Answer(FromAgent::Started)));
        unread.push_back((host.clone(), AgentEvent::Answer(FromAgent::Aborted)));
        drop_old_figures(&mut unread);
        let expected: Vec<AgentEvent> = std::iter::once(AgentEvent::Answer(FromAgent::Started))
            .chain((3000 - FIGURES_MAX as u64..3000).map(figures))
            .chain([AgentEvent::Answer(FromAgent::Aborted)])
            .collect();
        assert!(unread.iter().map(|(_, event)| event).eq(&expected), "{} are kept", unread.len());
        drop_old_figures(&mut unread);
        assert_eq!(unread.len(), expected.len());
    }
}
