//! The kernel-bypass sockets and programs of an end, opened before its traffic starts, and the threads that use them.
use std::net::UdpSocket;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use netduel_model::snapshot::XdpFeature;
use netduel_model::workload::Role;

use super::attachment::Attachment;
use super::bypass_path::BypassPath;
use super::frame::Template;
use super::receiver::{self, BypassError, XdpCounter, XdpReceiver};
use super::sender::XdpSender;
use super::{kernel_generator, programs};
use crate::counted::Counted;
use crate::datagram::{self, Kind};
use crate::error::LoadError;
use crate::job::Job;
use crate::thread_count;
use crate::udp_send::{self, SendFlow, UdpSettings};
use crate::worker::Worker;

/// What an end has opened.
#[derive(Debug)]
pub(crate) enum Bypass {
    /// AF_XDP sockets for sending, one per thread.
    Senders(Vec<XdpSender>),
    /// The interface on which the kernel generates frames.
    KernelGenerator(BypassPath),
    /// AF_XDP sockets for receiving, and their number of threads.
    Receiver(XdpReceiver, usize),
    /// An XDP program that counts.
    Counter(XdpCounter),
}

impl Bypass {
    /// Opens the sockets and programs of this end. `flows`: their number; `pins`: the cores of the plan.
    pub(crate) fn open(
        packets: &PacketPath,
        role: Role,
        path: &BypassPath,
        (flows, pins): (u32, &[u16]),
        token: Token,
    ) -> Result<Self, LoadError> {
        let failed = |(doing, error): BypassError| LoadError::bypass(doing, &path.interface, error);
        let magics =
            || (0..flows).map(|flow| datagram::magic(token, flow, Kind::FromClient)).collect::<Vec<_>>();
        match (role, packets.engine, packets.receiver) {
            (Role::Client, PacketEngine::Kernel, _) if path.lacks(XdpFeature::NdoXmit) => {
                Err(LoadError::NoXdpTransmit { interface: path.interface.clone() })
            }
            (Role::Client, PacketEngine::Kernel, _) => Ok(Self::KernelGenerator(path.clone())),
            (Role::Client, _, _) => {
                let threads = thread_count::of(flows as usize, pins) as u32;
                let queues =
                    queue_limit(packets, path)?.unwrap_or(path.queues.min(threads)).clamp(1, flows.max(1));
                let attachment = if path.lacks(XdpFeature::XskZerocopy) || path.xdp.is_none() {
                    Attachment::default()
                } else {
                    programs::attach_pass_program(path).map_err(failed)?
                };
                let open = |queue| {
                    XdpSender::open(path, queue, attachment.clone())
                        .map_err(|error| failed(("open an AF_XDP socket", error)))
                };
                Ok(Self::Senders((0..queues).map(open).collect::<Result<_, _>>()?))
            }
            (Role::Server, _, PacketReceiver::Count) => {
                XdpCounter::open(path, &magics()).map(Self::Counter).map_err(failed)
            }
            (Role::Server, _, _) => {
                let threads = thread_count::of(path.queues as usize, pins);
                let threads = queue_limit(packets, path)?.map_or(threads, |queues| queues as usize);
                let receiver = XdpReceiver::open(path, &magics(), packets.busy_poll).map_err(failed)?;
                Ok(Self::Receiver(receiver, threads))
            }
        }
    }

    /// What keeps its programs and sockets on the interface; none of the kernel's generator.
    pub(crate) fn attachment(&self) -> Option<Attachment> {
        match self {
            // All of them have the same.
            Self::Senders(senders) => senders.first().map(XdpSender::attachment),
            Self::KernelGenerator(_) => None,
            Self::Receiver(receiver, _) => Some(receiver.attachment()),
            Self::Counter(counter) => Some(counter.attachment()),
        }
    }

    /// The threads of this end.
    pub(crate) fn jobs(self, settings: UdpSettings, token: Token, sockets: &[Arc<UdpSocket>]) -> Vec<Job> {
        let magic = |stream: usize, kind| datagram::magic(token, stream as u32, kind);
        let flow = |stream: usize| SendFlow {
            stream,
            socket: Arc::clone(&sockets[stream]),
            magic: magic(stream, Kind::FromClient),
            end_magic: magic(stream, Kind::ClientEnds),
        };
        let magics: Vec<u64> = (0..sockets.len()).map(|stream| magic(stream, Kind::FromClient)).collect();
        match self {
            Self::Senders(senders) => {
                let threads = senders.len();
                let job = |(thread, sender): (usize, XdpSender)| {
                    let streams: Vec<usize> = (thread..sockets.len()).step_by(threads).collect();
                    let flows: Vec<SendFlow> = streams.iter().map(|stream| flow(*stream)).collect();
                    let work = Box::new(move |worker: &mut Worker| {
                        udp_send::send(worker, flows, settings, Some(sender))
                    });
                    Job { streams, thread, follows_peer: false, work }
                };
                senders.into_iter().enumerate().map(job).collect()
            }
            Self::KernelGenerator(path) => (0..sockets.len())
                .map(|stream| {
                    let (path, flow) = (path.clone(), flow(stream));
                    Job::new(stream, stream, move |worker| generate(worker, &path, &flow, settings))
                })
                .collect(),
            Self::Receiver(receiver, threads) => {
                let parts = receiver.split(threads).into_iter().enumerate();
                parts
                    .map(|(thread, part)| {
                        let magics = magics.clone();
                        Job::infallible(thread, thread, move |worker| {
                            receiver::receive(worker, part, &magics, settings.size)
                        })
                    })
                    .collect()
            }
            Self::Counter(counter) => {
                vec![Job::infallible(0, 0, move |worker| {
                    receiver::count_until_done(worker, &counter, settings.size)
                })]
            }
        }
    }
}

/// The number of queues in the plan; an error when the interface has fewer.
fn queue_limit(packets: &PacketPath, path: &BypassPath) -> Result<Option<u32>, LoadError> {
    match packets.queues {
        Some(queues) if queues > path.queues => {
            let interface = path.interface.clone();
            Err(LoadError::Queues { interface, has: path.queues, requested: queues })
        }
        queues => Ok(queues),
    }
}

fn generate(
    worker: &mut Worker,
    path: &BypassPath,
    flow: &SendFlow,
    settings: UdpSettings,
) -> Result<Counted, LoadError> {
    let addresses = flow.socket.local_addr().and_then(|from| Ok((from, flow.socket.peer_addr()?)));
    let (from, to) = addresses.map_err(|error| LoadError::system("read the addresses of a flow", error))?;
    let template = Template::new(path, from, to, settings.size);
    let end_ns = worker.control.started_ns().saturating_add(settings.timing.duration.0);
    let result = kernel_generator::generate(worker, path, &template, flow.magic, settings.size, end_ns);
    if worker.control.sends_end_markers() {
        crate::end_markers::send(|| std::iter::once((&*flow.socket, flow.end_magic)));
    }
    result.map(Counted::Packets)
}
