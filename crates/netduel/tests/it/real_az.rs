//! `netduel azure` with the real `az` against a stand-in for Azure on loopback. `cargo xtask test azure` installs that `az` and runs these
//! tests; no other command does, because it has 730 MB.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use netduel_test_support::{not_requested, skip};

use crate::azure_run::PLAN;
use crate::support::{Bench, Finished, PACED, until};
use crate::vms::{Vms, assert_names, with_room_for_vms};

/// The folder with the program `az`, set by xtask.
const FOLDER_VARIABLE: &str = "NETDUEL_AZ_FOLDER";
const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stand_in/arm.py");

/// The folder of the real `az`; says why there is none. Without the variable these tests were not requested, which is no skip.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    if folder.is_none() {
        not_requested("the real az against a stand-in for Azure; run `cargo xtask test azure`");
    }
    folder
}

/// The real `az`, logged in at the stand-in.
struct Scene {
    bench: Bench,
    az: PathBuf,
    stand_in: Child,
}

impl Drop for Scene {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.stand_in.stdin.take());
        drop(self.stand_in.wait());
    }
}

impl Scene {
    /// Says why there is none.
    fn new() -> Option<Self> {
        let az = folder()?;
        let bench = Bench::new();
        let at = |name: &str| bench.path().join(name);
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
        ]);
        openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout"]).arg(at("key.pem"));
        let made = openssl.arg("-out").arg(at("cert.pem")).stderr(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            skip("openssl, which makes the certificate of the stand-in, cannot be run");
            return None;
        }
        let mut command = Command::new("python3");
        command.arg(STAND_IN).arg(at("cert.pem")).arg(at("key.pem"));
        bench.mark(&mut command);
        let mut stand_in = match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(stand_in) => stand_in,
            Err(error) => {
                skip(format!("python3, which runs the stand-in, cannot be run: {error}"));
                return None;
            }
        };
        let mut port = String::new();
        BufReader::new(stand_in.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let scene = Self { bench, az, stand_in };
        scene.log_in(port.trim());
        let key = scene.bench.path().join("key.pub");
        fs::write(&key, "ssh-ed25519 AAAAC3Nz\n").unwrap();
        Some(scene)
    }

    /// Points `az` to the stand-in and logs in with a service principal, in a configuration of this test.
    fn log_in(&self, port: &str) {
        let endpoint = format!("https://localhost:{port}");
        let login =
            ["login", "--service-principal", "-u", "44444444-4444-4444-4444-444444444444", "-p", "secret"];
        for words in [
            &["config", "set", "core.collect_telemetry=false", "core.instance_discovery=false"][..],
            &["cloud", "register", "-n", "StandIn", "--endpoint-resource-manager", &endpoint],
            &["cloud", "set", "-n", "StandIn"],
            &[&login[..], &["--tenant", "11111111-1111-1111-1111-111111111111"]].concat(),
        ] {
            let mut command = Command::new(self.az.join("az"));
            command.args(words).stdin(Stdio::null());
            self.surround(&mut command);
            Finished::from(command.output().unwrap()).expect_code(0);
        }
    }

    /// The environment of `az`: its own configuration, the certificate, and no way to other machines.
    fn surround(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        command
            .env("PATH", format!("{}:{}:{path}", self.bench.path().join("bin").display(), self.az.display()))
            .env("AZURE_CONFIG_DIR", self.bench.path().join("azure"))
            .env("REQUESTS_CA_BUNDLE", self.bench.path().join("cert.pem"))
            // Port 9 (discard) refuses: prices stay unknown.
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "localhost,127.0.0.1");
        self.bench.mark(command);
    }

    /// Writes NAME.toml, a bed of this name.
    fn bed(&self, name: &str) -> String {
        let key = self.bench.path().join("key.pub").display().to_string();
        let text = format!(
            "name = \"{name}\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\nssh_key = {key:?}\nssh_from = [\"192.0.2.1/32\"]\n"
        );
        fs::write(self.bench.path().join(format!("{name}.toml")), text).unwrap();
        format!("{name}.toml")
    }

    fn run(&self, words: &[&str]) -> Finished {
        let mut command = self.bench.netduel(words);
        self.surround(&mut command);
        Finished::from(command.output().unwrap())
    }
}

#[test]
fn bed_is_created_completed_listed_and_deleted() {
    let Some(scene) = Scene::new() else { return };
    let bed = scene.bed("x");
    let up = scene.run(&["azure", "up", &bed]).expect_code(0);
    assert!(
        up.stdout.contains("the bed x is up in westeurope") && up.stdout.contains("ssh netduel@192.0.2."),
        "{}",
        up.stdout
    );
    assert!(up.stderr.contains("VM vm1 created"), "{}", up.stderr);
    scene.run(&["azure", "up", &bed]).expect_code(0);
    let listed = scene.run(&["azure", "list", "--json"]).expect_code(0).json();
    assert_eq!(
        (&listed["beds"][0]["name"], &listed["beds"][0]["region"]),
        (&"x".into(), &"westeurope".into())
    );
    scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);
    assert_eq!(scene.run(&["azure", "list", "--json"]).expect_code(0).json()["beds"], serde_json::json!([]));
    scene.run(&["azure", "down", "x", "--yes"]).expect_code(12);
}

#[test]
fn resources_of_others_in_the_group_are_named_before_they_are_deleted() {
    let Some(scene) = Scene::new() else { return };
    let bed = scene.bed("shared");
    scene.run(&["azure", "up", &bed]).expect_code(0);
    let refused = scene.run(&["azure", "down", "shared", "--yes"]).expect_code(12).stderr;
    assert_names(&refused, &["has 1 resource that netduel did not create: storageAccounts archive"]);
    scene.run(&["azure", "down", "shared", "--yes", "--with-everything"]).expect_code(0);
    scene.run(&["azure", "down", "shared", "--yes"]).expect_code(12);
}

#[test]
fn refusals_of_azure_have_words() {
    let Some(scene) = Scene::new() else { return };
    for (name, code, part) in [
        ("quota", 12, "request a quota of 12 "),
        ("conflict", 12, "failed to create VM vm1, VM vm2: Azure has no capacity"),
        ("expired", 3, "run `az login`"),
    ] {
        let bed = scene.bed(name);
        let error = scene.run(&["azure", "up", &bed]).expect_code(code).stderr;
        assert!(error.contains(part), "{name}: {error}");
    }
}

#[test]
fn limited_rate_and_lost_connection_do_not_end_an_up() {
    let Some(scene) = Scene::new() else { return };
    for name in ["slow", "cut"] {
        let bed = scene.bed(name);
        scene.run(&["azure", "up", &bed]).expect_code(0);
    }
}

#[test]
fn bed_with_vms_is_created_carries_a_plan_and_is_deleted() {
    if folder().is_none() {
        return;
    }
    with_room_for_vms("real_az::bed_with_vms_is_created_carries_a_plan_and_is_deleted", || {
        let Some(scene) = Scene::new() else { return };
        let vms = Vms::start(&scene.bench);
        let bed = scene.bed("x");
        scene.run(&["azure", "up", &bed]).expect_code(0);
        scene.bench.plan(&format!("{PLAN}{PACED}"));
        // The template asks for an accelerated NIC, and a namespace has no virtual function.
        let refused = scene.run(&["azure", "run", "plan.toml", "--bed", &bed]).expect_code(12).stderr;
        assert_names(
            &refused,
            &["vm1-accelerated has no virtual function, and Azure claims that it is accelerated"],
        );
        assert!(!refused.contains("vm1-synthetic"), "{refused}");
        let words = ["azure", "run", "plan.toml", "--allow-disagreement", "--out", "report", "--json"];
        let document = scene.run(&words).expect_code(0).json();
        assert_eq!(
            (&document["trials_valid"], &document["trials_excluded"]),
            (&4.into(), &0.into()),
            "{document}"
        );
        assert_eq!(document["plan"]["arms"][1]["expected_interface_client"], "eth1");
        assert!(scene.bench.path().join("report/report.html").exists());
        scene.run(&["azure", "down", "x", "--yes"]).expect_code(0);

        let stopped = scene.bed("stopped");
        scene.run(&["azure", "up", &stopped]).expect_code(0);
        let words = ["azure", "run", "plan.toml", "--allow-disagreement"];
        let refused = scene.run(&words).expect_code(12).stderr;
        assert_names(&refused, &["vm1 is deallocated, vm2 is deallocated", "--start"]);
        let run = scene.run(&[&words[..], &["--start"]].concat()).expect_code(0);
        assert_names(&run.stderr, &["starting vm1, vm2 of the bed stopped"]);
        drop(vms);
        // The stand-in ends with the scene.
        assert!(until(|| scene.bench.processes().len() == 1), "{:?}", scene.bench.processes());
    });
}
