//! Asked again on every replay, and answered otherwise.

use std::net::TcpStream;

use workflow::{Failure, workflow};

mod ureq {
    pub(crate) fn get(_: &str) -> u32 {
        200
    }
}

#[workflow]
async fn checkout() -> Result<(), Failure> {
    let _shop = TcpStream::connect("127.0.0.1:80");
    let _page = ureq::get("http://127.0.0.1/");
    Ok(())
}

fn main() {}
