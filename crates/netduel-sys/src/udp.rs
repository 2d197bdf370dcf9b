//! UDP sockets: batches (sendmmsg(2), recvmmsg(2)) and control messages (cmsg(3)).
