//! The table in `docs/operate/README.md` leads to each page, by the words that an operator looks
//! for.

use crate::{list, read, repository};

/// Words, and the page that their first row in the table leads to. The page has the words too.
const WORDS: [(&str, &str); 53] = [
    ("audit log", "audit"),
    ("backup", "upgrade"),
    ("measure", "measure"),
    ("carry a single service", "first-tunnel"),
    ("certificate", "certificates"),
    ("container", "containers"),
    ("why a tunnel is down", "no-traffic"),
    ("DNS", "pools-and-dns"),
    ("Docker", "containers"),
    ("dynamic DNS", "names"),
    ("firewall ports", "networkmanager-networkd"),
    ("fragment", "mtu"),
    ("forwarding", "settings"),
    ("install", "upgrade"),
    ("kill switch", "leak-protection"),
    ("lease", "pools-and-dns"),
    ("Libreswan", "moving-in"),
    ("looked up", "names"),
    ("long delay", "satellite-link"),
    ("lost laptop", "certificates"),
    ("many users", "road-warriors"),
    ("metrics", "monitoring"),
    ("Mobile IP", "mobility"),
    ("migrate", "moving-in"),
    ("MOBIKE", "mobility"),
    ("MTU", "mtu"),
    ("name servers", "pools-and-dns"),
    ("networkd", "networkmanager-networkd"),
    ("NetworkManager", "networkmanager-networkd"),
    ("no traffic", "no-traffic"),
    ("without encryption", "first-tunnel"),
    ("package", "upgrade"),
    ("phone", "road-warriors"),
    ("post-quantum", "first-tunnel"),
    ("ping", "no-traffic"),
    ("Prometheus", "monitoring"),
    ("reload", "upgrade"),
    ("remote access", "road-warriors"),
    ("revoke", "certificates"),
    ("satellite", "satellite-link"),
    ("second site", "second-site"),
    ("secret", "first-tunnel"),
    ("site to site", "second-site"),
    ("SNOOP", "licensed-nodes"),
    ("split tunnel", "road-warriors"),
    ("spoofed", "leak-protection"),
    ("sysctl", "settings"),
    ("systemd", "upgrade"),
    ("uninstall", "upgrade"),
    ("upgrade", "upgrade"),
    ("WireGuard", "moving-in"),
    ("watchdog", "upgrade"),
    ("Wireshark", "no-traffic"),
];

/// Returns the page that the first row with some words leads to.
fn found<'a>(table: &'a str, words: &str) -> Option<&'a str> {
    let words = words.to_lowercase();
    let mut rows = table.lines().filter(|line| line.starts_with("| "));
    let row = rows.find(|row| row.to_lowercase().contains(&words))?;
    let (_, link) = row.rsplit_once("](")?;
    link.split(".md").next()
}

// Weakness: 163
#[test]
fn the_words_of_an_operator_lead_to_the_page() {
    let table = read("operate/README.md");
    for (words, page) in WORDS {
        assert_eq!(found(&table, words), Some(page), "{words}");
        let text = read(&format!("operate/{page}.md")).to_lowercase();
        assert!(text.contains(&words.to_lowercase()), "{page} lacks {words}");
    }
    // Negative control.
    assert_eq!(found(&table, "carrier pigeon"), None);
}

#[test]
fn each_page_is_two_links_from_the_readme() {
    let readme = std::fs::read_to_string(repository().join("README.md"));
    let readme = readme.expect("the repository has a README");
    assert!(readme.contains("](docs/operate/README.md)"));
    let table = read("operate/README.md");
    for page in list("operate") {
        assert!(
            page == "README.md" || table.contains(&format!("]({page})")),
            "docs/operate/README.md has no link to {page}"
        );
    }
}
