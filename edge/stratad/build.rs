//! Links a smaller program. Packed relative relocations (RELR), which glibc reads since 2.36, take
//! one bit or two each, and not 24 octets. Functions of the same code, such as those of maps whose
//! entries have one layout, are linked once: nothing compares their addresses. GNU's linker, which
//! links for musl, cannot do that.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
