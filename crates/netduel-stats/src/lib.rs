//! Pure statistics over samples: histogram, interval, compare, sequential stop.
