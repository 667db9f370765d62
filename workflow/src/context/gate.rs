//! `version!` and `removed!`: code that changes under live runs.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Cx, Park, opaque_debug};
use crate::replay::{Kind, ParkReason, Pinned, Site};

/// A version gate.
#[must_use = "futures do nothing unless polled"]
pub struct Version {
    cx: Cx,
    site: &'static Site,
    latest: u32,
    asked: bool,
}

opaque_debug!(Version);

/// Asks for the version that the run goes on with.
pub fn version(cx: &Cx, site: &'static Site, latest: u32) -> Version {
    Version {
        cx: cx.clone(),
        site,
        latest,
        asked: false,
    }
}

impl Future for Version {
    type Output = u32;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if std::mem::replace(&mut self.asked, true) {
            return Poll::Pending;
        }
        let (run, latest) = (self.cx.run(), self.latest);
        let pinned = run.replay().pin(self.cx.scope(), self.site, latest);
        match pinned {
            Pinned::Version(version) => return Poll::Ready(version),
            Pinned::Unsupported(version) => {
                let location = self.cx.location_of(self.site);
                run.park(Park {
                    reason: ParkReason::Version,
                    detail: format!(
                        "the run goes on with version {version} of `{location}`, and this code knows versions up to {latest}\n  \
                         ways out: deploy code that knows version {version}: the run then goes on by itself"
                    ),
                    location: Some(location),
                });
            }
            Pinned::Never => {}
        }
        Poll::Pending
    }
}

/// Says that a scope no longer has a site. What is recorded of it is covered.
pub fn removed(cx: &Cx, site: &'static Site, kind: Kind) {
    // When it contradicts the history the run has diverged, and nothing is issued any more.
    let _ = cx.run().replay().removed(cx.scope(), site, kind);
}
