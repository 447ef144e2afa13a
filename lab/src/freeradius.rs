//! FreeRADIUS as an accounting server, with the modules `detail` and `sql` (SQLite).
//!
//! Tables, queries and identifiers of sessions are those of Debian's configuration.

use crate::host::Host;
use crate::obstacle::Obstacle;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Address at which the server listens, on its host alone.
pub const ADDRESS: &str = "127.0.0.1";

/// Secret of the server and its clients.
pub const SECRET: &str = "a secret of the lab";

/// Debian's configuration, which root alone can read.
const DEBIAN: &str = "/etc/freeradius/3.0";

/// Folder of the detail files, one for each gateway.
const DETAIL: &str = "radacct";

/// A running FreeRADIUS. It is killed when dropped.
pub struct FreeRadius {
    host: Host,
    process: Process,
}

impl FreeRadius {
    /// Starts FreeRADIUS on a host. It continues the files of an earlier one.
    ///
    /// # Errors
    /// It is not installed (the message names the package), its configuration cannot be read, or it
    /// did not start.
    pub fn start(host: &Host) -> Result<Self> {
        let freeradius = find_command("freeradius", "freeradius")?;
        fs::read_dir(DEBIAN).map_err(|error| {
            let message = format!("cannot read {DEBIAN}: {error}");
            Obstacle::new(message, "run it as root")
        })?;
        host.secret("radiusd.conf", &configuration())?;
        let log = fs::read_to_string(host.directory().join("freeradius.log"));
        let starts = |log: &str| log.matches("Ready to process requests").count();
        let before = log.map_or(0, |log| starts(&log));
        let line = format!("{} -f -d . -n radiusd -l stdout", freeradius.display());
        let mut process = host.spawn(&line)?;
        let is_up = |log: &str| (starts(log) > before).then_some(());
        process.wait_for("FreeRADIUS", DEADLINE, is_up)?;
        Ok(Self {
            host: host.clone(),
            process,
        })
    }

    /// Sends a request as a gateway does (lines `Attribute = value`), and waits for the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub fn account(&self, request: &str) -> Result<()> {
        let radclient = find_command("radclient", "freeradius-utils")?;
        self.host.file("request", request)?;
        self.host.secret("secret", SECRET)?;
        let words = "-f request -S secret";
        let line = format!("{} {words} {ADDRESS} acct", radclient.display());
        self.host.run(&line).map(drop)
    }

    /// Returns the detail files, the oldest first: there is one for each day.
    ///
    /// # Errors
    /// There is none yet.
    pub fn detail(&self) -> Result<Vec<PathBuf>> {
        let folder = self.host.directory().join(DETAIL).join(ADDRESS);
        let entries = fs::read_dir(&folder).context("no detail file")?;
        let files = entries.map(|entry| Ok(entry?.path()));
        let mut files = files.collect::<Result<Vec<_>>>()?;
        files.sort();
        Ok(files)
    }

    /// Exports the table of sessions as CSV. Returns the path.
    ///
    /// # Errors
    /// sqlite3 is not installed, or failed.
    pub fn export(&self) -> Result<PathBuf> {
        let sqlite = find_command("sqlite3", "sqlite3")?;
        let mut command = self.host.command(sqlite);
        command.args(["-csv", "-header", "radius.db", "SELECT * FROM radacct"]);
        let table = self.host.run_command(command, DEADLINE)?;
        self.host.file("radacct.csv", &table)
    }

    /// Returns the process, for its signals.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Returns the number of records with this status in detail files.
pub fn count(files: &[impl AsRef<Path>], status: &str) -> Result<usize> {
    let line = format!("\tAcct-Status-Type = {status}\n");
    let texts = files.iter().map(fs::read_to_string);
    let counts = texts.map(|text| Ok(text?.matches(&line).count()));
    counts.sum()
}

/// Paths begin with a dot: FreeRADIUS makes a folder of a database without a slash in its name.
fn configuration() -> String {
    format!(
        r#"
prefix = .
logdir = .
run_dir = .
libdir = /usr/lib/freeradius
modconfdir = {DEBIAN}/mods-config
radacctdir = ./{DETAIL}
security {{
  allow_core_dumps = no
}}
thread pool {{
  start_servers = 1
  max_servers = 1
  min_spare_servers = 1
  max_spare_servers = 1
}}
client gateway {{
  ipaddr = {ADDRESS}
  secret = "{SECRET}"
}}
modules {{
  $INCLUDE {DEBIAN}/mods-available/expr
  $INCLUDE {DEBIAN}/mods-available/detail
  sql {{
    driver = "rlm_sql_sqlite"
    dialect = "sqlite"
    sqlite {{
      filename = "./radius.db"
      bootstrap = "${{modconfdir}}/sql/main/sqlite/schema.sql"
    }}
    radius_db = "radius"
    acct_table1 = "radacct"
    acct_table2 = "radacct"
    postauth_table = "radpostauth"
    authcheck_table = "radcheck"
    groupcheck_table = "radgroupcheck"
    authreply_table = "radreply"
    groupreply_table = "radgroupreply"
    usergroup_table = "radusergroup"
    client_table = "nas"
    group_attribute = "SQL-Group"
    pool {{
      start = 1
      min = 1
      max = 1
      spare = 0
    }}
    $INCLUDE ${{modconfdir}}/sql/main/sqlite/queries.conf
  }}
}}
policy {{
  $INCLUDE {DEBIAN}/policy.d/accounting
}}
server default {{
  listen {{
    type = acct
    ipaddr = {ADDRESS}
    port = 1813
  }}
  preacct {{
    acct_unique
  }}
  accounting {{
    detail
    sql
  }}
}}
"#
    )
}
