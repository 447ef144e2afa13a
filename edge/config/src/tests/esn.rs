//! Extended sequence numbers.

use super::{Folder, OFFICE};

#[test]
fn without_a_word_numbers_have_32_bits() {
    for (line, esn) in [("", false), ("esn = false", false), ("esn = true", true)] {
        for zones in ["", "zones = \"refuse\"\n"] {
            let config = Folder::new().load(&format!("{OFFICE}{zones}{line}"));
            assert_eq!(config.unwrap().peers[0].features.esn, esn, "{line}");
        }
    }
}

/// `accept` is refused too, because the configuration does not determine if zones will be used.
// Refuses: esn
#[test]
fn beside_zones_they_are_refused_with_the_fix() {
    for zones in ["accept", "require"] {
        let text = format!("{OFFICE}zones = \"{zones}\"\nesn = true\n");
        let faults = Folder::new().lines(&text);
        assert_eq!(faults.len(), 1, "{faults:#?}");
        let told = [
            "10:7 peer.office.esn",
            "licensed node",
            "`zones = \"refuse\"`",
        ];
        assert!(
            told.iter().all(|words| faults[0].contains(words)),
            "{faults:#?}"
        );
        let without = text.replace("esn = true", "esn = false");
        assert!(Folder::new().load(&without).is_ok());
    }
}
