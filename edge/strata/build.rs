//! Links the program with packed relative relocations (RELR), which glibc reads since 2.36. Without
//! them, a relocation takes 24 octets and not one bit or two.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
