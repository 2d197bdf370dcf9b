//! The licence texts of all that is linked into the program: crates, the Rust standard library, the C library, and the scripts of HTML
//! reports. The same lock file and toolchain give the same bytes. It judges no licence: `deny.toml` does.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::system::{output_of, read};
use super::toolchain::Toolchain;
use crate::{step, workspace};

/// The file with all texts, in every package.
pub const FILE: &str = "THIRD-PARTY-LICENSES";

/// How the file of a licence begins, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"];
/// Crates whose package has no text: it is the one of their repository.
const OF_REPOSITORIES: [(&str, &str); 1] = [("maud", include_str!("licences/maud.txt"))];
/// Of the scripts in HTML reports, below the root of the workspace. Each file is `NAME.LICENSE.txt`.
const SCRIPTS: &str = "crates/netduel-report/assets";
const OF_SCRIPTS: &str = ".LICENSE.txt";

/// A library, its licence, and its texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    name: String,
    licence: String,
    texts: Vec<String>,
}

/// The content of [`FILE`] for the program of a machine.
pub fn collect(machine: Machine, toolchain: Toolchain) -> Result<Vec<u8>> {
    let mut libraries = crates(machine)?;
    libraries.extend(scripts(&workspace::root().join(SCRIPTS))?);
    libraries.sort();
    let mut all = c_library();
    all.extend(standard_library(toolchain)?);
    all.extend(libraries);
    Ok(document(&all).into_bytes())
}

/// A list of the libraries, and after it each text once, with its number in the list.
fn document(libraries: &[Library]) -> String {
    let mut list = String::from(
        "netduel is licensed under Apache-2.0 or MIT; see LICENSE. The program contains the libraries below under their own licences.\n\
         The numbers are those of the texts after the list. The notice of the Rust standard library is the one for all systems.\n\n",
    );
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut texts = String::new();
    for Library { name, licence, texts: own } in libraries {
        let mut named = Vec::new();
        for text in own {
            let next = numbers.len() + 1;
            let number = *numbers.entry(text).or_insert(next);
            if number == next {
                let _ = write!(texts, "\n{0}\nText {number}\n{0}\n\n{text}\n", "=".repeat(80));
            }
            named.push(number.to_string());
        }
        let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
        let _ = writeln!(list, "{name} ({licence}){named}");
    }
    list + &texts
}

/// A text without the differences that editors make.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The crates that are linked into the program; macros and build scripts run at its build only.
fn crates(machine: Machine) -> Result<Vec<Library>> {
    let target = machine.target();
    let words = ["tree", "--locked", "--package", "netduel", "--target", &target, "--prefix", "none"];
    let mut tree = step::cargo(words);
    let tree = output_of(tree.args(["--edges", "normal,no-proc-macro", "--format", "{p}"]))?;
    let linked: BTreeSet<(String, String)> =
        String::from_utf8_lossy(&tree).lines().filter_map(name_and_version).collect();
    let mut metadata =
        step::cargo(["metadata", "--locked", "--format-version", "1", "--filter-platform", &target]);
    let metadata: Value = serde_json::from_slice(&output_of(&mut metadata)?)
        .context("failed to read what cargo metadata prints")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let text_of = |package: &Value, key: &str| package[key].as_str().map(str::to_owned);
    let mut libraries = Vec::new();
    let mut found = 0;
    for package in packages {
        let identity = text_of(package, "name").zip(text_of(package, "version"));
        let Some((name, version)) = identity.filter(|identity| linked.contains(identity)) else { continue };
        found += 1;
        // The crates of the workspace have the licence of the program.
        if package["source"].is_null() {
            continue;
        }
        let manifest = text_of(package, "manifest_path").map(PathBuf::from);
        let folder = manifest.as_deref().and_then(Path::parent).context("a package has no folder")?;
        let texts = of_crate(&name, folder)?;
        let licence = text_of(package, "license").unwrap_or_else(|| "see its text".to_owned());
        libraries.push(Library { name: format!("{name} {version}"), licence, texts });
    }
    ensure!(
        found == linked.len(),
        "cargo tree names {} crates, and cargo metadata {found} of them",
        linked.len()
    );
    Ok(libraries)
}

/// From a line of `cargo tree`, for example `serde v1.0.229 (*)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

/// The texts of a crate, from its own package.
fn of_crate(name: &str, folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in files_below(folder)? {
        let file_name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        // `license.rs` is a program.
        let is_text = file.extension().is_none_or(|extension| extension != "rs");
        if is_text && NAMES.iter().any(|start| file_name.starts_with(start)) {
            texts.push(plain(&String::from_utf8_lossy(&read(&file)?)));
        }
    }
    texts.extend(OF_REPOSITORIES.iter().filter(|(other, _)| *other == name).map(|(_, text)| plain(text)));
    if texts.is_empty() {
        bail!(
            "the crate {name} has no licence text in {}: add that of its repository to `OF_REPOSITORIES` in {}",
            folder.display(),
            file!()
        );
    }
    Ok(texts)
}

/// All files below a folder, in order: parts that a crate took from elsewhere have licences of their own.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = || format!("failed to list {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let kind = entry.file_type().with_context(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What GNU's C library and compiler add to a static program.
fn c_library() -> Vec<Library> {
    let texts = [include_str!("licences/glibc.txt"), include_str!("licences/LGPL-2.1.txt")];
    let glibc = Library {
        name: "GNU C Library".to_owned(),
        licence: "LGPL-2.1-or-later; `cargo xtask dist` in the source code of netduel links the program anew, also with another version of it"
            .to_owned(),
        texts: texts.map(plain).into(),
    };
    let gcc = Library {
        name: "libgcc".to_owned(),
        licence: "GPL-3.0-or-later WITH GCC-exception-3.1, by which programs that contain it have their own licence".to_owned(),
        texts: vec![plain(include_str!("licences/GCC-exception-3.1.txt"))],
    };
    vec![glibc, gcc]
}

/// The Rust standard library and the crates in it, from the notice of the toolchain.
fn standard_library(toolchain: Toolchain) -> Result<Vec<Library>> {
    let notice = toolchain.notice()?;
    let text = String::from_utf8_lossy(&read(&notice)?).into_owned();
    let libraries = of_notice(&text);
    ensure!(!libraries.is_empty(), "{} is not the notice of the Rust standard library", notice.display());
    Ok(libraries)
}

/// A notice in HTML has a part for each crate, with its texts in `<pre>`; any other one is a text.
fn of_notice(text: &str) -> Vec<Library> {
    /// Before the name of a crate.
    const HEADING: &str = "<h3>\u{1f4e6} ";
    let licence = "Apache-2.0 OR MIT";
    let mut parts = text.split(HEADING);
    let own = parts.next().unwrap_or_default();
    let own = if own.contains("<html>") { without_tags(own) } else { plain(own) };
    let mut libraries = vec![Library {
        name: "Rust standard library".to_owned(),
        licence: licence.to_owned(),
        texts: vec![own],
    }];
    for part in parts {
        let between = |start: &str, end: &str| {
            part.split_once(start)?.1.split_once(end).map(|(text, _)| without_tags(text))
        };
        let name = without_tags(part.split_once("</h3>").map_or(part, |(name, _)| name));
        let texts = part
            .split("<pre>")
            .skip(1)
            .map(|text| without_tags(text.split("</pre>").next().unwrap_or_default()));
        libraries.push(Library {
            name: format!("in the Rust standard library: {name}"),
            licence: between("<b>License:</b> ", "</p>").unwrap_or_else(|| "see its text".to_owned()),
            texts: texts.collect(),
        });
    }
    libraries
}

/// The text of a part of an HTML page, without empty lines in a row.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for (number, part) in html.split('<').enumerate() {
        text.push_str(if number == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) });
    }
    for (name, character) in [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")]
    {
        text = text.replace(name, character);
    }
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|next, last| next.is_empty() && last.is_empty());
    plain(&lines.join("\n"))
}

/// The libraries of HTML reports.
fn scripts(folder: &Path) -> Result<Vec<Library>> {
    let mut libraries = Vec::new();
    for file in files_below(folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(OF_SCRIPTS) {
            let text = plain(&String::from_utf8_lossy(&read(&file)?));
            libraries.push(Library {
                name: format!("{name}, in HTML reports"),
                licence: "ISC".to_owned(),
                texts: vec![text],
            });
        }
    }
    ensure!(!libraries.is_empty(), "{} has no licence text", folder.display());
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, texts: &[&str]) -> Library {
        Library {
            name: name.to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn text_that_libraries_share_is_there_once() {
        let text = document(&[
            library("a 1", &["first", "shared"]),
            library("b 2", &["shared"]),
            library("c 3", &[]),
        ]);
        assert!(text.contains("\na 1 (MIT): 1, 2\nb 2 (MIT): 2\nc 3 (MIT)\n"), "{text}");
        assert_eq!(text.matches("\nshared\n").count(), 1, "{text}");
        assert!(text.contains("\nText 2\n") && !text.contains("Text 3"), "{text}");
    }

    #[test]
    fn crate_without_a_text_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/license.rs"), "fn license() {}").unwrap();
        let error = of_crate("nameless", folder.path()).unwrap_err().to_string();
        assert!(error.contains("the crate nameless has no licence text"), "{error}");
        assert_eq!(of_crate("maud", folder.path()).unwrap().len(), 1);
        fs::write(folder.path().join("src/LICENSE-other"), "their terms \r\n\n").unwrap();
        fs::write(folder.path().join("License.md"), "my terms").unwrap();
        assert_eq!(of_crate("nameless", folder.path()).unwrap(), ["my terms", "their terms"]);
    }

    #[test]
    fn notice_of_the_toolchain_is_read_by_crate() {
        let html = "<html><h1>Notice</h1>\n\n\n<p>Dual &#60;terms&#62;</p>\n    <h3>\u{1f4e6} cfg-if-1.0.4</h3>\n\
                    <p><b>License:</b> MIT OR Apache-2.0</p><pre>\n  Text &#34;A&#34;\n</pre> and <pre>Text B</pre>";
        let libraries = of_notice(html);
        let texts: Vec<&[String]> = libraries.iter().map(|library| library.texts.as_slice()).collect();
        assert_eq!(
            texts,
            [&["Notice\n\nDual <terms>".to_owned()][..], &["  Text \"A\"".to_owned(), "Text B".to_owned()]]
        );
        assert_eq!(libraries[1].name, "in the Rust standard library: cfg-if-1.0.4");
        assert_eq!(libraries[1].licence, "MIT OR Apache-2.0");
        assert_eq!(of_notice("plain terms\n")[0].texts, ["plain terms"]);
    }

    #[test]
    fn line_of_cargo_tree_names_a_crate_and_its_version() {
        let expected = ("toml".to_owned(), "1.2.1+spec-1.1.0".to_owned());
        assert_eq!(name_and_version("toml v1.2.1+spec-1.1.0 (*)"), Some(expected));
        assert_eq!(name_and_version(""), None);
    }
}
