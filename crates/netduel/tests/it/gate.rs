//! A gate in a plan: each trial of one arm waits until its test lets it pass, so that a run cannot end before, however long the test itself
//! waits for a core. A trial waits for 30 s at most, the limit of a command.
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Bench, TWO_PATHS};

/// A named pipe. A trial that reads a line of it passes.
pub struct Gate {
    path: PathBuf,
    /// Also open for reading, so that lines stay in it until a trial takes them.
    pipe: File,
}

impl Gate {
    /// A gate that lets this many trials pass.
    pub fn open_for(bench: &Bench, trials: usize) -> Self {
        let path = bench.path().join("gate");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut gate = Self { path, pipe };
        gate.let_pass(trials);
        gate
    }

    /// Lets as many more trials pass.
    pub fn let_pass(&mut self, trials: usize) {
        self.pipe.write_all("\n".repeat(trials).as_bytes()).unwrap();
    }

    /// The two arms of the lab; the client `a` of the accelerated one waits at the gate in each block.
    pub fn arms(&self) -> String {
        let wait = format!("read line < '{}'", self.path.display());
        let path = "{ path = \"accelerated\" }";
        let gated =
            format!("{path}, {{ command = [\"sh\", \"-c\", {wait:?}], undo = [\"true\"], on = \"client\" }}");
        TWO_PATHS.replace(path, &gated)
    }
}
