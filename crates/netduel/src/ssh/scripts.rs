//! The scripts for hosts, in the POSIX shell language without extensions, and the reading of their answers. It runs nothing.
use netduel_model::plan::SshHost;

use super::binary::Binary;
use super::obstacle::Obstacle;

/// Lines around an answer: start files of a shell print before it.
const BEGIN: &str = "netduel-answer-begins";
const END: &str = "netduel-answer-ends";
/// Builds that a host keeps.
const BUILDS_KEPT: u32 = 2;

/// Prints the kernel and the machine.
pub const MACHINE: &str = "uname -sm";

/// Exit codes of the script of a copy, by the step that failed.
pub const NO_FOLDER: i32 = 91;
/// The file was not written.
pub const NOT_WRITTEN: i32 = 92;
/// The file has another checksum.
pub const DAMAGED: i32 = 93;
/// The file did not get its name.
pub const NOT_RENAMED: i32 = 94;

/// A script as the shell reads it: its input is not the script.
pub fn framed(script: &str) -> String {
    format!("echo {BEGIN}; {{\n{script}\n}} </dev/null 2>&1; echo; echo {END}\n")
}

/// The complete answer in some output.
pub fn answer(output: &str) -> Option<&str> {
    let (_, answer) = output.split_once(&format!("{BEGIN}\n"))?;
    Some(answer.split_once(&format!("\n{END}\n"))?.0)
}

/// A word as every shell takes it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The file of a binary on a host, and its checksum there.
pub fn probe(folder: &str, binary: &Binary) -> String {
    format!(
        "b={}\ncase $b in '~/'*) b=$HOME/${{b#??}};; esac\nd=$b/{}; f=$d/netduel\necho \"file=$f\"\n\
         if [ -f \"$f\" ]; then touch \"$d\" 2>/dev/null; {}; echo \"sum=$s\"; fi",
        quoted(folder),
        quoted(&binary.folder_name()),
        checksum("$f"),
    )
}

/// Sets `s` to the SHA-256 of a file; a host without sha256sum(1) has the program itself tell it.
fn checksum(file: &str) -> String {
    format!(
        "if command -v sha256sum >/dev/null 2>&1; then s=$(sha256sum <\"{file}\"); s=${{s%% *}}; \
         else s=$(\"{file}\" agent --checksum); fi"
    )
}

/// The answer to [`probe`].
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// The file of the program on the host.
    pub file: String,
    /// Its checksum, when it exists.
    pub checksum: Option<String>,
}

impl Probe {
    /// From the answer.
    pub fn parse(answer: &str) -> Result<Self, Obstacle> {
        let value = |key: &str| answer.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let file = value("file=").filter(|file| file.starts_with('/'));
        let file = file.ok_or_else(|| Obstacle::Unexpected { answer: answer.to_owned() })?;
        Ok(Self { file, checksum: value("sum=") })
    }
}

/// The command of a copy: reads the file from its input, compares it, gives it its name, and removes older builds.
pub fn copy(file: &str, checksum_wanted: &str) -> String {
    // In one line and without exclamation marks: the C shell passes it on.
    let digits = "[0-9a-f]".repeat(16);
    let script = format!(
        "umask 077; f={}; d=${{f%/*}}; b=${{d%/*}}; mkdir -p \"$d\" || exit {NO_FOLDER}; t=$d/.copy.$$; \
         trap 'rm -f \"$t\"' EXIT; trap 'exit 1' HUP INT TERM; \
         cat >\"$t\" || exit {NOT_WRITTEN}; chmod 700 \"$t\" || exit {NOT_WRITTEN}; {}; \
         [ \"$s\" = {checksum_wanted} ] || {{ echo \"its checksum is $s\" >&2; exit {DAMAGED}; }}; \
         mv -f \"$t\" \"$f\" || exit {NOT_RENAMED}; touch \"$d\"; cd \"$b\" || exit 0; \
         ls -1td [0-9]*-{digits} 2>/dev/null | tail -n +{} | while read -r o; do rm -f \"$o/netduel\" \"$o\"/.copy.*; \
         rmdir \"$o\"; done 2>/dev/null; exit 0",
        quoted(file),
        checksum("$t"),
        BUILDS_KEPT + 1,
    );
    format!("exec /bin/sh -c {}", quoted(&script))
}

fn root(ssh: &SshHost) -> &'static str {
    if ssh.sudo { "sudo -n " } else { "" }
}

/// Starts the program once and prints its exit status and output.
pub fn start(ssh: &SshHost, file: &str) -> String {
    format!("o=$({}{} --version 2>&1); echo \"status=$?\"; echo \"$o\"", root(ssh), quoted(file))
}

/// Exit status and output of [`start`].
pub fn status_and_output(answer: &str) -> (Option<i32>, &str) {
    let (status, output) = answer.split_once('\n').unwrap_or((answer, ""));
    (status.strip_prefix("status=").and_then(|status| status.parse().ok()), output.trim())
}

/// The command of an agent.
pub fn agent(ssh: &SshHost, file: &str) -> String {
    format!("exec {}{} agent", root(ssh), quoted(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_what_lies_between_its_lines() {
        let output = format!("welcome\n{BEGIN}\nLinux x86_64\n\n{END}\n");
        assert_eq!(answer(&output), Some("Linux x86_64\n"));
        assert_eq!(answer(&format!("{BEGIN}\n\n{END}\n")), Some(""));
        assert_eq!(answer(&output[..output.len() - 1]), None);
    }

    #[test]
    fn probe_without_a_file_is_unexpected() {
        let there = Probe { file: "/h/netduel".into(), checksum: Some("ab".into()) };
        assert_eq!(Probe::parse("file=/h/netduel\nsum=ab\n").expect("a probe"), there);
        assert_eq!(Probe::parse("file=/h/netduel").expect("a probe").checksum, None);
        assert!(Probe::parse("sh: not found").is_err());
    }

    #[test]
    fn word_is_quoted_for_a_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
