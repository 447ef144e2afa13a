//! The pages for users, followed as a reader would: each block runs on the host that the page
//! names, and prints what the page shows.

mod configuration;
mod lesson;
mod network;
mod operate;
mod output;
mod tutorial;
