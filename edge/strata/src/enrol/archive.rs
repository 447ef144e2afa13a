//! An archive for the device, which any `tar` unpacks.

use crate::files::New;
use control::Failure;
use zeroize::Zeroizing;

/// Packs files with their modes, owned by root.
pub(super) fn pack(files: &[New]) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // Allocated at full size: a growing buffer would leave copies of the key behind.
    let room = files
        .iter()
        .map(|file| file.content().len() + 1024)
        .sum::<usize>()
        + 2048;
    let mut archive = tar::Builder::new(Vec::with_capacity(room));
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.content().len() as u64);
        header.set_mode(file.mode());
        header.set_mtime(config::today().0);
        header.set_uid(0);
        header.set_gid(0);
        let added = archive.append_data(&mut header, &file.name, file.content());
        added.map_err(|error| unpackable(&error))?;
    }
    let packed = archive.into_inner();
    packed
        .map(Zeroizing::new)
        .map_err(|error| unpackable(&error))
}

fn unpackable(error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot pack the files of the device: {error}"),
        "use a shorter name",
    )
}
