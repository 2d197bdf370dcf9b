//! The ethtool ioctl (include/uapi/linux/ethtool.h): driver, counters, features.
