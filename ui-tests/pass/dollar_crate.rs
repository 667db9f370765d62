//! Workflows that come out of another library's macro, which reaches everything through `$crate`.

pub mod shop {
    pub use workflow as durable;

    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    pub struct Order(pub u32);

    #[macro_export]
    macro_rules! order_workflow {
        ($name:ident, $step:ident, $fragment:ident, $n:expr) => {
            #[$crate::shop::durable::step(crate = $crate::shop::durable)]
            async fn $step(order: &$crate::shop::Order) -> Result<u32, std::io::Error> {
                Ok(order.0)
            }

            #[$crate::shop::durable::fragment(crate = $crate::shop::durable)]
            async fn $fragment(
                order: &$crate::shop::Order,
            ) -> Result<u32, $crate::shop::durable::Failure> {
                $crate::shop::durable::sleep!(nap, "1s").await;
                $step(order).await
            }

            #[$crate::shop::durable::workflow(crate = $crate::shop::durable)]
            async fn $name(
                order: $crate::shop::Order,
                extra: Option<$crate::shop::Order>,
            ) -> Result<u32, $crate::shop::durable::Failure> {
                let mut total = $fragment(&order).await?;
                'again: for _ in 0..$n {
                    total += $step(&order).await?;
                }
                #[$crate::shop::durable::step(name = "second", retries = 1)]
                let second = $step(&order).await?;
                #[$crate::shop::durable::step(name = "third")]
                let third = { second + $n }?;
                let (a, b) = $crate::shop::durable::join!(
                    both,
                    a = $step(&order).await?,
                    b = extra.as_ref().map_or(0, |extra| extra.0)
                )
                .await?;
                Ok(total + second + third + a + b)
            }
        };
    }
}

order_workflow!(checkout, reserve, settle, 3);

fn main() {
    let _ = checkout(shop::Order(1), None);
    assert_eq!(checkout::NAME, "checkout");
}
