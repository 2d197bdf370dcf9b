//! Readers of what a host is and does: netlink, ethtool, sysfs, procfs. No policy.
