//! The programs of this package are its examples; see `Cargo.toml`.
