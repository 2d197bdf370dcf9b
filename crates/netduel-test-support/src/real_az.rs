//! The real `az` against a stand-in for Azure on loopback. `cargo xtask test azure` installs that `az` and names its
//! folder; no other command does, because it has 730 MB.
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{not_requested, skip, write_program};

/// The variable with the folder of the program `az`.
pub const AZ_FOLDER_VARIABLE: &str = "NETDUEL_AZ_FOLDER";
const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stand_in/arm.py");
/// The names in the certificate of the stand-in: its own, and that of the service of prices, which it also is.
const NAMES: &str = "subjectAltName=DNS:localhost,DNS:prices.azure.com,IP:127.0.0.1";
/// The file that exists when a call of `az` has failed; it ends some faults of the stand-in.
const GAVE_UP: &str = "gave-up";

/// The folder of the real `az`; says why there is none. Without the variable these tests were not requested, which is no skip.
pub fn az_folder() -> Option<PathBuf> {
    let folder = env::var_os(AZ_FOLDER_VARIABLE).map(PathBuf::from);
    if folder.is_none() {
        not_requested("the real az against a stand-in for Azure; run `cargo xtask test azure`");
    }
    folder
}

/// The real `az`, logged in at a stand-in that ends with this.
#[derive(Debug)]
pub struct RealAz {
    programs: PathBuf,
    /// Certificate, configuration and a program `az` that notes failures.
    folder: PathBuf,
    /// The proxy of the stand-in, through which `az` reaches prices and no other machine.
    proxy: String,
    stand_in: Child,
}

impl Drop for RealAz {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.stand_in.stdin.take());
        drop(self.stand_in.wait());
    }
}

impl RealAz {
    /// Starts the stand-in and logs in; says why it cannot. Its files go into the folder. `command` makes a command of a program where the
    /// program under test will run `az`.
    ///
    /// # Panics
    /// When the stand-in does not start, or `az` cannot log in.
    #[track_caller]
    pub fn start(folder: &Path, command: &dyn Fn(&Path) -> Command) -> Option<Self> {
        let programs = az_folder()?;
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]);
        openssl.args(["-subj", "/CN=localhost"]);
        openssl.args(["-addext", NAMES, "-keyout"]).arg(&key).arg("-out").arg(&certificate);
        if !openssl.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            skip("openssl, which makes the certificate of the stand-in, cannot be run");
            return None;
        }
        let mut python = command(Path::new("python3"));
        // -B: nothing is written into the folder of the sources.
        python.arg("-B").arg(STAND_IN).args([&certificate, &key]).arg(folder);
        let mut stand_in = match python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(stand_in) => stand_in,
            Err(error) => {
                skip(format!("python3, which runs the stand-in, cannot be run: {error}"));
                return None;
            }
        };
        let mut ports = String::new();
        let output = stand_in.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut ports).expect("the stand-in prints text");
        let (port, proxy) = ports.trim().split_once(' ').expect("the stand-in prints its ports");
        let proxy = format!("http://127.0.0.1:{proxy}");
        let real = Self { programs, folder: folder.to_owned(), proxy, stand_in };
        real.write_az();
        real.log_in(port, command);
        Some(real)
    }

    /// The program `az` of the tests: the real one, whose failures leave a file.
    #[track_caller]
    fn write_az(&self) {
        let (real, gave_up) = (self.programs.join("az"), self.folder.join(GAVE_UP));
        fs::create_dir(self.own_programs()).expect("the folder is writable");
        let script = format!(
            "#!/bin/sh\n\"{}\" \"$@\"\ncode=$?\n[ \"$code\" -eq 0 ] || : > \"{}\"\nexit \"$code\"\n",
            real.display(),
            gave_up.display()
        );
        write_program(self.own_programs().join("az"), script);
    }

    fn own_programs(&self) -> PathBuf {
        self.folder.join("az-bin")
    }

    /// Points `az` to the stand-in and logs in with a service principal, in a configuration of this test.
    #[track_caller]
    fn log_in(&self, port: &str, command: &dyn Fn(&Path) -> Command) {
        let endpoint = format!("https://localhost:{port}");
        let login =
            ["login", "--service-principal", "-u", "44444444-4444-4444-4444-444444444444", "-p", "secret"];
        for words in [
            &["config", "set", "core.collect_telemetry=false", "core.instance_discovery=false"][..],
            &["cloud", "register", "-n", "StandIn", "--endpoint-resource-manager", &endpoint],
            &["cloud", "set", "-n", "StandIn"],
            &[&login[..], &["--tenant", "11111111-1111-1111-1111-111111111111"]].concat(),
        ] {
            self.answer(command(&self.own_programs().join("az")), words);
        }
    }

    /// Runs `az`, a command of this program, with these arguments; returns what it prints.
    #[track_caller]
    fn answer(&self, mut az: Command, words: &[&str]) -> String {
        self.surround(&mut az, &self.own_programs());
        let output = az.args(words).stdin(Stdio::null()).output().expect("az can be started");
        assert!(output.status.success(), "az {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("az prints text")
    }

    /// Asks the stand-in with `az`, for what a test compares.
    ///
    /// # Panics
    /// When `az` fails.
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> String {
        self.answer(Command::new(self.own_programs().join("az")), words).trim().to_owned()
    }

    /// The environment of `az`: its own configuration, the certificate, and no way to other machines. `first` is the first folder of the
    /// search path.
    ///
    /// # Panics
    /// Without a search path.
    pub fn surround(&self, command: &mut Command, first: &Path) {
        let path = env::var("PATH").expect("there is a search path");
        let own = self.own_programs();
        let folders = [first, &own, &self.programs].map(|folder| folder.display().to_string());
        command
            .env("PATH", format!("{}:{path}", folders.join(":")))
            .env("AZURE_CONFIG_DIR", self.folder.join("azure"))
            .env("REQUESTS_CA_BUNDLE", self.folder.join("cert.pem"))
            .env("HTTPS_PROXY", &self.proxy)
            .env("NO_PROXY", "localhost,127.0.0.1");
    }

    /// Lets the faults of the stand-in that end begin anew.
    ///
    /// # Panics
    /// When the folder cannot be written.
    #[track_caller]
    pub fn forget_failures(&self) {
        if self.has_failed() {
            fs::remove_file(self.folder.join(GAVE_UP)).expect("the folder is writable");
        }
    }

    /// Whether a call of `az` has failed since then, after its own retries.
    pub fn has_failed(&self) -> bool {
        self.folder.join(GAVE_UP).exists()
    }

    /// Sets what is claimed of NICs and VMs, by name: the JSON document that `stand_in/deployed.py` describes.
    ///
    /// # Panics
    /// When the folder cannot be written.
    #[track_caller]
    pub fn claim(&self, claims: &str) {
        // A reader sees one document or the other.
        let new = self.folder.join("new-claims");
        fs::write(&new, claims).expect("the folder is writable");
        fs::rename(new, self.folder.join("claims.json")).expect("the folder is writable");
    }
}
