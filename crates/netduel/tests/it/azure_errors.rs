//! The page `docs/azure-errors.md`: what `netduel azure` prints for each error, by the program itself. The answers of `az` have the form of the real
//! ones. The last section of the page is not written here: the tests with VMs compare theirs with it.
use std::fmt::Write as _;
use std::fs;

use netduel_azure::az::{CALL_LIMIT, CallError};
use netduel_azure::deployment::{BedError, inventory, progress};
use netduel_test_support::in_namespace;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::azure::{Scene, UP, fails, operation, prints, usage};
use crate::azure_answers::{
    CONFLICT, EXPIRED, NO_CAPACITY, NOT_BOOTED, OFFLINE, QUOTA, bed_with, deleting, ended, failed,
    failed_without_cause, group, of_another_user, offered,
};
use crate::azure_errors_of_runs::before_a_run;
use crate::support::{Finished, UnderWay, signal, until};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/azure-errors.md");
const INTRODUCTION: &str = "# Errors of `netduel azure`

What `netduel azure` prints for each error of Azure, of `az` and of the bed file, with its [exit code](exit-codes.md): 2 for input to correct, 3 for a program or a login that is
missing, 5 for a file that cannot be written, 12 for an error of Azure. The test `azure_errors.rs` writes this page: it gives the program answers in the form of `az` 2.91, and copies what the program prints.
The messages of Azure about sizes, capacity and refused changes are examples. [docs/beds.md](beds.md#errors) has the same as a table.
";
/// The heading of the section that tests with VMs compare with what the program prints.
const DURING_A_RUN: &str = "\n## During a run\n";
/// An error, and how it comes about.
pub struct Case {
    pub title: &'static str,
    /// The answers of `az` that differ from those of a bed that can be created.
    pub answers: Vec<(&'static str, Value)>,
    /// Keys of the bed file besides name, region, size and key.
    pub keys: &'static str,
    /// What else there is before the command.
    pub prepare: fn(&Scene),
    pub run: fn(&Scene, &[&str]) -> Finished,
    pub words: Vec<&'static str>,
    pub code: i32,
}

pub fn case(title: &'static str, answers: impl IntoIterator<Item = (&'static str, Value)>) -> Case {
    Case {
        title,
        answers: answers.into_iter().collect(),
        keys: "",
        prepare: |_| {},
        run: Scene::run,
        words: UP.to_vec(),
        code: 12,
    }
}

/// Writes the file of the public key.
fn write_key(scene: &Scene, text: &str) {
    fs::write(scene.at("key.pub"), text).unwrap();
}

/// Without a program `az`.
fn without_az(scene: &Scene, words: &[&str]) -> Finished {
    let mut command = scene.netduel(words);
    Finished::from(command.env("PATH", scene.at("nothing")).output().unwrap())
}

/// With Ctrl-C while `az` waits for Azure, which leaves no process.
pub fn interrupted(scene: &Scene, words: &[&str]) -> Finished {
    let command = UnderWay::start(scene.netduel(words));
    assert!(until(|| scene.at("waits").exists()));
    signal(command.pid(), Signal::INT);
    let finished = command.finish();
    scene.bench.assert_nothing_left();
    finished
}

fn price() -> [(&'static str, Value); 1] {
    let price = json!({
        "retailPrice": 0.25, "unitOfMeasure": "1 Hour", "type": "Consumption", "productName": "Virtual Machines DSv3 Series",
        "skuName": "D4s v3", "armSkuName": "Standard_D4s_v3", "currencyCode": "USD", "isPrimaryMeterRegion": true,
    });
    [("rest --method get", prints(&json!({ "Items": [price] })))]
}

fn of_the_input() -> Vec<Case> {
    let usage = |title, words: &[&'static str]| Case { words: words.to_vec(), code: 2, ..case(title, []) };
    vec![
        usage("There is no bed file", &["azure", "check", "y.toml"]),
        Case {
            keys: "zone = 7\nspot = \"yes\"",
            ..usage("Values that the file cannot have", &["azure", "check", "x.toml"])
        },
        Case {
            keys: "size = \"Standard_D4s_v5\"",
            prepare: |scene| scene.bed("Standard_D4s_v5", ""),
            ..usage("The size requires accelerated networking", &["azure", "check", "x.toml"])
        },
        Case {
            keys: "image = \"windows-server-2022\"",
            ..usage("There is no agent for the image", &["azure", "check", "x.toml"])
        },
        usage("No address for ssh", &["azure", "up", "x.toml"]),
        Case {
            prepare: |scene| fs::remove_file(scene.at("key.pub")).unwrap(),
            ..usage("There is no public key", &UP)
        },
        Case {
            prepare: |scene| write_key(scene, "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            ..usage("The key is a private one", &UP)
        },
        Case {
            prepare: |scene| write_key(scene, "ssh-ed25519 AAAA me@here\nssh-ed25519 BBBB me@there\n"),
            ..usage("The file has several keys", &UP)
        },
        Case {
            prepare: |scene| write_key(scene, "ecdsa-sha2-nistp256 AAAA me@here\n"),
            ..usage("VMs of Azure do not accept the kind of key", &UP)
        },
        usage("Ssh from the whole world", &["azure", "up", "x.toml", "--ssh-from", "0.0.0.0/0"]),
        usage("Ssh from an IPv6 prefix", &["azure", "up", "x.toml", "--ssh-from", "2001:db8::1/128"]),
        usage("Ssh from a private address", &["azure", "up", "x.toml", "--ssh-from", "192.168.1.5/32"]),
        usage("A text that is no subscription", &["azure", "list", "--subscription", "a/b"]),
        usage("A text that is no bed", &["azure", "down", "X"]),
        Case {
            answers: group("westeurope", &json!({ "netduel": "x" })).to_vec(),
            ..usage("Deletion without a terminal and without `--yes`", &["azure", "down", "x"])
        },
    ]
}

fn of_az() -> Vec<Case> {
    let unknown = "ERROR: unrecognized arguments: --subscription\n";
    let cases = [
        Case { run: without_az, ..case("`az` is missing", []) },
        case("`az` is too old", [("version", prints(&json!({ "azure-cli": "2.1.0" })))]),
        case(
            "The login is missing",
            [("account show", fails("ERROR: Please run 'az login' to setup account.\n"))],
        ),
        case("The login has expired", [("group exists", fails(EXPIRED))]),
        case("`az` does not know an argument", [("group exists", json!([{ "err": unknown, "code": 2 }]))]),
    ];
    cases.into_iter().map(|case| Case { code: 3, ..case }).collect()
}

fn before_anything_is_created() -> Vec<Case> {
    let capabilities = |accelerated: &str, nics: &str| {
        json!({ "capabilities": [
            { "name": "AcceleratedNetworkingEnabled", "value": accelerated }, { "name": "MaxNetworkInterfaces", "value": nics },
        ] })
    };
    let restricted =
        json!({ "restrictions": [{ "type": "Location", "reasonCode": "NotAvailableForSubscription" }] });
    let zones = json!({ "zones": ["1"] });
    let in_zone = json!({ "restrictions": [
        { "type": "Zone", "reasonCode": "NotAvailableForSubscription", "restrictionInfo": zones },
    ] });
    let bed = json!({ "netduel": "x" });
    let vms = json!(["vm1", "vm2", "vm3", "vm4"].map(|vm| json!({ "name": vm, "tags": bed })));
    let kind = "Microsoft.DevTestLab/schedules";
    let schedule = |vm: &str| json!({ "name": format!("shutdown-computevm-{vm}"), "type": kind });
    let schedules = json!(["vm1", "vm2"].map(schedule));
    let mut cases = vec![
        case("The quota is too small", [("vm list-usage", usage("4"))]),
        case("The region does not have the size", [("vm list-skus", prints(&json!([])))]),
        case("The subscription may not use the size", offered(&restricted)),
        Case {
            keys: "zone = 1",
            ..case("The subscription may not use the size in the zone", offered(&in_zone))
        },
        Case { keys: "zone = 2", ..case("The zone does not have the size", []) },
        case("The size has no accelerated networking", offered(&capabilities("False", "2"))),
        case("The size has too few NICs", offered(&capabilities("True", "1"))),
        Case {
            keys: "budget = \"11 USD\"\nshutdown = \"off\"",
            ..case("The bed costs more than its budget", price())
        },
        Case { keys: "budget = \"11 USD\"", ..case("The price is unknown, and the bed has a budget", []) },
        Case {
            keys: "budget = \"11 USD\"",
            ..case(
                "Prices cannot be looked up, and the bed has a budget",
                [("rest --method get", fails(OFFLINE))],
            )
        },
        case("The resource group is not the bed's", group("westeurope", &json!({ "owner": "me" }))),
        case("The bed exists in another region", group("northeurope", &json!({ "netduel": "x" }))),
        case(
            "The bed exists with another type",
            group("westeurope", &json!({ "netduel": "x", "netduel-type": "two-pairs" })),
        ),
        case("The bed has VMs that its file does not have", bed_with(&bed, "vm list --resource-group", &vms)),
        Case {
            keys: "shutdown = \"off\"",
            ..case(
                "The VMs have a shutdown and the file has none",
                bed_with(&bed, "resource list", &schedules),
            )
        },
        case("Another user created the bed", of_another_user()),
        case("Azure is deleting the bed", deleting()),
    ];
    cases.extend(of_calls_and_files());
    cases
}

/// Calls of `az` without an answer, beds that are not there, and a file that cannot be written.
fn of_calls_and_files() -> Vec<Case> {
    let throttled =
        "ERROR: (TooManyRequests) The request is being throttled as the limit has been reached.\n";
    let down = ["azure", "down", "x", "--yes"];
    vec![
        case("There is no connection", [("group exists", fails(OFFLINE))]),
        case("Azure limits the rate of requests", [("group exists", fails(throttled))]),
        case("An answer that netduel does not understand", [("vm list-skus", prints(&json!("none")))]),
        case("`az` fails without a message", [("group exists", json!([{ "code": 1 }]))]),
        Case { words: down.to_vec(), ..case("There is no such bed", []) },
        Case {
            words: [&down[..], &["--subscription", "paid"]].concat(),
            ..case("There is no such bed in the subscription of the command line", [])
        },
        Case {
            prepare: |scene| {
                fs::create_dir_all(scene.at("state/netduel")).unwrap();
                fs::write(scene.at("state/netduel/azure"), "").unwrap();
            },
            code: 5,
            ..case("The template cannot be stored", [])
        },
    ]
}

fn before_a_deletion() -> Vec<Case> {
    let other = json!([{ "name": "archive", "type": "Microsoft.Storage/storageAccounts", "tags": null }]);
    let bed = || group("westeurope", &json!({ "netduel": "x" })).into_iter();
    let words = vec!["azure", "down", "x", "--yes"];
    let waits = json!([{ "create": "waits", "hang": true }]);
    vec![
        Case {
            words: words.clone(),
            ..case("The resource group is no bed", group("westeurope", &json!({ "owner": "me" })))
        },
        Case { words: words.clone(), ..case("Another user created the bed, and `--yes`", of_another_user()) },
        Case {
            words: words.clone(),
            ..case(
                "The resource group has resources of others",
                bed().chain([("resource list", prints(&other))]),
            )
        },
        Case {
            words,
            run: interrupted,
            code: 130,
            ..case("Ctrl-C during a deletion", bed().chain([("group delete", waits)]))
        },
    ]
}

/// Errors after minutes of waiting, rendered from their types without the wait.
fn time_outs() -> String {
    let call = CallError::TimedOut { command: "az group create".to_owned(), limit: CALL_LIMIT };
    let unstarted = BedError::NotStarted {
        bed: "x".to_owned(),
        minutes: inventory::LIMIT_MIN,
        command: "az vm list --resource-group netduel-x --show-details".to_owned(),
    };
    let errors = [
        ("A call of `az` does not end", "create", BedError::from(call)),
        ("The deployment does not end", "create", BedError::TooLong { minutes: progress::LIMIT_MIN }),
        ("The VMs do not start", "start", unstarted),
    ];
    let shown = errors.map(|(title, doing, error)| {
        format!("\n### {title}\n\n```text\nnetduel: failed to {doing} the bed x: {error}\n```\n")
    });
    shown.concat()
}

fn during_the_deployment() -> Vec<Case> {
    let no_capacity = json!({ "error": { "code": "AllocationFailed", "message": NO_CAPACITY } });
    let waits = json!([{ "create": "waits", "hang": true }]);
    vec![
        case("Azure refuses the template because of a quota", [("deployment group create", fails(QUOTA))]),
        case("A conflict whose cause `az` does not show", [("deployment group create", fails(CONFLICT))]),
        case(
            "A conflict whose cause the operations of the deployment have",
            [
                ("deployment group create", fails(CONFLICT)),
                ("deployment operation group list", operation("vm1", "Failed", &no_capacity)),
            ],
        ),
        Case {
            keys: "placement = \"proximity-group\"",
            ..case("There is no capacity in a proximity group", failed("AllocationFailed", NO_CAPACITY))
        },
        case("There is no capacity", failed("AllocationFailed", NO_CAPACITY)),
        case(
            "The size is not available now",
            failed(
                "SkuNotAvailable",
                "The requested VM size 'Standard_D4s_v3' is currently not available in location 'westeurope'.",
            ),
        ),
        case(
            "Accelerated networking is not permitted",
            failed(
                "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
                "VM size Standard_D4s_v3 is not permitted to enable accelerated networking. Permitted: Standard_D2_v2, Standard_DS4_v2, Standard_DS3_v2.",
            ),
        ),
        case(
            "Accelerated networking is not permitted, and Azure lists no size",
            failed("VMSizeIsNotPermittedToEnableAcceleratedNetworking", "It is not permitted."),
        ),
        case(
            "Azure cannot change it of a VM that exists",
            failed("PropertyChangeNotAllowed", "Changing property 'osDisk.managedDisk' is not allowed."),
        ),
        case("A VM does not report that it has booted", failed("OSProvisioningTimedOut", NOT_BOOTED)),
        case("Any other error", failed("Conflict", "The operation cannot be completed at this time.")),
        case("Azure names no cause", failed_without_cause()),
        case(
            "The deployment fails without a resource that failed",
            ended("Failed", &json!({ "code": "DeploymentFailed", "message": "The template is not valid." })),
        ),
        case("The deployment is canceled", ended("Canceled", &Value::Null)),
        Case {
            keys: "subscription = \"paid\"",
            ..case("The subscription is that of the bed file", [("deployment group create", fails(QUOTA))])
        },
        Case {
            run: interrupted,
            code: 130,
            ..case("Ctrl-C while the resource group is created", [("group create", waits.clone())])
        },
        Case {
            run: interrupted,
            code: 130,
            ..case("Ctrl-C before Azure answers the request", [("deployment group create", waits.clone())])
        },
        Case { run: interrupted, code: 130, ..case("Ctrl-C", [("deployment group show", waits)]) },
    ]
}

/// What the program prints for a case, as in a terminal.
fn shown(case: &Case) -> String {
    let mut scene = Scene::new();
    // No bed is older than its shutdown, which would be a warning in each text.
    scene.answer("group list", prints(&json!([])));
    for (start, answer) in &case.answers {
        scene.answer(start, answer.clone());
    }
    let key = format!("ssh_key = {:?}", scene.at("key.pub").display().to_string());
    scene.bed("Standard_D4s_v3", &[key.as_str(), case.keys].join("\n"));
    (case.prepare)(&scene);
    let ended = (case.run)(&scene, &case.words).expect_code(case.code);
    assert!(ended.stdout.is_empty() || case.words.contains(&"--json"), "an error is on standard error");
    let folder = fs::canonicalize(scene.bench.path()).unwrap();
    let printed = ended.stderr.replace(&folder.display().to_string(), "~");
    scene.bench.assert_nothing_left();
    let keys: String = case.keys.lines().flat_map(|line| ["# ", line, "\n"]).collect();
    let words = case.words.join(" ");
    format!(
        "### {}\n\n```text\n{keys}$ netduel {words}\n{}\n$ echo $?\n{}\n```\n",
        case.title,
        printed.trim_end(),
        case.code
    )
}

/// The error itself, without the progress before it.
pub fn error_line(stderr: &str) -> &str {
    stderr.lines().rfind(|line| line.starts_with("netduel: ")).unwrap_or(stderr)
}

/// Compares what a test with VMs has printed with the last section of the page.
#[track_caller]
pub fn assert_on_page(text: &str) {
    let stored = fs::read_to_string(PAGE).unwrap_or_default();
    let section = stored.split_once(DURING_A_RUN).map(|(_, section)| section).unwrap_or_default();
    let text = text.trim_end();
    assert!(
        section.contains(text),
        "the last section of docs/azure-errors.md lacks this text; add it:\n{text}"
    );
}

#[test]
fn page_has_what_the_program_prints_for_each_error() {
    // Without a route this machine has no address that could connect by ssh.
    in_namespace("azure_errors::page_has_what_the_program_prints_for_each_error", || {
        let mut page = INTRODUCTION.to_owned();
        for (title, cases) in [
            ("The bed file and the command line", of_the_input()),
            ("`az` and its login", of_az()),
            ("Before anything is created", before_anything_is_created()),
            ("During the deployment", during_the_deployment()),
            ("Before a deletion", before_a_deletion()),
            ("Before a run", before_a_run()),
        ] {
            write!(page, "\n## {title}\n").unwrap();
            for case in &cases {
                write!(page, "\n{}", shown(case)).unwrap();
            }
        }
        let waits = "These errors occur after minutes of waiting. The texts are rendered without the wait.";
        write!(page, "\n## Time-outs\n\n{waits}\n{}", time_outs()).unwrap();
        let stored = fs::read_to_string(PAGE).unwrap_or_default();
        let (_, by_others) = stored.split_once(DURING_A_RUN).unwrap_or_default();
        page.extend([DURING_A_RUN, by_others]);
        if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
            fs::write(PAGE, &page).unwrap();
        }
        let stored = fs::read_to_string(PAGE).unwrap_or_default();
        assert!(
            page == stored,
            "docs/azure-errors.md is not current: run `cargo xtask bless` and commit it\n{page}"
        );
    });
}
