//! The page `docs/azure-errors.md`: what `netduel azure` prints for each error, by the program itself. The answers of `az` are those of the real one.
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::azure::{Scene, UP, fails, operation, prints, usage};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/azure-errors.md");
const INTRODUCTION: &str = "# Errors of `netduel azure`

What `netduel azure` prints for each error of Azure, of `az` and of the bed file, with its [exit code](exit-codes.md): 2 for input to correct, 3 for a program or a login that is
missing, 12 for an error of Azure. `azure_errors.rs` writes this page: the program printed every text here to answers that `az` 2.91 has for the same
errors. [docs/beds.md](beds.md#errors) has the same as a table.
";
/// An error of Azure as `az` prints it for a deployment that Azure refuses when it validates the template.
const QUOTA: &str = "ERROR: {\"code\": \"InvalidTemplateDeployment\", \"message\": \"The template deployment 'netduel' is not valid according to the \
    validation procedure. See inner errors for details.\"}\n\nInner Errors: \n{\"code\": \"QuotaExceeded\", \"message\": \"Operation could not be completed \
    as it results in exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: westeurope, \
    Current Limit: 10, Current Usage: 4, Additional Required: 8\"}\n";
const CONFLICT: &str = "    raise RuntimeError(\"The content for this response was already consumed\")\nRuntimeError: The content for this response was \
    already consumed\nTo check existing issues, please visit: https://github.com/Azure/azure-cli/issues\n";
const OFFLINE: &str = "ERROR: HTTPSConnectionPool(host='management.azure.com', port=443): Max retries exceeded with url: /subscriptions (Caused by \
    NameResolutionError(\"Failed to resolve 'management.azure.com' ([Errno -3] Temporary failure in name resolution)\"))\n";

/// An error, and how it comes about.
struct Case {
    title: &'static str,
    /// The answers of `az` that differ from those of a bed that can be created.
    answers: Vec<(&'static str, Value)>,
    /// Keys of the bed file besides name, region, size and key.
    keys: &'static str,
    words: Vec<&'static str>,
    code: i32,
}

fn case(title: &'static str, answers: impl IntoIterator<Item = (&'static str, Value)>) -> Case {
    Case { title, answers: answers.into_iter().collect(), keys: "", words: UP.to_vec(), code: 12 }
}

/// The offer of the size, changed.
fn offered(changed: &Value) -> [(&'static str, Value); 1] {
    let mut sku = json!({
        "name": "Standard_D4s_v3", "family": "standardDSv3Family", "restrictions": [],
        "locationInfo": [{ "location": "westeurope", "zones": ["1"] }],
        "capabilities": [
            { "name": "AcceleratedNetworkingEnabled", "value": "True" }, { "name": "MaxNetworkInterfaces", "value": "2" },
        ],
    });
    for (key, value) in changed.as_object().into_iter().flatten() {
        sku[key] = value.clone();
    }
    [("vm list-skus", prints(&json!([sku])))]
}

/// A deployment in which a VM failed.
fn failed(code: &str, message: &str) -> [(&'static str, Value); 2] {
    let all =
        json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } });
    let error = json!({ "error": { "code": code, "message": message } });
    [
        ("deployment group show", prints(&all)),
        ("deployment operation group list", operation("vm1", "Failed", &error)),
    ]
}

/// A group of the bed's name that exists.
fn group(region: &str, tags: &Value) -> [(&'static str, Value); 2] {
    let group = json!({ "name": "netduel-x", "location": region, "tags": tags });
    [("group exists", json!([{ "out": "true" }])), ("group show", prints(&group))]
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
        Case {
            keys: "zone = 7\nspot = \"yes\"",
            ..usage("Values that the file cannot have", &["azure", "check", "x.toml"])
        },
        usage("No address for ssh", &["azure", "up", "x.toml"]),
        usage("Ssh from the whole world", &["azure", "up", "x.toml", "--ssh-from", "0.0.0.0/0"]),
        Case {
            answers: group("westeurope", &json!({ "netduel": "x" })).to_vec(),
            ..usage("Deletion without a terminal and without `--yes`", &["azure", "down", "x"])
        },
    ]
}

fn of_az() -> Vec<Case> {
    let expired = "ERROR: (ExpiredAuthenticationToken) The access token expiry UTC time is earlier than current UTC time.\n";
    let cases = [
        case("`az` is too old", [("version", prints(&json!({ "azure-cli": "2.1.0" })))]),
        case(
            "The login is missing",
            [("account show", fails("ERROR: Please run 'az login' to setup account.\n"))],
        ),
        case("The login has expired", [("group exists", fails(expired))]),
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
    let throttled =
        "ERROR: (TooManyRequests) The request is being throttled as the limit has been reached.\n";
    vec![
        case("The quota is too small", [("vm list-usage", usage("4"))]),
        case("The region does not have the size", [("vm list-skus", prints(&json!([])))]),
        case("The subscription may not use the size", offered(&restricted)),
        case("The size has no accelerated networking", offered(&capabilities("False", "2"))),
        case("The size has too few NICs", offered(&capabilities("True", "1"))),
        Case {
            keys: "budget = \"11 USD\"\nshutdown = \"off\"",
            ..case("The bed costs more than its budget", price())
        },
        Case { keys: "budget = \"11 USD\"", ..case("The price is unknown, and the bed has a budget", []) },
        case("The resource group is not the bed's", group("westeurope", &json!({ "owner": "me" }))),
        case("The bed exists in another region", group("northeurope", &json!({ "netduel": "x" }))),
        case("There is no connection", [("group exists", fails(OFFLINE))]),
        case("Azure limits the rate of requests", [("group exists", fails(throttled))]),
        Case { words: vec!["azure", "down", "x", "--yes"], ..case("There is no such bed", []) },
    ]
}

fn during_the_deployment() -> Vec<Case> {
    vec![
        case("Azure refuses the template because of a quota", [("deployment group create", fails(QUOTA))]),
        case("A conflict whose cause `az` does not show", [("deployment group create", fails(CONFLICT))]),
        case(
            "There is no capacity",
            failed(
                "AllocationFailed",
                "We do not have sufficient capacity for the requested VM size in this region.",
            ),
        ),
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
                "VM size Standard_D4s_v3 is not permitted to enable accelerated networking. Permitted: Standard_D2_v2, Standard_D4_v4.",
            ),
        ),
        case(
            "Azure cannot change it of a VM that exists",
            failed("PropertyChangeNotAllowed", "Changing property 'osDisk.managedDisk' is not allowed."),
        ),
        case("Any other error", failed("Conflict", "The operation cannot be completed at this time.")),
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
    let ended = scene.run(&case.words).expect_code(case.code);
    assert_eq!(ended.stdout, "", "an error is on standard error");
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

#[test]
fn page_has_what_the_program_prints_for_each_error() {
    let mut page = INTRODUCTION.to_owned();
    for (title, cases) in [
        ("The bed file and the command line", of_the_input()),
        ("`az` and its login", of_az()),
        ("Before anything is created", before_anything_is_created()),
        ("During the deployment", during_the_deployment()),
    ] {
        write!(page, "\n## {title}\n").unwrap();
        for case in &cases {
            write!(page, "\n{}", shown(case)).unwrap();
        }
    }
    if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
        fs::write(PAGE, &page).unwrap();
    }
    let stored = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        page == stored,
        "docs/azure-errors.md is not current: run `cargo xtask bless` and commit it\n{page}"
    );
}
