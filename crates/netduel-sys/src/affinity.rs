//! Which cores a thread may run on (sched_setaffinity(2)).
