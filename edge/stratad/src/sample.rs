//! Configuration files of tests.

use config::Config;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// A folder for configuration files and the keys that they name, until dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with a name that is unique among the tests.
    pub fn new(name: &str) -> Self {
        let name = format!("stratad-{name}-{}", process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a key that only its owner can read.
    pub fn write_key(&self, name: &str, key: &str) {
        let path = self.0.join(name);
        fs::write(&path, key).expect("a temporary file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }

    /// Loads a valid configuration.
    pub fn load(&self, text: &str) -> Config {
        self.try_load(text).expect("it is valid")
    }

    /// Loads a configuration.
    pub fn try_load(&self, text: &str) -> Result<Config, config::Error> {
        let file = self.0.join("strata.toml");
        fs::write(&file, text).expect("a temporary file can be written");
        config::load(&file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A temporary folder that stays does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
