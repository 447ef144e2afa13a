//! Several live paths.

use super::{Folder, OFFICE};

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
         licences = [{ node = \"fa.example.net\", zones = [\"headers\"], right = \"read\" }]",
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
