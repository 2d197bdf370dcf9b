//! Readiness of many sockets (epoll(7)): the cost depends on the number of ready sockets, not of watched ones.
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::socket::to_timespec;

/// A set of sockets that are watched for readability or writability. It does not keep them open; a closed socket leaves the set.
pub struct Readiness {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Readiness {
    /// An empty set, which reports up to `most` sockets at a time.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn new(most: usize) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(most.max(1)) })
    }

    /// Watches `socket` for readability under the number `index`.
    ///
    /// # Errors
    /// `EEXIST` when it is already watched, `ENOSPC` beyond fs.epoll.max_user_watches.
    pub fn watch(&self, socket: impl AsFd, index: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(index as u64), EventFlags::IN)?)
    }

    /// Watches `socket` for writability under the number `index`. [`Self::wait`] reports it like a readable one.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub fn watch_writable(&self, socket: impl AsFd, index: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(index as u64), EventFlags::OUT)?)
    }

    /// Stops watching it.
    ///
    /// # Errors
    /// `ENOENT` when it was not watched.
    pub fn forget(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Waits until one of them is ready, was hung up or has an error, at most for `timeout`, and returns the numbers of these;
    /// none after the timeout or a signal. An unread socket is reported again. Allocates nothing.
    ///
    /// # Errors
    /// None on an open set; returned for the caller to report.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<impl Iterator<Item = usize>> {
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&to_timespec(timeout))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::socket::{Waiting, receive, send};

    #[test]
    fn readable_sockets_are_reported_until_read_or_removed() {
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        let mut set = Readiness::new(8).unwrap();
        for (index, (_, right)) in pairs.iter().enumerate() {
            set.watch(right, index).unwrap();
        }
        assert_eq!(set.wait(Duration::ZERO).unwrap().count(), 0);
        for index in [0, 2] {
            send(&pairs[index].0, b"x", Waiting::Block).unwrap();
        }
        for _ in 0..2 {
            let mut ready: Vec<_> = set.wait(Duration::from_secs(10)).unwrap().collect();
            ready.sort_unstable();
            assert_eq!(ready, [0, 2]);
        }
        receive(&pairs[2].1, &mut [0; 8], Waiting::Never).unwrap();
        assert_eq!(set.wait(Duration::from_secs(10)).unwrap().collect::<Vec<_>>(), [0]);
        set.forget(&pairs[0].1).unwrap();
        assert_eq!(set.wait(Duration::ZERO).unwrap().count(), 0);
        assert!(set.forget(&pairs[0].1).is_err());
    }
}
