//! Names that a shell would act on, on their way through the daemons: into the log, the store of
//! leases and the output of `strata`, while `nft` runs for the tunnel.

use anyhow::{Result, ensure};
use lab::lending::{ALICE, BOB, POOL, borrower_config, lender_config};
use lab::pair::{Pair, TUNNEL_KEY};
use lab::process::DEADLINE;
use std::path::Path;

/// Returns an identity whose words, run by a shell in any way, make a file.
fn hostile(mark: &Path) -> String {
    let make = format!("touch${{IFS}}{}", mark.display());
    format!("$({make})`{make}`;{make};%s../../@example.net")
}

// Weakness: 26
#[lab::test]
fn no_program_is_run_by_the_name_of_a_peer() -> Result<()> {
    let pair = Pair::new("words")?;
    let mark = pair.gateway.directory().join("mark");
    let (client, gateway, stranger) = (
        hostile(&mark),
        hostile(&mark).replace("example.net", "gw.example.net"),
        hostile(&mark).replace("example.net", "elsewhere.example.net"),
    );
    for host in [&pair.gateway, &pair.mobile, &pair.between] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let named = |config: String| {
        let config = config.replace(ALICE.id, &client).replace(BOB.id, &stranger);
        config.replace("\"gw.example.net\"", &format!("\"{gateway}\""))
    };
    // The gateway knows only the client by name, and the lock of the client runs `nft`.
    let lender = lender_config(&pair.gateway, POOL);
    let mut lender = pair
        .gateway
        .stratad(&named(lender.replace(BOB.id, "bob.example.net")))?;
    let locked = format!("{}leak = \"never\"\n", borrower_config(&ALICE));
    let mut mobile = pair.mobile.stratad(&named(locked))?;
    let between = pair.between.stratad(&named(borrower_config(&BOB)))?;
    mobile.strata_text("up office --wait")?;
    ensure!(between.strata_text("up office --wait").is_err());
    for (daemon, peer) in [(&lender, "alice"), (&mobile, "office")] {
        for words in [
            "status",
            "leases",
            "doctor",
            "paths",
            &format!("explain {peer}"),
        ] {
            // `doctor` may have found something.
            let _told = daemon.strata_text(words);
        }
    }
    let leases = lender.strata("leases")?.to_string();
    ensure!(leases.contains(&client), "{leases}");
    lender.process().wait_for_log(&stranger, DEADLINE)?;
    // The store has the name, and so has the lock that a crash leaves.
    lender.process().crash()?;
    lender.start_again()?;
    mobile.process().crash()?;
    mobile.start_again()?;
    mobile.strata_text("up office --wait")?;
    mobile.stop()?;
    lender.stop()?;
    ensure!(!mark.exists(), "a shell has run the name of a peer");
    Ok(())
}
