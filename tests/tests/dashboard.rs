//! The dashboard as a browser is given it: its page, its files, and the API under it. What the page does is tried in a real browser, by
//! `.ci/dashboard`.
#![allow(clippy::unwrap_used, reason = "tests")]

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use tower::ServiceExt;
use workflow::http::{self, Policy};
use workflow::{Channel, Engine, Failure, MemoryStore, dashboard, recv, workflow};

static PAYMENT: Channel<u64> = Channel::new("payment");

#[workflow]
async fn bill() -> Result<u64, Failure> {
    recv!(paid, PAYMENT).await
}

async fn engine() -> Engine {
    let engine = Engine::builder().workflow(bill).store(MemoryStore::new());
    engine.build().await.unwrap()
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers.get(name).unwrap().to_str().unwrap()
    }
}

async fn ask(app: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn get(app: &Router, path: &str) -> Answer {
    ask(app, "GET", path, &[]).await
}

/// What the page names, as a browser that is at `at` finds it.
fn named(page: &Answer, at: &str) -> Vec<String> {
    let folder = &at[..=at.rfind('/').unwrap()];
    let names = page.text.split('"').filter(|text| text.contains("assets/"));
    names
        .map(|name| format!("{folder}{}", name.strip_prefix("./").unwrap()))
        .collect()
}

#[tokio::test]
async fn the_page_finds_its_files_wherever_it_is_served() {
    let engine = engine().await;
    let served = |app: Router| app;
    let nested =
        served(Router::new().nest_service("/ops/dashboard", dashboard::router(engine.clone())));
    let plain = served(Router::new().nest("/d", dashboard::router(engine.clone())));
    let root = served(dashboard::router(engine));
    for (app, at) in [
        (&nested, "/ops/dashboard"),
        (&nested, "/ops/dashboard/"),
        (&plain, "/d"),
        (&root, "/"),
    ] {
        let page = get(app, at).await;
        assert_eq!(page.status, 200, "{at}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let names = named(&page, at);
        assert!(names.len() > 20, "{at}: {names:?}");
        for name in &names {
            let file = get(app, name).await;
            assert_eq!(file.status, 200, "{name}");
            let kind = match name.rsplit('.').next().unwrap() {
                "js" => "text/javascript; charset=utf-8",
                "css" => "text/css; charset=utf-8",
                "svg" => "image/svg+xml",
                other => panic!("{other}"),
            };
            assert_eq!(file.header("content-type"), kind, "{name}");
            assert_eq!(file.header("x-content-type-options"), "nosniff");
            assert!(!file.text.is_empty());
        }
        // The scripts look for the API two folders above their own.
        let script = names.iter().find(|name| name.ends_with("/api.js")).unwrap();
        let api = script.rsplitn(4, '/').last().unwrap();
        let counts = get(app, &format!("{api}/api/counts")).await;
        assert_eq!(counts.status, 200, "{at}");
    }
}

#[tokio::test]
async fn nothing_from_elsewhere_and_nothing_inline_may_be_on_the_page() {
    let app: Router = dashboard::router(engine().await);
    let page = get(&app, "/").await;
    let policy = page.header(header::CONTENT_SECURITY_POLICY);
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    for lax in ["unsafe", "http:", "https:", "data:", "*"] {
        assert!(!policy.contains(lax), "{policy}");
    }
    for holds in [
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(holds), "{policy}");
    }
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    // What stands in it: no script but by name, no style, no handler, and no other host.
    assert!(!page.text.contains("<script>") && !page.text.contains("<style"));
    assert!(
        !page.text.contains("//") && !page.text.contains(" on"),
        "{}",
        page.text
    );
    for name in named(&page, "/") {
        let file = get(&app, &name).await.text;
        // Names of XML's languages are no addresses.
        let addresses = file.replace("http://www.w3.org/", "");
        assert!(
            !addresses.contains("http://") && !addresses.contains("https://"),
            "{name} names another host"
        );
        if !name.contains("/vendor/") {
            for unsafe_word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
            ] {
                assert!(!file.contains(unsafe_word), "{name}: {unsafe_word}");
            }
        }
    }
}

#[tokio::test]
async fn the_page_is_asked_for_each_time_and_its_files_are_kept() {
    let app: Router = dashboard::router(engine().await);
    let page = get(&app, "/").await;
    assert_eq!(page.header(header::CACHE_CONTROL), "no-cache");
    let tag = page.header(header::ETAG).to_owned();
    let again = ask(&app, "GET", "/", &[("if-none-match", &tag)]).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    assert_eq!(again.header(header::ETAG), tag);
    let other = ask(&app, "GET", "/", &[("if-none-match", "\"other\"")]).await;
    assert_eq!(other.status, 200);
    let names = named(&page, "/");
    let file = get(&app, &names[0]).await;
    assert_eq!(
        file.header(header::CACHE_CONTROL),
        "public, max-age=31536000, immutable"
    );
    // Those of another program are not there: no page is put together of two.
    let (_, name) = names[0].rsplit_once('/').unwrap();
    let old = get(&app, &format!("/assets/0123456789abcdef/{name}")).await;
    assert_eq!(old.status, 404);
    assert_eq!(old.header(header::CACHE_CONTROL), "no-store");
    for outside in ["/assets/x/../../Cargo.toml", "/assets/x/none.js", "/none"] {
        assert_eq!(get(&app, outside).await.status, 404, "{outside}");
    }
    let head = ask(&app, "HEAD", "/", &[]).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert_eq!(ask(&app, "POST", "/", &[]).await.status, 405);
}

#[tokio::test]
async fn given_an_engine_it_only_shows_and_given_a_policy_it_does_what_that_says() {
    let engine = engine().await;
    engine.start("b1", bill()).await.unwrap();
    let closed: Router = dashboard::router(engine.clone());
    let refused = ask(&closed, "POST", "/api/runs/b1/cancel", &[]).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let allowed = get(&closed, "/api/runs/b1/allowed").await;
    assert_eq!(
        allowed.text,
        r#"{"controls":[],"messages":[],"requests":[]}"#
    );

    let open = http::router(engine)
        .policy(Policy::open())
        .channel(&PAYMENT);
    let open: Router = dashboard::router(open);
    let allowed = get(&open, "/api/runs/b1/allowed").await;
    assert!(allowed.text.contains("cancel") && allowed.text.contains("payment"));
    let done = ask(&open, "POST", "/api/runs/b1/cancel", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text);
}

#[tokio::test]
async fn what_a_page_from_elsewhere_asks_for_is_not_done() {
    let engine = engine().await;
    let api = http::router(engine.clone()).policy(Policy::open());
    let app: Router = dashboard::router(api);
    let start = async |headers: &[(&str, &str)]| {
        let answer = ask(&app, "POST", "/api/workflows/bill/runs", headers).await;
        answer.status
    };
    let host = ("host", "shop.example:8080");
    for elsewhere in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[
            ("sec-fetch-site", "cross-site"),
            host,
            ("origin", "http://shop.example:8080"),
        ],
        &[host, ("origin", "http://evil.example")],
        &[host, ("origin", "http://shop.example:9090")],
        &[host, ("origin", "null")],
        &[("origin", "http://shop.example:8080")],
    ] {
        assert_eq!(start(elsewhere).await, 403, "{elsewhere:?}");
    }
    assert!(engine.census().await.unwrap().counts.is_empty());
    for here in [
        &[][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[host, ("origin", "https://shop.example:8080")],
    ] {
        assert_eq!(start(here).await, 202, "{here:?}");
    }
    // By HTTP/2 the host is in the address, and an older browser's page is of this origin all the same.
    let whole = ask(
        &app,
        "POST",
        "https://shop.example/api/workflows/bill/runs",
        &[("origin", "https://shop.example")],
    );
    assert_eq!(whole.await.status, 202);
    // It may look, as far as a browser lets it.
    let looks = ask(
        &app,
        "GET",
        "/api/runs",
        &[("sec-fetch-site", "cross-site")],
    )
    .await;
    assert_eq!(looks.status, 200);
    // An API that is not asked to is as it was: who has let a page from elsewhere in has a layer for that.
    let plain = http::router(engine).policy(Policy::open()).into_router();
    let elsewhere = [("sec-fetch-site", "cross-site")];
    let answer = ask(&plain, "POST", "/workflows/bill/runs", &elsewhere).await;
    assert_eq!(answer.status, 202);
}
