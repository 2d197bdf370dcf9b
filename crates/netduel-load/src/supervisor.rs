//! The thread that runs one end: waits for the sockets, starts a thread for each job, samples the counters, enforces the deadline,
//! and builds the report. It moves no payload.
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::packet_path::PacketReport;
use netduel_model::sample::{ConnectionReport, EndReport, StreamReport, UNACKNOWLEDGED};
use netduel_model::workload::{Role, SAMPLE_INTERVAL_NS, Workload};
use netduel_sys::{affinity, clock, socket, tcp, udp, usage};

use crate::connection_info;
use crate::control::Control;
use crate::counted::{Counted, Totals};
use crate::deadline::Deadline;
use crate::end_context::{EndContext, pins};
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::job::Job;
use crate::kernel_timestamping::KernelTimestamping;
use crate::packets::BypassPath;
use crate::packets::bypass::Bypass;
use crate::port::registry::Registration;
use crate::report::{self, SeriesGatherer};
use crate::socket_source::SocketSource;
use crate::sockets::Sockets;
use crate::spawn;
use crate::start_barrier::StartBarrier;
use crate::stream_counter;
use crate::worker::Worker;
use crate::workload;

/// Longest wait of a sender that follows its peer, nanoseconds: the peer starts a round trip of the control connections later, and its
/// threads may wait for a core.
const FOLLOW_MAX_NS: u64 = 2_000_000_000;
/// How often the first data of the peer are looked for, nanoseconds.
const FOLLOW_LOOK_NS: u64 = 1_000_000;

/// All that an end needs to run.
pub(crate) struct Supervisor {
    pub control: Arc<Control>,
    pub workload: Workload,
    pub role: Role,
    pub token: Token,
    pub sockets: SocketSource,
    pub setup: ErrorCounts,
    /// How the connections were set up, at the client.
    pub connections: Option<ConnectionReport>,
    /// The open kernel-bypass sockets or programs.
    pub raw: Option<Bypass>,
    /// The interface and whether it segments GSO buffers, for the workload `pps`.
    pub segmentation: Option<(String, bool)>,
    /// Keeps time stamping enabled, when the workload uses it.
    pub stamping: Option<KernelTimestamping>,
    /// The registration with a shared port.
    pub registration: Option<Registration>,
}

impl Supervisor {
    /// Opens the kernel-bypass sockets or programs of the workload on this interface.
    pub(crate) fn open_bypass(&mut self, path: &BypassPath) -> Result<(), LoadError> {
        let facts = self.workload.traffic.facts();
        if let Some(packets) = facts.packets.filter(|packets| packets.is_raw(self.role)) {
            let flows = (facts.sockets.udp, pins(&self.workload, self.role));
            self.raw = Some(Bypass::open(packets, self.role, path, flows, self.token)?);
        }
        Ok(())
    }

    /// How long this end waits for the connections of its peer, nanoseconds from the start.
    pub(crate) fn connect_ns(&self) -> u64 {
        Deadline::connect_ns(self.workload.timing.duration.0)
    }

    /// Runs the end until it is over.
    pub(crate) fn run(mut self) -> Result<EndReport, LoadError> {
        let before =
            usage::of_this_process().map_err(|error| LoadError::system("read the CPU time", error))?;
        let source = std::mem::replace(&mut self.sockets, SocketSource::Connected(Sockets::default()));
        let sockets = source.wait(&mut self.setup)?;
        // Connecting replaces the congestion control of a socket by that of the route, when it has one (`tcp_ca_dst_init` in
        // net/ipv4/tcp_output.c).
        if let Some(name) = self.workload.traffic.facts().tcp.congestion {
            for connection in &sockets.tcp {
                self.setup.count_failure("setsockopt TCP_CONGESTION", tcp::set_congestion(connection, name));
            }
        }
        if let Some(dscp) = self.workload.dscp {
            for connection in &sockets.tcp {
                self.setup.count_failure("setsockopt IP_TOS", socket::set_dscp(connection, dscp));
            }
            for flow in &sockets.udp {
                self.setup.count_failure("setsockopt IP_TOS", socket::set_dscp(flow, dscp));
            }
        }
        self.control.attach_sockets(sockets.clone());
        let is_proven = matches!(self.segmentation, Some((_, true)));
        let is_unsegmented = self.workload.traffic.facts().packets.is_some() && !is_proven;
        let jobs = workload::jobs(EndContext {
            workload: &self.workload,
            role: self.role,
            token: self.token,
            sockets: &sockets,
            raw: self.raw.take(),
            is_unsegmented,
        })?;
        let count = jobs.len();
        let follows_peer = jobs.iter().any(|job| job.follows_peer);
        let (sender, results) = channel();
        let start = Arc::new(Start::default());
        for (index, job) in jobs.into_iter().enumerate() {
            let worker = Worker::new(Arc::clone(&self.control), job.streams[0]);
            let core = self.core(job.thread);
            let name = format!("load-{}", job.thread);
            let (sender, thread_start) = (sender.clone(), Arc::clone(&start));
            let spawned = spawn::builder(name).spawn(move || {
                let finished = run_job(job, worker, core, &thread_start);
                // The supervisor waits for every job, so the channel is open.
                let _ = sender.send(finished);
            });
            if let Err(source) = spawned {
                self.control.abort();
                start.open();
                return Err(LoadError::thread_of(index + 1, count, source));
            }
        }
        drop(sender);
        self.begin(&start, count, follows_peer);
        let (series, finished) = self.attend(&results, count);
        // The port accepts no further clients for this end, and time stamping may stop.
        drop((self.registration.take(), self.stamping.take()));
        let (mut counted, mut threads) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (thread, result) in finished {
            counted.push(result.inspect_err(|_| {
                self.control.release_sockets();
            })?);
            threads.push(thread);
        }
        let after =
            usage::of_this_process().map_err(|error| LoadError::system("read the CPU time", error))?;
        let cpu = (after.user_ns - before.user_ns, after.system_ns - before.system_ns);
        Ok(self.report(&sockets, threads, counted, series, cpu))
    }

    /// Lets the threads begin, those that follow the peer with its first data.
    fn begin(&self, start: &Start, count: usize, follows_peer: bool) {
        // The duration counts from the first thread that runs: to start threads takes milliseconds each where cores are busy, and a thread
        // that gets no core for all of a short duration would have no traffic.
        start.of_all.wait_for(count);
        start.of_all.open();
        if count > 0 {
            start.of_all.wait_until_begun();
        } else {
            // An end whose kernel does the work.
            self.control.begin();
        }
        if follows_peer {
            self.wait_for_peer();
            start.of_followers.open();
            start.of_followers.wait_until_begun();
        }
    }

    /// Waits for the first data of the peer. Where none arrive, the path may be broken in that direction, and the other is measured anyway.
    fn wait_for_peer(&self) {
        let most_ns = FOLLOW_MAX_NS.min(self.workload.timing.duration.0 / 2);
        let give_up_ns = self.control.started_ns().saturating_add(most_ns);
        let has_data = || self.control.bulk_received().iter().any(|counter| counter.span().is_some());
        while self.control.is_running() && !has_data() && clock::monotonic_ns() < give_up_ns {
            clock::sleep_until(clock::monotonic_ns() + FOLLOW_LOOK_NS);
        }
    }

    /// The core that a thread is pinned to.
    fn core(&self, thread: usize) -> Option<u16> {
        let pins = pins(&self.workload, self.role);
        (!pins.is_empty()).then(|| pins[thread % pins.len()])
    }

    /// Samples until all jobs are done; returns the series of sent and received data, and the finished threads.
    fn attend(
        &mut self,
        results: &Receiver<Finished>,
        count: usize,
    ) -> ((SeriesGatherer, SeriesGatherer), Vec<Finished>) {
        let started = self.control.started_ns();
        let (mut sent, mut received) = (SeriesGatherer::new(), SeriesGatherer::new());
        let mut finished = Vec::with_capacity(count);
        let mut deadline = Deadline::new(started, self.workload.timing.duration.0);
        let mut next = started + SAMPLE_INTERVAL_NS;
        // Waiting for the client may have taken a while: the first interval is the one that runs now.
        next += clock::monotonic_ns().saturating_sub(started) / SAMPLE_INTERVAL_NS * SAMPLE_INTERVAL_NS;
        while finished.len() < count {
            let wait = Duration::from_nanos(next.saturating_sub(clock::monotonic_ns()));
            match results.recv_timeout(wait) {
                Ok(thread) => finished.push(thread),
                Err(RecvTimeoutError::Timeout) => {
                    let now = clock::monotonic_ns();
                    sent.sample(now, started, self.control.bulk_sent());
                    received.sample(now, started, self.control.bulk_received());
                    while next <= now {
                        next += SAMPLE_INTERVAL_NS;
                    }
                    self.abort_when_over(&mut deadline, now);
                }
                // A worker panicked, and its panic is on stderr.
                Err(RecvTimeoutError::Disconnected) => panic!("a worker of the load ended without a result"),
            }
        }
        let now = clock::monotonic_ns();
        sent.sample(now, started, self.control.bulk_sent());
        received.sample(now, started, self.control.bulk_received());
        ((sent, received), finished)
    }

    /// Aborts an overdue end, so that no thread waits for a peer that is gone.
    fn abort_when_over(&mut self, deadline: &mut Deadline, now: u64) {
        let control = &self.control;
        let moved =
            stream_counter::total(&control.sent).bytes + stream_counter::total(&control.received).bytes;
        if deadline.is_over(now, moved, control.is_finishing()) && !control.is_aborted() {
            self.setup.count_event("deadline", "aborted: the peer did not finish in time");
            self.control.abort();
        }
    }

    fn report(
        self,
        sockets: &Sockets,
        threads: Vec<Thread>,
        counted: Vec<Counted>,
        series: (SeriesGatherer, SeriesGatherer),
        process_cpu_ns: (u64, u64),
    ) -> EndReport {
        let facts = self.workload.traffic.facts();
        let mut tallies = vec![self.setup];
        let accounted = facts.sockets.accounted as usize;
        let mut streams = streams(&self.control, sockets, accounted, &mut tallies[0]);
        let discarded = self.control.release_sockets() as u64;
        tallies[0].count_times(UNACKNOWLEDGED.0, UNACKNOWLEDGED.1, discarded);
        let thread_use = report::thread_use(threads.iter().map(|thread| thread.run_and_wait));
        let mut totals = Totals::default();
        for (thread, counted) in threads.into_iter().zip(counted) {
            for index in &thread.streams {
                if let Some(stream) = streams.get_mut(*index) {
                    // The entry of a stream has one core: that of the first of its threads, one for each direction.
                    stream.core = stream.core.or(thread.pinned);
                    // One thread at most receives messages of a stream.
                    stream.napi_id = stream.napi_id.or(counted.napi_id());
                }
            }
            tallies.push(thread.errors);
            totals.add(counted);
        }
        if let Some((interface, is_segmented)) = self.segmentation {
            let segmentation = Some(is_segmented);
            totals.add(Counted::Packets(PacketReport { interface, segmentation, ..PacketReport::default() }));
        }
        let (sends, receives) = facts.directions(self.role);
        let started = self.control.started_ns();
        let mut end = EndReport::new(self.role);
        end.sent = sends.then(|| report::flow(self.control.bulk_sent(), started, series.0));
        end.received = receives.then(|| report::flow(self.control.bulk_received(), started, series.1));
        end.fairness = if facts.is_stream() { report::spread(&streams, sends) } else { None };
        end.streams = report::grouped(streams);
        end.connections = self.connections;
        end.errors = ErrorCounts::report(tallies);
        end.process_cpu_ns = process_cpu_ns;
        end.thread_use = thread_use;
        totals.enter(&mut end, started);
        end
    }
}

/// The barriers that the threads of an end pass.
#[derive(Default)]
struct Start {
    of_all: StartBarrier,
    /// Of those that begin with the first data of the peer. The duration then counts from the first of them; what the peer sent until then is in
    /// the first sample.
    of_followers: StartBarrier,
}

impl Start {
    /// Lets every thread pass.
    fn open(&self) {
        self.of_all.open();
        self.of_followers.open();
    }
}

/// A finished thread, besides the result of its job.
struct Thread {
    streams: Vec<usize>,
    /// The core that it was pinned to.
    pinned: Option<u16>,
    errors: ErrorCounts,
    /// How long it ran and waited for a core, nanoseconds.
    run_and_wait: Option<(u64, u64)>,
}

/// A thread that has ended, and what its job counted.
type Finished = (Thread, Result<Counted, LoadError>);

fn run_job(job: Job, mut worker: Worker, core: Option<u16>, start: &Start) -> Finished {
    if let Some(core) = core {
        match affinity::pin_this_thread(core) {
            Ok(()) => worker.pinned = Some(core),
            Err(error) => worker.errors.count("sched_setaffinity", &error),
        }
    }
    start.of_all.arrive(|| worker.control.begin());
    if job.follows_peer {
        start.of_followers.arrive(|| worker.control.begin());
    }
    let result = (job.work)(&mut worker);
    // The thread runs this job only, so its whole CPU time is that of the job.
    let run_and_wait = usage::run_and_wait_of_this_thread();
    let Worker { pinned, errors, .. } = worker;
    (Thread { streams: job.streams, pinned, errors, run_and_wait }, result)
}

/// The reports of the streams: counts, TCP_INFO for the first `accounted` connections, and ports of flows.
fn streams(
    control: &Control,
    sockets: &Sockets,
    accounted: usize,
    errors: &mut ErrorCounts,
) -> Vec<StreamReport> {
    let mut reports: Vec<StreamReport> = control
        .bulk_sent()
        .iter()
        .zip(control.bulk_received())
        .enumerate()
        .map(|(index, (sent, received))| StreamReport {
            index: index as u32,
            sent_bytes: sent.read().bytes,
            received_bytes: received.read().bytes,
            ..StreamReport::default()
        })
        .collect();
    for (report, connection) in reports.iter_mut().zip(&sockets.tcp[..accounted]) {
        match connection_info::read(connection) {
            Ok(info) => report.tcp = Some(info),
            Err(error) => errors.count("getsockopt TCP_INFO", &error),
        }
    }
    // A flow next to connections has no stream of its own in the report.
    let flows = if accounted == 0 { &sockets.udp[..] } else { &[] };
    for (report, flow) in reports.iter_mut().zip(flows) {
        (report.local, report.peer) = (flow.local_addr().ok(), flow.peer_addr().ok());
        // Without the option in the kernel, or without data on the flow, there is no core.
        report.incoming_core = udp::incoming_core(flow).ok().flatten();
    }
    reports
}
