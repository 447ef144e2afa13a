//! Zones and licensed nodes: grants, maps, licences, and the rights to read and to write.

mod grant;
mod inject;
mod layout;
mod level;
mod licence;
mod map;
mod split;
mod write;
mod zonemode;
