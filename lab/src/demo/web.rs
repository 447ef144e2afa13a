//! The demo's web server: nginx as an ordinary program.

use crate::host::Host;
use crate::process::{DEADLINE, Process};
use crate::testbed::find_command;
use anyhow::{Context, Result};
use std::path::Path;

/// Returns the URL of the marked stream on the server at this address.
pub(crate) fn url(address: &str) -> String {
    format!("http://{address}:8080/stream")
}

/// Starts nginx as one process without files outside its folder. It sees itself as root, and
/// without `user root` would look for a user that does not exist.
pub(crate) fn serve(server: &Host, address: &str, stream: &Path) -> Result<Process> {
    let config = format!(
        "user root;
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{ listen {address}:8080; root \"{}\"; }}
}}
",
        stream.display()
    );
    let config = server.file("nginx.conf", &config)?;
    let mut command = server.command(find_command("nginx", "nginx-light")?);
    command.arg("-e").arg("stderr").arg("-c").arg(config);
    command.arg("-p").arg(server.directory());
    let web = server.start("nginx", command)?;
    let started = server.wait_for_port(&format!("{address}:8080"), DEADLINE);
    started.with_context(|| format!("nginx says: {}", web.log()))?;
    Ok(web)
}
