//! Several live paths.

use super::{Folder, OFFICE};
use crate::Warning;

/// Two nodes, each at one of two addresses.
const TWO_PLACES: &str = "zones = \"require\"\nlicences = [\
    { node = \"fa.example.net\", zones = [\"headers\"], right = \"read\", at = [\"10.3.0.0/24\"] }, \
    { node = \"fb.example.net\", zones = [\"headers\"], right = \"read\", at = [\"10.4.0.0/24\"] }]";

#[test]
fn there_is_one_path_unless_the_file_has_more_and_four_at_most() {
    for (line, paths) in [
        ("", 1),
        ("paths = 1", 1),
        ("paths = 2", 2),
        ("paths = 4", 4),
    ] {
        let config = Folder::new().load(&format!("{OFFICE}{line}")).unwrap();
        assert_eq!(config.peers[0].features.paths, paths, "{line}");
    }
    for line in ["paths = 0", "paths = 5", "paths = \"2\""] {
        assert_eq!(
            Folder::new().lines(&format!("{OFFICE}{line}")).len(),
            1,
            "{line}"
        );
    }
}

// Refuses: live-paths
#[test]
fn settings_that_several_paths_do_not_work_with_are_refused() {
    for other in [
        "mobike = \"off\"",
        "clone = true",
        "resources = 2",
        "tcp = \"fallback\"",
        "tfc = \"mtu\"",
        "zones = \"require\"\n\
         licences = [{ node = \"*.example.net\", zones = [\"headers\"], right = \"read\" }]",
        &format!("{TWO_PLACES}\nhandover = \"dkm\""),
        &format!("{TWO_PLACES}\nhandover = \"pkd\"\nholders = 2"),
    ] {
        let text = format!("{OFFICE}paths = 2\n{other}\n");
        let faults = Folder::new().lines(&text);
        assert_eq!(faults.len(), 1, "{other}: {faults:#?}");
        let key = other.lines().last().unwrap().split(' ').next().unwrap();
        for words in ["9:9 peer.office.paths", key, "remove `paths`"] {
            assert!(faults[0].contains(words), "{other}: {faults:#?}");
        }
        let one = text.replace("paths = 2", "paths = 1");
        assert!(Folder::new().load(&one).is_ok(), "{other}");
    }
}

#[test]
fn a_tunnel_in_transport_mode_has_one_path() {
    let text = OFFICE.replace("10.8.0.0/16", "192.0.2.1/32");
    let faults = Folder::new().lines(&format!("{text}paths = 2\nmode = \"transport\"\n"));
    let told = |fault: &String| fault.contains("transport") && fault.contains("paths");
    assert!(faults.iter().any(told), "{faults:#?}");
}

#[test]
fn nodes_on_different_paths_have_different_places() {
    let text = format!("{OFFICE}paths = 2\n{TWO_PLACES}\nhandover = \"pkd\"\n");
    let config = Folder::new().load(&text).unwrap();
    assert_eq!(config.peers[0].zones.slots.len(), 2);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let together = text.replace("10.4.0.0/24", "10.3.0.2");
    let faults = Folder::new().lines(&together);
    let told = |fault: &String| {
        ["licences", "fa.example.net and fb.example.net", "in common"]
            .iter()
            .all(|words| fault.contains(words))
    };
    assert!(faults.len() == 1 && told(&faults[0]), "{faults:#?}");
    // Control: one path has the keys of one slot at a time.
    let one = together.replace("paths = 2\n", "");
    assert!(Folder::new().load(&one).is_ok());
}

#[test]
fn a_node_without_a_place_has_the_keys_of_every_path_and_the_operator_is_told() {
    let everywhere = TWO_PLACES.replacen(", at = [\"10.3.0.0/24\"]", "", 1);
    let everywhere = everywhere.replace(
        "[\"headers\"], right = \"read\", at",
        "[\"ip\"], right = \"read\", at",
    );
    let layout = "layout = [\"ip\", \"transport\", \"payload\"]\n";
    let everywhere = everywhere.replacen("[\"headers\"]", "[\"ip\", \"transport\"]", 1);
    let text = |paths: u8| format!("{OFFICE}paths = {paths}\n{layout}{everywhere}\n");
    let warnings = |paths| Folder::new().load(&text(paths)).unwrap().warnings;
    let [Warning::LicenceOnEveryPath { peer, node }] = &warnings(2)[..] else {
        panic!("{:?}", warnings(2));
    };
    assert_eq!(
        (peer.as_str(), node.to_string()),
        ("office", "fa.example.net".to_owned())
    );
    assert!(warnings(1).is_empty());
}
