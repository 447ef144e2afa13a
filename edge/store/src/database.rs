//! The file of a database, which is opened again after an error: `redb` refuses all further work
//! after one, and a disk that was full has room later.

use crate::error::{Content, Doing, Error};
use crate::{check_private, open_private};
use redb::{Builder, Database};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason that is told if `redb` fails an assertion, as it may do for a damaged file.
const INCONSISTENT: &str = "its content is inconsistent";

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
        let mut database = file.database(opened)?;
        let whole = catch_unwind(AssertUnwindSafe(|| database.check_integrity()));
        let whole = whole.map_err(|_| failed.damaged(INCONSISTENT.to_owned()))?;
        whole.map_err(|source| failed.database(source))?;
        *file.lock() = Some(database.into());
        Ok(file)
    }

    /// Works with the database. `doing` is what an error says that was attempted. After one, the
    /// next call opens the file again.
    pub(crate) fn with<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        let database = self.get()?;
        let failed = Doing::new(doing, &self.path, self.content);
        let worked = match catch_unwind(AssertUnwindSafe(|| work(&database))) {
            Ok(worked) => worked.map_err(|source| failed.storage(source)),
            Err(_) => Err(failed.damaged(INCONSISTENT.to_owned())),
        };
        if worked.is_err() {
            *self.lock() = None;
        }
        worked
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
        let created = catch_unwind(AssertUnwindSafe(|| builder.create_file(opened)));
        let created = created.map_err(|_| failed.damaged(INCONSISTENT.to_owned()))?;
        created.map_err(|source| failed.database(source))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Database>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
