//! The schema that Jenkins publishes for JUnit XML. This repository has no copy of it: cargo fetches a crate that has it among its tests.
//! Nothing of that crate is compiled.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{step, workspace};

/// Below the target folder; another version of the crate needs another name.
const FOLDER: &str = "target/junit-schema-1";
/// The crate, its version, and the place of the schema in it.
const CRATE: &str = "junit-report";
const VERSION: &str = "0.8.3";
const FILE: &str = "tests/JUnit.xsd";
/// The schema names the repository of Jenkins that it is from.
const ORIGIN: &str = "jenkins-ci.org";

/// Fetches the crate, unless cargo has it, and returns the file of the schema.
pub fn fetch() -> Result<PathBuf> {
    let manifest = write_package(&workspace::root().join(FOLDER))?;
    let mut command = step::cargo(["metadata", "--format-version", "1", "--manifest-path"]);
    command.arg(manifest);
    let shown = step::shown(&command);
    println!("$ {shown}");
    let output = command.output().with_context(|| format!("failed to start `{shown}`"))?;
    ensure!(output.status.success(), "`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("`{shown}` printed no JSON"))?;
    let schema = folder_of(&metadata, CRATE)
        .with_context(|| format!("`{shown}` has no folder of the crate {CRATE}"))?
        .join(FILE);
    let text = fs::read_to_string(&schema).with_context(|| format!("failed to read {}", schema.display()))?;
    ensure!(text.contains(ORIGIN), "{} is not the schema of Jenkins", schema.display());
    Ok(schema)
}

/// Writes a package with the crate as its dependency, and a workspace of its own; its manifest.
fn write_package(folder: &Path) -> Result<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"junit-schema\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{CRATE} = \"={VERSION}\"\n\n[workspace]\n"
    );
    let write = || {
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("src/lib.rs"), "")?;
        fs::write(&manifest, text)
    };
    write().with_context(|| format!("failed to write a package to {}", folder.display()))?;
    Ok(manifest)
}

/// Where cargo has unpacked a crate, by what `cargo metadata` prints.
fn folder_of<'m>(metadata: &'m Value, name: &str) -> Option<&'m Path> {
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|package| package["name"] == name)?;
    Path::new(package["manifest_path"].as_str()?).parent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_crate_is_that_of_its_manifest() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "quick-xml", "manifest_path": "/registry/quick-xml-0.31.0/Cargo.toml" },
            { "name": CRATE, "manifest_path": "/registry/junit-report-0.8.3/Cargo.toml" },
        ] });
        assert_eq!(folder_of(&metadata, CRATE), Some(Path::new("/registry/junit-report-0.8.3")));
        assert_eq!(folder_of(&metadata, "junit"), None);
    }

    #[test]
    fn package_has_a_workspace_of_its_own_and_the_crate() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = write_package(&folder.path().join("package")).unwrap();
        let table: toml::Table = fs::read_to_string(&manifest).unwrap().parse().unwrap();
        assert_eq!(table["dependencies"][CRATE].as_str(), Some("=0.8.3"));
        assert!(table.contains_key("workspace"), "{table:?}");
        assert!(manifest.parent().unwrap().join("src/lib.rs").exists());
    }
}
