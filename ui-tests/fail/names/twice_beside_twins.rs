//! A name that is used twice, in two ways: beside two that cannot both be there.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    #[cfg(unix)]
    sleep!(wait, "1s").await;
    #[cfg(not(unix))]
    sleep!(wait, "2s").await;
    sleep!(wait, "3s").await;
}

#[workflow]
async fn renew() {
    #[cfg(unix)]
    sleep!(wait, "1s").await;
    #[cfg(not(unix))]
    sleep!(wait, "2s").await;
    #[cfg(not(unix))]
    sleep!(wait, "3s").await;
}

fn main() {}
