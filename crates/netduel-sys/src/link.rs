//! Link settings by ioctl (netdevice(7)): MTU, flags.
