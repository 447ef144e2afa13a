//! Zones and licensed nodes: grants, maps, licences, what a licensed node may read and write.

mod grant;
mod inject;
mod layout;
mod level;
mod licence;
mod map;
mod split;
mod write;
mod zonemode;
