//! A sequence window: classifies each datagram of a flow by its sequence number. Pure; reads no clock and no socket.

/// How far behind the highest sequence number a datagram may arrive and still be distinguished from a duplicate. 2^18 datagrams are
/// 0.26 s at a million/s; the bitmap is 32 KiB and fits a core's cache.
pub const WINDOW: u64 = 1 << 18;

const WORDS: usize = (WINDOW / 64) as usize;

/// The class of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// First time, in order.
    InOrder,
    /// First time, after one with a higher number (RFC 4737 section 3.3).
    Reordered,
    /// It had arrived before.
    Duplicate,
    /// Behind the window: first arrival or duplicate is unknown.
    TooLate,
}

/// The counts of one flow, exact to the datagram.
#[derive(Debug, Clone)]
pub struct SequenceWindow {
    /// Highest sequence number that arrived, plus one.
    next: u64,
    unique: u64,
    duplicates: u64,
    reordered: u64,
    outside_window: u64,
    /// Bit `number mod WINDOW` is set when `number`, one of the last [`WINDOW`] before `next`, has arrived.
    seen: Vec<u64>,
}

impl Default for SequenceWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl SequenceWindow {
    /// Before the first arrival.
    pub fn new() -> Self {
        Self { next: 0, unique: 0, duplicates: 0, reordered: 0, outside_window: 0, seen: vec![0; WORDS] }
    }

    /// With `count` datagrams whose sequence numbers were not checked.
    pub fn counted(count: u64) -> Self {
        Self { next: count, unique: count, seen: Vec::new(), ..Self::new() }
    }

    /// Counts the arrival of `number`.
    #[inline]
    pub fn arrive(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            self.advance(number);
            self.unique += 1;
            return Arrival::InOrder;
        }
        if self.next - number > WINDOW {
            self.outside_window += 1;
            return Arrival::TooLate;
        }
        let (word, bit) = position(number);
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.seen[word] |= bit;
        self.unique += 1;
        self.reordered += 1;
        Arrival::Reordered
    }

    /// Moves the window so that `number` is its last.
    #[inline]
    fn advance(&mut self, number: u64) {
        if number == self.next {
            // The common case: one bit changes meaning.
        } else if number - self.next >= WINDOW {
            self.seen.fill(0);
        } else {
            for skipped in self.next..number {
                let (word, bit) = position(skipped);
                self.seen[word] &= !bit;
            }
        }
        let (word, bit) = position(number);
        self.seen[word] |= bit;
        self.next = number.saturating_add(1);
    }

    /// Datagrams that arrived, without duplicates.
    pub fn unique(&self) -> u64 {
        self.unique
    }

    /// Arrivals of a datagram that had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Datagrams that arrived after one with a higher number, without duplicates.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Arrivals behind the window.
    pub fn outside_window(&self) -> u64 {
        self.outside_window
    }

    /// Highest sequence number that arrived, plus one; 0 before the first.
    pub fn highest_plus_one(&self) -> u64 {
        self.next
    }
}

#[inline]
fn position(number: u64) -> (usize, u64) {
    let slot = number % WINDOW;
    ((slot / 64) as usize, 1 << (slot % 64))
}
