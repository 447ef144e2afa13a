//! The log on standard error, with a level that can change at run time.

use config::LogLevel;
use std::io::IsTerminal;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, registry, reload};

/// The log's level.
pub struct Log(reload::Handle<LevelFilter, Registry>);

impl Log {
    /// Starts the log.
    pub fn open(level: LogLevel) -> Self {
        let (filter, handle) = reload::Layer::new(filter(level));
        let lines = fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false);
        registry().with(filter).with(lines).init();
        Self(handle)
    }

    /// Sets the level.
    pub fn set(&self, level: LogLevel) {
        if let Err(error) = self.0.modify(|filter| *filter = self::filter(level)) {
            tracing::error!("cannot change the log level: {error}");
        }
    }
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
