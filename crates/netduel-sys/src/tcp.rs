//! TCP sockets: options, sendfile(2), receive that discards (MSG_TRUNC).
