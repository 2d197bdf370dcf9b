//! Labs end and leave nothing behind.
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use netduel_lab::{KeeperCommand, Lab, Lifetime};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use rustix::process::Signal;

use crate::bench::{Bench, Standing, Watched, inhabitants, name_for, only_child, printed, users};

/// An attached lab with a program inside, and all its processes.
struct Scene {
    name: String,
    coordinator: Child,
    program: Child,
    guard: Watched,
    init: Watched,
    networks: std::collections::BTreeSet<String>,
}

impl Scene {
    fn new(bench: &Bench) -> Self {
        let name = name_for("scene");
        let mut coordinator =
            bench.lab(["hold", &name, "5"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(coordinator.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let guard: i32 = line.trim().strip_prefix("keeper ").unwrap().parse().unwrap();
        let mut program = bench
            .inside(
                &name,
                "a",
                "sh",
                &["-c", "echo here; trap '' TERM INT HUP; while :; do sleep 1000; done"],
            )
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let networks = bench.networks(&name);
        assert!(!inhabitants(&networks).is_empty());
        let (guard, init) = (Watched::new(guard), Watched::new(only_child(guard)));
        Self { name, coordinator, program, guard, init, networks }
    }

    /// Waits for the end of all processes, and checks for leftovers.
    fn assert_gone(mut self, bench: &Bench) {
        self.init.wait();
        self.guard.wait();
        assert_eq!(self.program.wait().unwrap().code(), Some(137), "the program was not killed with its lab");
        assert_eq!(inhabitants(&self.networks), Vec::<i32>::new());
        assert!(!bench.lists(&self.name));
        drop(self.coordinator.stdin.take());
        self.coordinator.wait().unwrap();
    }
}

#[test]
fn killed_guard_ends_the_lab() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let scene = Scene::new(&bench);
        scene.guard.kill();
        scene.assert_gone(&bench);
    }
}

#[test]
fn killed_init_ends_the_lab() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let scene = Scene::new(&bench);
        scene.init.kill();
        scene.assert_gone(&bench);
    }
}

#[test]
fn terminated_init_ends_the_lab() {
    for bench in users().into_iter().filter_map(Bench::new) {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let scene = Scene::new(&bench);
            scene.init.signal(signal);
            scene.assert_gone(&bench);
        }
    }
}

#[test]
fn killed_coordinator_ends_its_attached_lab() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let mut scene = Scene::new(&bench);
        scene.coordinator.kill().unwrap();
        scene.coordinator.wait().unwrap();
        scene.assert_gone(&bench);
    }
}

#[test]
fn down_removes_a_lab_and_its_processes() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let scene = Scene::new(&bench);
        bench.text(["down", &scene.name]);
        assert!(!bench.lists(&scene.name), "the name is taken after down");
        assert_eq!(inhabitants(&scene.networks), Vec::<i32>::new(), "down returned too early");
        scene.assert_gone(&bench);
    }
}

#[test]
fn standing_lab_outlives_its_creator_and_frees_its_name_after_down() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "stands", &["0"]);
        assert_eq!(bench.status(&lab.name)["lifetime"], "standing");
        let networks = bench.networks(&lab.name);
        bench.text(["down", &lab.name]);
        bench.text(["up", &lab.name, "0"]);
        assert!(networks.is_disjoint(&bench.networks(&lab.name)) || inhabitants(&networks).is_empty());
    }
}

#[test]
fn name_of_a_lab_is_unique() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "once", &["0"]);
        let second = bench.lab(["up", &lab.name, "0"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&second.stderr);
        assert!(!second.status.success() && stderr.contains("is up already"), "{stderr}");
        bench.text(["status", &lab.name]);
    }
}

#[test]
fn dropped_attached_lab_is_removed_before_drop_returns() {
    let Some(bench) = users().first().copied().and_then(Bench::new) else { return };
    let keeper = KeeperCommand { program: bench.program("lab"), words: vec!["lab-keeper".to_owned()] };
    let name = LabName::new(name_for("drop")).unwrap();
    let spec = resolved::Lab { rules: 5, cap: None, mtu: 1500, queues: 1 };
    let lab = Lab::up(&name, &spec, Lifetime::Attached, &keeper).unwrap();
    let status = lab.status().unwrap();
    assert_eq!((status.spec, status.lifetime), (spec, Lifetime::Attached));
    let networks = bench.networks(name.as_str());
    let (guard, init) = (status.keeper_pid, only_child(status.keeper_pid));
    drop(lab);
    for pid in [guard, init] {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
    }
    assert_eq!(inhabitants(&networks), Vec::<i32>::new());
    assert!(!netduel_lab::list().unwrap().contains(&name));
}

#[test]
fn keeper_inherits_no_descriptor() {
    let Some(bench) = users().first().copied().and_then(Bench::new) else { return };
    // A pipe whose writing end is held by this test only, unless it leaked to the keeper.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let lab = Standing { bench: &bench, name: name_for("leak") };
    let up = bench.lab(["up", &lab.name, "0"]).stderr(writer).output().unwrap();
    printed(&up);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut rest).unwrap();
    assert!(bench.lists(&lab.name), "the lab ended, so the pipe's end says nothing");
}
