//! Whether the record of original states outlives this process, its guard and the boot. It reads and writes no record.
use std::path::Path;

/// The warning about a record that may be lost; `None` where it is in `lasting`, the folder that outlives a boot. `record`: where the guard keeps it.
pub(super) fn doubt(record: Option<&Path>, lasting: Option<&Path>) -> Option<String> {
    if record.zip(lasting).is_some_and(|(record, lasting)| record.starts_with(lasting)) {
        return None;
    }
    let what = match record {
        Some(record) => format!(
            "the original state of resources is recorded in {}, which may be lost when this machine or its container restarts",
            record.display()
        ),
        None => "the original state of resources is not recorded: it is lost when netduel and its guard are killed".to_owned(),
    };
    let remedy = match lasting {
        Some(folder) => {
            format!("let {} be a folder on a local disk that only this user can open", folder.display())
        }
        None => {
            "set XDG_STATE_HOME or HOME to the absolute path of a folder that this user can write".to_owned()
        }
    };
    Some(format!("warning: {what}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_in_another_place_than_the_lasting_one_or_in_none_is_a_doubt() {
        let [lasting, record, other] = ["/s/undo", "/s/undo/undo-1", "/run/undo-1"].map(Path::new);
        assert_eq!(doubt(Some(record), Some(lasting)), None);
        for (record, lasting, parts) in [
            (Some(other), Some(lasting), ["recorded in /run/undo-1,", "let /s/undo be a folder"]),
            (Some(other), None, ["recorded in /run/undo-1,", "set XDG_STATE_HOME"]),
            (None, Some(lasting), ["is not recorded", "let /s/undo be a folder"]),
            (None, None, ["is not recorded", "set XDG_STATE_HOME"]),
        ] {
            let text = doubt(record, lasting).expect("it may be lost");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
