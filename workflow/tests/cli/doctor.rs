//! `workflow doctor`, on stores that are well and on one that is not.

use redb::{Database, TableDefinition};
use serde_json::json;

use crate::on;
use crate::shop::Shop;

#[test]
fn a_store_that_is_well_is_counted_and_its_parked_runs_have_ways_out() {
    let shop = Shop::new();
    let found = on(&shop.store(), &["doctor"]);
    assert_eq!((found.code, &*found.err), (0, ""));
    for part in [
        ": 6 runs, ",
        "\n         3  waiting\n",
        "\n         4  of order\n",
        "\nparked: `broken` (panicked)\n",
        "\n  - once that is mended: workflow resume broken\n",
        "\neverything in it can be read\n",
    ] {
        assert!(found.out.contains(part), "{part}\n{}", found.out);
    }
    let json = on(&shop.store(), &["doctor", "--json"]).json();
    assert_eq!(
        json["states"],
        json!({"completed": 1, "failed": 1, "parked": 1, "waiting": 3})
    );
    assert_eq!(
        json["workflows"],
        json!({"broken": 1, "order": 4, "trip": 1})
    );
    assert_eq!(
        (&json["problems"], &json["parked"][0]["reason"]),
        (&json!([]), &json!("panicked"))
    );
}

#[test]
fn a_row_that_cannot_be_read_is_told_and_the_rest_is_read() {
    const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("workflow.runs");
    let shop = Shop::new();
    let database = Database::open(shop.store()).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut runs = txn.open_table(RUNS).unwrap();
        // The third run's row.
        let third = redb::ReadableTable::iter(&runs)
            .unwrap()
            .nth(2)
            .unwrap()
            .unwrap()
            .0
            .value();
        runs.insert(third, &b"\x01nonsense"[..]).unwrap();
    }
    txn.commit().unwrap();
    drop(database);

    let found = on(&shop.store(), &["doctor", "--json"]);
    assert_eq!(found.code, 1);
    let json: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(json["runs"], 5);
    let problem = json["problems"][0]["problem"].as_str().unwrap();
    assert!(problem.starts_with("the row after `waits`: "), "{json:#}");
    let text = on(&shop.store(), &["doctor"]);
    assert!(
        text.out.contains("\nproblem: the row after `waits`: "),
        "{}",
        text.out
    );
    assert!(!text.out.contains("everything in it can be read"));
}
