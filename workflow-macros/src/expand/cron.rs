//! A cron expression, as what it says.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::cron::Fields;

/// Input:  `cron!("30 2 * * *")`
/// Output: `$crate::__private::cron("30 2 * * *", [1, 1073741824, 4, ..], true)`
pub(crate) fn cron(text: &str, fields: &Fields, krate: &TokenStream) -> TokenStream {
    let Fields {
        seconds,
        minutes,
        hours,
        days,
        months,
        weekdays,
        nth,
        last,
        both,
    } = fields;
    let fields = quote!([#seconds, #minutes, #hours, #days, #months, #weekdays, #nth, #last]);
    quote!(#krate::__private::cron(#text, #fields, #both))
}
