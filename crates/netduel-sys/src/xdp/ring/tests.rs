//! The rings on plain memory: every interleaving and memory order of a small ring (loom), and long random sequences of operations
//! compared with a queue (proptest). The kernel's side follows `net/xdp/xsk_queue.h`.
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;
use crate::xdp::ring_memory::Counter;

/// Distance of the initial counters from their wrap-around, so that short runs cross it.
const BEFORE_WRAP: u32 = u32::MAX;

/// The slot of one entry.
trait Place {
    fn get(&self) -> u32;
    fn set(&self, entry: u32);
}

impl Place for Cell<u32> {
    fn get(&self) -> u32 {
        Self::get(self)
    }

    fn set(&self, entry: u32) {
        Self::set(self, entry);
    }
}

/// loom fails the test when an access is not ordered against the other side's.
impl Place for loom::cell::UnsafeCell<u32> {
    fn get(&self) -> u32 {
        // SAFETY: the pointer is valid during the call, and loom refuses a read that races.
        self.with(|entry| unsafe { *entry })
    }

    fn set(&self, entry: u32) {
        // SAFETY: the pointer is valid during the call, and loom refuses a write that races.
        self.with_mut(|place| unsafe { *place = entry });
    }
}

impl Counter for loom::sync::atomic::AtomicU32 {
    fn load(&self, ordering: Ordering) -> u32 {
        Self::load(self, ordering)
    }

    fn store(&self, value: u32, ordering: Ordering) {
        Self::store(self, value, ordering);
    }
}

/// A ring in the memory of the test.
#[derive(Debug)]
struct Memory<C, P> {
    producer: C,
    consumer: C,
    flags: C,
    entries: Vec<P>,
}

impl<C, P: Place> Memory<C, P> {
    /// An empty ring.
    fn new(size: u32, start: u32, counter: fn(u32) -> C, place: fn(u32) -> P) -> Arc<Self> {
        Arc::new(Self {
            producer: counter(start),
            consumer: counter(start),
            flags: counter(0),
            entries: (0..size).map(|_| place(0)).collect(),
        })
    }

    /// By division; the ring uses a mask.
    fn place(&self, number: u32) -> &P {
        &self.entries[number as usize % self.entries.len()]
    }
}

impl<C: Counter, P: Place> RingMemory for Arc<Memory<C, P>> {
    type Entry = u32;
    type Counter = C;

    fn size(&self) -> u32 {
        self.entries.len() as u32
    }

    fn producer(&self) -> &C {
        &self.producer
    }

    fn consumer(&self) -> &C {
        &self.consumer
    }

    fn flags(&self) -> &C {
        &self.flags
    }

    unsafe fn read(&self, number: u32) -> u32 {
        self.place(number).get()
    }

    unsafe fn write(&self, number: u32, entry: u32) {
        self.place(number).set(entry);
    }
}

/// The kernel's side of a ring.
struct Kernel<C, P> {
    ring: Arc<Memory<C, P>>,
    next: u32,
}

impl<C: Counter, P: Place> Kernel<C, P> {
    fn of(ring: &Arc<Memory<C, P>>, start: u32) -> Self {
        Self { ring: Arc::clone(ring), next: start }
    }

    /// Consumes the available entries, at most `most`.
    fn take(&mut self, most: u32) -> Vec<u32> {
        let produced = self.ring.producer.load(Ordering::Acquire);
        let mut taken = Vec::new();
        while self.next != produced && taken.len() < most as usize {
            taken.push(self.ring.place(self.next).get());
            self.next = self.next.wrapping_add(1);
        }
        self.ring.consumer.store(self.next, Ordering::Release);
        taken
    }

    /// Produces entries until the ring is full. Returns their number.
    fn give(&mut self, entries: impl Iterator<Item = u32>) -> u32 {
        let consumed = self.ring.consumer.load(Ordering::Acquire);
        let room = self.ring.entries.len() as u32 - self.next.wrapping_sub(consumed);
        let mut given = 0;
        for entry in entries.take(room as usize) {
            self.ring.place(self.next).set(entry);
            self.next = self.next.wrapping_add(1);
            given += 1;
        }
        self.ring.producer.store(self.next, Ordering::Release);
        given
    }
}

type Watched = Memory<loom::sync::atomic::AtomicU32, loom::cell::UnsafeCell<u32>>;

fn watched(size: u32) -> Arc<Watched> {
    Memory::new(size, BEFORE_WRAP, loom::sync::atomic::AtomicU32::new, loom::cell::UnsafeCell::new)
}

/// More entries than the two slots of the ring, so that a slot is reused.
const ENTRIES: u32 = 3;

#[test]
fn kernel_reads_every_entry_once_and_complete_in_any_interleaving() {
    for most in [1, 2] {
        loom::model(move || {
            let ring = watched(2);
            let mut kernel = Kernel::of(&ring, BEFORE_WRAP);
            let mut producer = Producer::new(ring);
            let consuming = loom::thread::spawn(move || {
                let mut seen = Vec::new();
                while seen.len() < ENTRIES as usize {
                    seen.extend(kernel.take(most));
                    loom::thread::yield_now();
                }
                seen
            });
            for entry in 0..ENTRIES {
                while !producer.put(entry) {
                    loom::thread::yield_now();
                }
                producer.submit();
            }
            assert_eq!(consuming.join().unwrap(), [0, 1, 2]);
        });
    }
}

#[test]
fn every_entry_of_the_kernel_is_read_once_and_complete_in_any_interleaving() {
    for most in [1, 2] {
        loom::model(move || {
            let ring = watched(2);
            let mut kernel = Kernel::of(&ring, BEFORE_WRAP);
            let mut consumer = Consumer::new(ring);
            let producing = loom::thread::spawn(move || {
                let mut given = 0;
                while given < ENTRIES {
                    given += kernel.give(given..ENTRIES);
                    loom::thread::yield_now();
                }
            });
            let mut seen = Vec::new();
            while seen.len() < ENTRIES as usize {
                consumer.take(most, |entry| seen.push(entry));
                loom::thread::yield_now();
            }
            producing.join().unwrap();
            assert_eq!(seen, [0, 1, 2]);
        });
    }
}

type Plain = Memory<AtomicU32, Cell<u32>>;

fn plain(size: u32, start: u32) -> Arc<Plain> {
    Memory::new(size, start, AtomicU32::new, Cell::new)
}

/// Sizes of rings and their initial counters: any, or shortly before the wrap-around.
fn rings() -> impl Strategy<Value = (u32, u32)> {
    let start = prop_oneof![any::<u32>(), (0_u32..200).prop_map(|before| BEFORE_WRAP - before)];
    ((0_u32..7).prop_map(|bits| 1 << bits), start)
}

#[derive(Debug, Clone)]
enum Step {
    /// This process writes or consumes this many.
    Ours(u32),
    /// This process submits the written entries.
    Submit,
    /// The kernel consumes or produces this many.
    Kernel(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u32..100).prop_map(Step::Ours),
        Just(Step::Submit),
        (0_u32..100).prop_map(Step::Kernel),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn producer_fills_free_slots_and_the_kernel_reads_submitted_entries((size, start) in rings(), steps in steps()) {
        let ring = plain(size, start);
        let mut kernel = Kernel::of(&ring, start);
        let mut producer = Producer::new(ring);
        let (mut put, mut submitted) = (VecDeque::new(), VecDeque::new());
        let mut entries = 0_u32..;
        for step in steps {
            match step {
                Step::Ours(count) => {
                    for entry in entries.by_ref().take(count as usize) {
                        let has_room = put.len() + submitted.len() < size as usize;
                        prop_assert_eq!(producer.has_room(), has_room);
                        prop_assert_eq!(producer.put(entry), has_room);
                        if has_room {
                            put.push_back(entry);
                        }
                    }
                }
                Step::Submit => {
                    producer.submit();
                    submitted.append(&mut put);
                }
                Step::Kernel(most) => {
                    let count = submitted.len().min(most as usize);
                    prop_assert_eq!(kernel.take(most), submitted.drain(..count).collect::<Vec<u32>>());
                }
            }
        }
    }

    #[test]
    fn consumer_reads_entries_in_order((size, start) in rings(), steps in steps()) {
        let ring = plain(size, start);
        let mut kernel = Kernel::of(&ring, start);
        let mut consumer = Consumer::new(ring);
        let mut produced = VecDeque::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Kernel(count) => {
                    let given = kernel.give(next..next + count);
                    prop_assert_eq!(given as usize, (size as usize - produced.len()).min(count as usize));
                    produced.extend(next..next + given);
                    next += given;
                }
                Step::Ours(most) => {
                    let mut taken = Vec::new();
                    let count = consumer.take(most, |entry| taken.push(entry));
                    prop_assert_eq!(count as usize, taken.len());
                    prop_assert_eq!(count as usize, produced.len().min(most as usize));
                    prop_assert_eq!(taken, produced.drain(..count as usize).collect::<Vec<u32>>());
                }
                Step::Submit => {}
            }
        }
    }

    #[test]
    fn invalid_counter_never_yields_more_entries_than_the_ring_has(
        (size, start) in rings(),
        counter in any::<u32>(),
    ) {
        let ring = plain(size, start);
        let mut consumer = Consumer::new(Arc::clone(&ring));
        ring.producer.store(counter, Ordering::Release);
        let taken = consumer.take(u32::MAX, |_| ());
        prop_assert!(taken <= size);
    }
}

#[test]
fn wake_up_is_requested_by_its_flag_only() {
    let ring = plain(4, 0);
    let producer = Producer::new(Arc::clone(&ring));
    assert!(!producer.needs_wakeup());
    ring.flags.store(!NEED_WAKEUP, Ordering::Relaxed);
    assert!(!producer.needs_wakeup());
    ring.flags.store(NEED_WAKEUP, Ordering::Relaxed);
    assert!(producer.needs_wakeup());
}
