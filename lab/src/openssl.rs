//! Certificates made by openssl in the folder of a host, as issued by a CA that is not ours.

use crate::host::Host;
use anyhow::Result;

/// A key for ECDSA over P-256, in openssl's syntax.
pub const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256";
/// A key for ECDSA over P-384.
pub const P384: &str = "ec -pkeyopt ec_paramgen_curve:P-384";
/// A key for RSA.
pub const RSA: &str = "rsa -pkeyopt rsa_keygen_bits:2048";
/// A key for Ed25519.
pub const ED25519: &str = "ed25519";

/// Common name of an end, which says nothing about its identity.
const END: &str = "end.pem CN";

/// Parameters of one end's certificate.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Type of the key, in openssl's syntax.
    pub key: &'a str,
    /// True if the chain has an intermediate CA.
    pub intermediate: bool,
    /// Validity, in openssl's syntax.
    pub validity: &'a str,
    /// Additional lines of extensions.
    pub extensions: &'a str,
}

/// A certificate that every peer accepts.
pub const GOOD: Order<'_> = Order {
    key: EC,
    intermediate: false,
    validity: "-days 365",
    extensions: "",
};

/// Creates a CA: `ca.pem` and `ca.key`.
///
/// # Errors
/// openssl failed.
pub fn authority(host: &Host, key: &str, name: &str) -> Result<()> {
    authority_that(host, key, name, "basicConstraints=critical,CA:TRUE")
}

/// Creates a CA whose certificate has these lines of extensions.
///
/// # Errors
/// openssl failed.
pub fn authority_that(host: &Host, key: &str, name: &str, extensions: &str) -> Result<()> {
    make_key(host, key, "ca.key")?;
    host.secret("ca.cnf", &format!("[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ca\n[dn]\nCN={name}\n[ca]\n{extensions}\n"))?;
    host.run("openssl req -x509 -config ca.cnf -key ca.key -days 3650 -out ca.pem")?;
    Ok(())
}

/// Creates `end.key` and `chain.pem` for a name, as ordered from the CA in the host's folder.
///
/// # Errors
/// openssl failed.
pub fn order(host: &Host, name: &str, order: Order<'_>) -> Result<()> {
    let plain = "-days 365";
    let ca = "basicConstraints=critical,CA:TRUE\n";
    let end = format!("subjectAltName={name}\n{}\n", order.extensions);
    if order.intermediate {
        issue(host, "middle", "middle.pem CN", "ca", order.key, plain, ca)?;
        issue(host, "end", END, "middle", order.key, order.validity, &end)?;
        let read = |name| std::fs::read_to_string(host.directory().join(name));
        host.file(
            "chain.pem",
            &format!("{}{}", read("end.pem")?, read("middle.pem")?),
        )?;
    } else {
        issue(host, "end", END, "ca", order.key, order.validity, &end)?;
        std::fs::copy(
            host.directory().join("end.pem"),
            host.directory().join("chain.pem"),
        )?;
    }
    Ok(())
}

/// Creates `FILE.key` and `FILE.pem` with this common name, from the CA in the host's folder.
///
/// # Errors
/// openssl failed.
pub fn named(host: &Host, file: &str, common: &str) -> Result<()> {
    let extensions = "basicConstraints=CA:FALSE\n";
    issue(host, file, common, "ca", EC, "-days 365", extensions)
}

/// Creates `ca.crl` of the CA in the host's folder, which revokes nothing. Its times are in
/// openssl's syntax.
///
/// # Errors
/// openssl failed.
pub fn list(host: &Host, times: &str) -> Result<()> {
    host.file("index.txt", "")?;
    host.file("number.txt", "01\n")?;
    host.file("issue.cnf", &format!("{ISSUE}crlnumber=number.txt\n"))?;
    host.run(&format!(
        "openssl ca -gencrl -config issue.cnf -cert ca.pem -keyfile ca.key {times} -out ca.crl"
    ))?;
    Ok(())
}

fn issue(
    host: &Host,
    name: &str,
    common: &str,
    by: &str,
    key: &str,
    validity: &str,
    extensions: &str,
) -> Result<()> {
    make_key(host, key, &format!("{name}.key"))?;
    host.file(
        &format!("{name}.cnf"),
        &format!("[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN={common}\n"),
    )?;
    host.file(&format!("{name}.ext"), extensions)?;
    host.run(&format!(
        "openssl req -new -config {name}.cnf -key {name}.key -out {name}.csr"
    ))?;
    host.file("index.txt", "")?;
    host.file("issue.cnf", ISSUE)?;
    host.run(&format!(
        "openssl ca -batch -notext -config issue.cnf -cert {by}.pem -keyfile {by}.key \
         -in {name}.csr -out {name}.pem {validity} -extfile {name}.ext"
    ))?;
    Ok(())
}

fn make_key(host: &Host, key: &str, file: &str) -> Result<()> {
    host.run(&format!("openssl genpkey -algorithm {key} -out {file}"))?;
    host.run(&format!("chmod 600 {file}")).map(drop)
}

/// Configuration for openssl's `ca`, the command that can backdate a certificate.
const ISSUE: &str = "[any]\ncommonName=supplied\n[ca]\ndefault_ca=one\n[one]\ndatabase=index.txt\n\
                     new_certs_dir=.\nrand_serial=yes\ndefault_md=default\npolicy=any\n";
