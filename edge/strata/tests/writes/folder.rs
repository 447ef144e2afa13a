//! A folder for one test.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strata-writes-{}-{unique}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a temporary folder can be made");
        folder
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        let parent = path.parent().expect("it is in the folder");
        fs::create_dir_all(parent).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).expect(file)
    }

    pub fn exists(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }

    pub fn mode(&self, file: &str) -> u32 {
        let metadata = fs::metadata(self.0.join(file)).expect(file);
        metadata.permissions().mode() & 0o777
    }

    pub fn run(&self, program: &str, words: &str) -> Output {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).current_dir(&self.0);
        command.stdin(Stdio::null()).env_remove("NO_COLOR");
        command.output().expect("the program runs")
    }

    /// Runs `strata`, and returns its exit status and all that it prints.
    pub fn strata(&self, words: &str) -> (i32, String) {
        let output = self.run(env!("CARGO_BIN_EXE_strata"), words);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.code().expect("it ends by itself"), text)
    }

    /// Runs `strata`, which succeeds.
    #[track_caller]
    pub fn done(&self, words: &str) -> String {
        let (status, text) = self.strata(words);
        assert_eq!(status, 0, "{words}: {text}");
        text
    }

    /// Runs `strata`, which succeeds, and returns its JSON.
    #[track_caller]
    pub fn json(&self, words: &str) -> Value {
        let line = self.done(&format!("{words} --json"));
        serde_json::from_str(&line).expect("it is JSON")
    }

    /// Runs `strata`, which refuses, also with JSON, and says these words.
    #[track_caller]
    pub fn refused(&self, words: &str, says: &[&str]) {
        let (status, text) = self.strata(words);
        assert_eq!(status, 2, "{words}: {text}");
        has(&text, says);
        let (_, line) = self.strata(&format!("{words} --json"));
        let line: Value = serde_json::from_str(&line).expect("a refusal is JSON, too");
        assert!(line["error"].is_object(), "{line}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fails unless the text has all words.
#[track_caller]
pub fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}
