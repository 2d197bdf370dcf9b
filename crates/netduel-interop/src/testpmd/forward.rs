//! The forward statistics that testpmd prints when it stops: their names and meaning.
use super::error::DpdkError;

/// Counts of all ports between start and stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForwardCounts {
    /// Packets received from the device (`RX-packets`).
    pub received: u64,
    /// Packets that the device dropped because its queues were full (`RX-dropped` here, `RX-missed` elsewhere).
    pub missed: u64,
    /// Packets received with an error (`RX-error`): printed only if not 0.
    pub errors: u64,
    /// Receptions without a free buffer (`RX-nombufs`): printed only if not 0.
    pub without_buffer: u64,
    /// Packets that the device accepted (`TX-packets`).
    pub sent: u64,
    /// Packets that it rejected because its ring was full (`TX-dropped`): back-pressure, not loss; they are generated again.
    pub refused: u64,
}

/// Counts of one stream: a receive queue and a transmit queue of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Its receive queue.
    pub receive_queue: u16,
    /// Its transmit queue.
    pub transmit_queue: u16,
    /// Packets received from the receive queue.
    pub received: u64,
    /// Packets that the transmit queue accepted.
    pub sent: u64,
    /// Packets that it rejected.
    pub refused: u64,
}

/// The forward statistics that testpmd prints when it stops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarded {
    /// The only port.
    pub port: ForwardCounts,
    /// The streams with packets; empty with one stream per port, for which testpmd prints none.
    pub streams: Vec<StreamCounts>,
}

/// The subject of a block of lines.
enum Block {
    None,
    Stream,
    Port,
    All,
}

impl Forwarded {
    /// Parses the output of `stop`.
    ///
    /// # Errors
    /// [`DpdkError::Unreadable`] with the first unknown line of statistics, or when there are none.
    pub fn parse(text: &str, version: &str) -> Result<Self, DpdkError> {
        let unreadable = |line: &str| DpdkError::Unreadable {
            what: "the forward statistics",
            version: version.to_owned(),
            line: line.trim().to_owned(),
        };
        let mut forwarded = Self::default();
        let mut block = Block::None;
        let mut seen = false;
        for line in text.lines() {
            if line.contains("Forward Stats for RX Port=") {
                let [_, receive_queue, _, transmit_queue] = numbers(line)[..] else {
                    return Err(unreadable(line));
                };
                let queues = (receive_queue as u16, transmit_queue as u16);
                forwarded.streams.push(StreamCounts {
                    receive_queue: queues.0,
                    transmit_queue: queues.1,
                    ..StreamCounts::default()
                });
                block = Block::Stream;
            } else if line.contains("Forward statistics for port") {
                block = Block::Port;
            } else if line.contains("Accumulated forward statistics") {
                block = Block::All;
            } else if line.trim_start().starts_with("RX-") || line.trim_start().starts_with("TX-") {
                for (name, count) in pairs(line).ok_or_else(|| unreadable(line))? {
                    let place = match block {
                        Block::Port => Some(forwarded.port.place(name).ok_or_else(|| unreadable(line))?),
                        Block::Stream => forwarded
                            .streams
                            .last_mut()
                            .map(|stream| stream.place(name))
                            .ok_or_else(|| unreadable(line))?,
                        Block::All | Block::None => None,
                    };
                    if let Some(place) = place {
                        *place = count;
                    }
                }
                seen |= matches!(block, Block::Port);
            }
        }
        if !seen {
            return Err(unreadable(
                text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default(),
            ));
        }
        Ok(forwarded)
    }
}

impl ForwardCounts {
    /// The counter with this name; totals are not stored.
    fn place(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "RX-packets" => &mut self.received,
            "RX-dropped" => &mut self.missed,
            "RX-error" => &mut self.errors,
            "RX-nombufs" => &mut self.without_buffer,
            "TX-packets" => &mut self.sent,
            "TX-dropped" => &mut self.refused,
            _ => return None,
        })
    }
}

impl StreamCounts {
    /// As [`ForwardCounts::place`]. Other values of some versions and modes are ignored: bursts, checksums.
    fn place(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "RX-packets" => &mut self.received,
            "TX-packets" => &mut self.sent,
            "TX-dropped" => &mut self.refused,
            _ => return None,
        })
    }
}

/// The names and counts of a line, without totals: `RX-packets: 0   RX-dropped: 0   RX-total: 0`.
fn pairs(line: &str) -> Option<Vec<(&str, u64)>> {
    // Older versions print no space between a number of 14 digits and the next name.
    let mut rest = line.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once(':')?;
        let after = after.trim_start();
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let count = after[..digits].parse().ok()?;
        if !name.ends_with("-total") {
            found.push((name, count));
        }
        rest = after[digits..].trim_start();
    }
    Some(found)
}

/// All numbers of a line.
fn numbers(line: &str) -> Vec<u64> {
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of DPDK 24.11 with two queues (without borders), and with errors as in its source.
    const TWO_QUEUES: &str = "\
Telling cores to stop...
Waiting for lcores to finish...

  ------- Forward Stats for RX Port= 0/Queue= 0 -> TX Port= 0/Queue= 0 -------
  RX-packets: 0              TX-packets: 1000           TX-dropped: 200           

  ------- Forward Stats for RX Port= 0/Queue= 1 -> TX Port= 0/Queue= 1 -------
  RX-packets: 0              TX-packets: 1010           TX-dropped: 190           

  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 7              RX-dropped: 5             RX-total: 12
  RX-error: 3
  RX-nombufs: 2
  TX-packets: 2010           TX-dropped: 390           TX-total: 2400
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 7              RX-dropped: 5             RX-total: 12
  TX-packets: 2010           TX-dropped: 390           TX-total: 2400
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++

Done.
";

    #[test]
    fn port_and_stream_statistics_are_parsed_without_totals() {
        let forwarded = Forwarded::parse(TWO_QUEUES, "24.11.0").unwrap();
        assert_eq!(
            forwarded.port,
            ForwardCounts { received: 7, missed: 5, errors: 3, without_buffer: 2, sent: 2010, refused: 390 }
        );
        let streams: Vec<_> = forwarded
            .streams
            .iter()
            .map(|s| (s.receive_queue, s.transmit_queue, s.sent, s.refused))
            .collect();
        assert_eq!(streams, [(0, 0, 1000, 200), (1, 1, 1010, 190)]);
    }

    #[test]
    fn unknown_output_is_an_error_with_its_line() {
        for (text, line) in [
            (TWO_QUEUES.replace("RX-nombufs: 2", "RX-nombufs: many"), "RX-nombufs: many"),
            (TWO_QUEUES.replace("RX-error", "RX-novelty"), "RX-novelty: 3"),
            ("Packet forwarding not started\n".to_owned(), "Packet forwarding not started"),
        ] {
            let error = Forwarded::parse(&text, "99.01.0").unwrap_err().to_string();
            assert!(error.contains(&format!("`{line}`")) && error.contains("99.01.0"), "{error}");
        }
    }
}
