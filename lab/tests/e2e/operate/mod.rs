//! Operation: logs, status, pings, diagnosis, faults, floods, leaks, reload, the service.

mod audit;
mod awaited;
mod clear;
mod crash;
mod dns;
mod doctor;
mod enrol;
mod explain;
mod faults;
mod flood;
mod kept;
mod leak;
mod metrics;
mod overview;
mod ping;
mod prepared;
mod readers;
mod reload;
mod relock;
mod restore;
mod service;
mod service_manager;
mod sight;
mod single;
mod sources;
mod words;
