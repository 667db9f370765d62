//! The tests of this package are programs that must, or must not, compile.
