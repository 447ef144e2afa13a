//! The file of a database, which is opened again after an error: `redb` refuses all further work
//! after one, and a disk that was full has room later.

use crate::error::{Content, Doing, Error};
use crate::{check_private, open_private};
use redb::{Builder, Database};
use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason that is told if `redb` fails an assertion, as it may do for a damaged file.
const INCONSISTENT: &str = "its content is inconsistent";

thread_local! {
    /// The file that `redb` works with in this thread.
    static AT_WORK: RefCell<Option<(PathBuf, Content)>> = const { RefCell::new(None) };
}

/// Returns the error that a panic of this thread stands for, if it comes from the library that
/// reads a damaged file. For the panic hook of a program that aborts.
pub fn damaged() -> Option<Error> {
    let (path, content) = AT_WORK.take()?;
    let failed = Doing::new("reading", &path, content);
    Some(failed.damaged(INCONSISTENT.to_owned()))
}

/// The file. All clones share the database.
#[derive(Clone)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    content: Content,
    /// Cache size in octets.
    cache: usize,
    /// `None` after an error.
    open: Arc<Mutex<Option<Arc<Database>>>>,
}

impl DatabaseFile {
    /// Opens the file, or creates it. The database is checked as a whole, so a damaged file is
    /// detected at start and not when a peer needs it.
    pub(crate) fn open(path: &Path, content: Content, cache: usize) -> Result<Self, Error> {
        let failed = Doing::new("opening", path, content);
        let opened = open_private(path).map_err(|source| failed.io(source))?;
        check_private(&opened, path)?;
        let file = Self {
            path: path.to_owned(),
            content,
            cache,
            open: Arc::default(),
        };
        let database = file.asserting(|| {
            let mut database = file.database(opened)?;
            let whole = database.check_integrity();
            whole.map_err(|source| failed.database(source))?;
            Ok(Arc::new(database))
        })?;
        *file.lock() = Some(database);
        Ok(file)
    }

    /// Works with the database. `doing` is what an error says that was attempted. After one, the
    /// next call opens the file again.
    pub(crate) fn with<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        self.asserting(|| {
            let database = self.get()?;
            let failed = Doing::new(doing, &self.path, self.content);
            let worked = work(&database).map_err(|source| failed.storage(source));
            if worked.is_err() {
                *self.lock() = None;
            }
            worked
        })
    }

    fn get(&self) -> Result<Arc<Database>, Error> {
        let mut open = self.lock();
        if let Some(database) = &*open {
            return Ok(Arc::clone(database));
        }
        let opened = File::options().read(true).write(true).open(&self.path);
        let failed = Doing::new("opening", &self.path, self.content);
        let opened = opened.map_err(|source| failed.io(source))?;
        let database = Arc::new(self.database(opened)?);
        *open = Some(Arc::clone(&database));
        Ok(database)
    }

    fn database(&self, opened: File) -> Result<Database, Error> {
        let failed = Doing::new("opening", &self.path, self.content);
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache);
        let created = builder.create_file(opened);
        created.map_err(|source| failed.database(source))
    }

    /// Runs what may fail an assertion of `redb`, the end of a database included.
    fn asserting<T>(&self, work: impl FnOnce() -> T) -> T {
        AT_WORK.set(Some((self.path.clone(), self.content)));
        let worked = work();
        AT_WORK.set(None);
        worked
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Database>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
