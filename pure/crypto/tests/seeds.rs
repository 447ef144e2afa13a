//! The seeds of the certificate fuzzer match their names.

use crypto::{Certificate, CertificateRequest, TrustStore, UnixTime};
use std::fs;
use std::path::Path;

/// 2030-03-17, when the test CA of `ike` and its certificates are valid.
const TODAY: UnixTime = UnixTime(1_900_000_000);

/// Splits octets into certificates, each preceded by two octets of length.
fn chain(mut octets: &[u8]) -> Vec<Vec<u8>> {
    let mut chain = Vec::new();
    while let Some((len, rest)) = octets.split_first_chunk() {
        let (der, rest) = rest.split_at(u16::from_be_bytes(*len).into());
        chain.push(der.to_vec());
        octets = rest;
    }
    chain
}

#[test]
fn seeds_of_certificate_are_chains() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ca = fs::read(root.join("pure/ike/src/tests/certificates/ca.pem")).unwrap();
    let trust = TrustStore::new(Certificate::all_from_pem(&ca).unwrap());
    let mut believed = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/seeds/certificate")).unwrap() {
        let file = entry.unwrap();
        let name = file.file_name().to_string_lossy().into_owned();
        let chain = chain(&fs::read(file.path()).unwrap());
        let is_request = CertificateRequest::from_der(&chain[0]).is_ok();
        assert_eq!(is_request, name.starts_with("request"), "{name}");
        let is_certificate = Certificate::from_der(&chain[0]).is_ok();
        assert_eq!(is_certificate, !is_request, "{name}");
        let verified = trust.verify(&chain, TODAY).is_ok();
        assert_eq!(verified, name.starts_with("believed"), "{name}");
        believed.push(verified);
    }
    assert!(believed.contains(&true) && believed.contains(&false));
}
