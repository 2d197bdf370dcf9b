//! Selects the driver counters that show a virtual function's share, a limit of the provider, or a full queue. A list of names,
//! each with its source; other modules interpret the values.

/// A pattern of counter names.
struct Pattern {
    /// Prefix of the name.
    begins: &'static str,
    /// Suffix of the name.
    ends: &'static str,
    /// Whether other characters may be between prefix and suffix; otherwise the name equals the prefix.
    open: bool,
}

const fn exact(name: &'static str) -> Pattern {
    Pattern { begins: name, ends: "", open: false }
}
const fn begins(name: &'static str) -> Pattern {
    Pattern { begins: name, ends: "", open: true }
}
const fn ends(name: &'static str) -> Pattern {
    Pattern { begins: "", ends: name, open: true }
}

/// Names are compared without the leading blanks of vmxnet3.
const PATTERNS: &[Pattern] = &[
    // hv_netvsc: drivers/net/hyperv/netvsc_drv.c, `vf_stats` and `netvsc_stats`. MANA has the last two, too
    // (drivers/net/ethernet/microsoft/mana/mana_ethtool.c).
    begins("vf_rx_"),
    begins("vf_tx_"),
    exact("tx_scattered"),
    exact("tx_no_memory"),
    exact("tx_no_space"),
    exact("tx_too_big"),
    exact("tx_busy"),
    exact("tx_send_full"),
    exact("rx_comp_busy"),
    exact("rx_no_memory"),
    exact("stop_queue"),
    exact("wake_queue"),
    // MANA's hardware counters, newer kernels: the same file.
    begins("hc_rx_discards"),
    begins("hc_rx_pkt_drop"),
    begins("hc_tx_pkt_drop"),
    begins("hc_tx_err"),
    // ENA: drivers/net/ethernet/amazon/ena/ena_ethtool.c, `ena_stats_eni_strings`; ENA Express of the amzn-drivers repository.
    ends("_allowance_exceeded"),
    exact("conntrack_allowance_available"),
    begins("ena_srd_"),
    ends("_tx_queue_stop"),
    ends("_tx_missed_tx"),
    ends("_rx_empty_rx_ring"),
    // gve: drivers/net/ethernet/google/gve/gve_ethtool.c.
    exact("rx_dropped"),
    exact("tx_dropped"),
    exact("tx_timeouts"),
    exact("rx_buf_alloc_fail"),
    exact("rx_desc_err_dropped_pkt"),
    begins("rx_queue_drop_cnt"),
    begins("rx_no_buffers_posted"),
    begins("rx_drops_packet_over_mru"),
    begins("rx_drops_invalid_checksum"),
    // virtio_net: drivers/net/virtio_net.c, `virtnet_sq_stats_desc`; of the device statistics of virtio 1.4 those of the rate, which
    // the driver calls `tx_hw_ratelimit_bytes` and `tx0_hw_ratelimit_bytes`. Their packets are in netlink's queue statistics
    // (`hw-drop-ratelimits`) and not here.
    ends("_drops"),
    ends("_ratelimit_packets"),
    ends("_ratelimit_bytes"),
    ends("_hw_drop_ratelimits"),
    // mlx5: Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.
    exact("rx_out_of_buffer"),
    exact("tx_queue_stopped"),
    exact("tx_queue_dropped"),
    exact("rx_discards_phy"),
    exact("tx_discards_phy"),
    exact("rx_steer_missed_packets"),
    // vmxnet3: drivers/net/vmxnet3/vmxnet3_ethtool.c; the same names for each queue.
    exact("pkts rx OOB"),
    exact("drv dropped rx total"),
    exact("rx buf alloc fail"),
    exact("ring full"),
    exact("drv dropped tx total"),
    exact("pkts tx discard"),
];

/// Whether a counter of this name is reported.
pub(crate) fn is_reported(name: &str) -> bool {
    let name = name.trim();
    PATTERNS.iter().any(|pattern| {
        if pattern.open {
            name.starts_with(pattern.begins) && name.ends_with(pattern.ends)
        } else {
            name == pattern.begins
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_counters_are_reported_and_traffic_counters_are_not() {
        let limits = [
            "vf_rx_bytes",
            "bw_out_allowance_exceeded",
            "queue_3_tx_queue_stop",
            "rx0_hw_ratelimit_bytes",
            "rx_out_of_buffer",
            "  pkts rx OOB",
            "rx_queue_drop_cnt[2]",
        ];
        for name in limits {
            assert!(is_reported(name), "{name}");
        }
        for name in
            ["cpu0_rx_packets", "rx_packets", "rx_queue_0_bytes", "tx_busy_cycles", "", "rx_dropped_total"]
        {
            assert!(!is_reported(name), "{name}");
        }
    }
}
