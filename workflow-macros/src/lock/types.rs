//! The shapes of recorded types, as far as the source shows them, and which changes of them still read what was recorded.
//!
//! A payload is read by what `Deserialize` makes of a type, so that is what is compared: fields by the names they have in
//! the payload, whether they may be missing, variants by name. Types that are not defined in the package are known by name
//! only, and equal only to themselves.

use std::fmt::Write;

/// A type of the package that something recorded is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeDef {
    pub(crate) name: String,
    /// The attributes on the type that decide how it is read: `rename_all="camelCase"`.
    pub(crate) serde: Vec<String>,
    pub(crate) shape: Shape,
    /// In the lock, from 1; 0 in the source.
    pub(crate) line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Struct(Vec<Member>),
    Tuple(Vec<String>),
    Unit,
    Enum(Vec<Variant>),
    Alias(String),
}

/// A field, by its name in the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) ty: String,
    /// A payload may leave it out.
    pub(crate) is_optional: bool,
    /// Other names under which it is read. Not written to the lock: they say what may be read, not what was recorded.
    pub(crate) aliases: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) aliases: Vec<String>,
}

/// A name in a payload; in quotes where it is not like one in Rust.
fn print_name(name: &str) -> String {
    if !name.is_empty() && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-')
}

/// Reads a name from the beginning of a text; gives what follows.
fn read_name(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        let end = closing_quote(text)?;
        let name: syn::LitStr = syn::parse_str(&text[..=end]).ok()?;
        return Some((name.value(), &text[end + 1..]));
    }
    let end = text.find(|char| !is_plain(char)).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

/// Where the `"` stands that ends the text which begins here with one.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().skip(1).find_map(|(at, char)| {
        let ends = char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

impl Member {
    /// `note?: String`
    pub(crate) fn print(&self) -> String {
        let mark = if self.is_optional { "?" } else { "" };
        format!("{}{mark}: {}", print_name(&self.name), self.ty)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let (name, rest) = read_name(text.trim())?;
        let (rest, is_optional) = match rest.strip_prefix('?') {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let ty = rest.strip_prefix(": ")?;
        Some(Self {
            name,
            ty: ty.to_owned(),
            is_optional,
            aliases: Vec::new(),
        })
    }
}

impl Variant {
    /// `Paid(Money)`, `Failed { code: u32 }`, `Late`
    pub(crate) fn print(&self) -> String {
        let mut text = print_name(&self.name);
        match &self.shape {
            Shape::Tuple(types) => {
                let _ = write!(text, "({})", types.join(", "));
            }
            Shape::Struct(members) => {
                let members: Vec<_> = members.iter().map(Member::print).collect();
                let _ = write!(text, " {{ {} }}", members.join(", "));
            }
            Shape::Unit | Shape::Enum(_) | Shape::Alias(_) => {}
        }
        text
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let (name, rest) = read_name(text.trim())?;
        let shape = if let Some(members) = rest.strip_prefix(" {") {
            let members = split(members.strip_suffix('}')?.trim());
            let members = members.iter().map(|member| Member::read(member));
            Shape::Struct(members.collect::<Option<_>>()?)
        } else if let Some(types) = rest.strip_prefix('(') {
            Shape::Tuple(split(types.strip_suffix(')')?))
        } else if rest.is_empty() {
            Shape::Unit
        } else {
            return None;
        };
        Some(Self {
            name,
            shape,
            aliases: Vec::new(),
        })
    }
}

/// What stands between the commas of a list that are in no brackets.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut depth, mut list, mut item) = (0_usize, Vec::new(), String::new());
    let mut before = ' ';
    let mut quoted_to = None;
    for (at, char) in text.char_indices() {
        if quoted_to.is_some_and(|end| at <= end) {
            item.push(char);
            continue;
        }
        match char {
            '"' => quoted_to = closing_quote(&text[at..]).map(|end| at + end),
            '<' | '(' | '[' | '{' => depth += 1,
            // Not that of a `->`.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                list.push(std::mem::take(&mut item));
                before = char;
                continue;
            }
            _ => {}
        }
        before = char;
        item.push(char);
    }
    list.push(item);
    list.into_iter()
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

/// The names in a type's text.
pub(crate) fn words_in(text: &str, words: &mut Vec<String>) {
    let found = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    words.extend(found.filter(|word| !word.is_empty()).map(str::to_owned));
}

/// Where the `)` of a parenthesis that is open already stands.
pub(crate) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The types by name of the lock and of the code, for comparing.
pub(crate) struct Tables<'a> {
    pub(crate) locked: &'a [TypeDef],
    pub(crate) found: &'a [TypeDef],
}

/// A type as it was and as it is.
type Pair = (String, String);

impl Tables<'_> {
    /// Why what was recorded as `locked` cannot be read as `found`; nothing if it can, as far as can be seen.
    pub(crate) fn broken(&self, locked: &str, found: &str) -> Option<String> {
        self.compare(locked, found, &mut Vec::new())
    }

    fn compare(&self, locked: &str, found: &str, seen: &mut Vec<Pair>) -> Option<String> {
        let (old, new) = (Ty::read(locked), Ty::read(found));
        self.types(&old, &new, seen)
    }

    fn types(&self, old: &Ty, new: &Ty, seen: &mut Vec<Pair>) -> Option<String> {
        let (old, new) = (old.unwrapped(), new.unwrapped());
        let pair = (old.text(), new.text());
        if seen.contains(&pair) {
            return None;
        }
        seen.push(pair);
        let (old_def, new_def) = (define(self.locked, old), define(self.found, new));
        if let Some(Shape::Alias(target)) = old_def.map(|defined| &defined.shape) {
            return self.types(&Ty::read(target), new, seen);
        }
        if let Some(Shape::Alias(target)) = new_def.map(|defined| &defined.shape) {
            return self.types(old, &Ty::read(target), seen);
        }
        match (old_def, new_def) {
            (Some(old_def), Some(new_def)) => return self.defs(old_def, new_def, seen),
            // A struct of one unnamed field is recorded as that field.
            (Some(defined), None) => {
                if let Shape::Tuple(types) = &defined.shape
                    && let [only] = types.as_slice()
                    && old.head != new.head
                {
                    return self.types(&Ty::read(only), new, seen);
                }
            }
            (None, Some(defined)) => {
                if let Shape::Tuple(types) = &defined.shape
                    && let [only] = types.as_slice()
                    && old.head != new.head
                {
                    return self.types(old, &Ty::read(only), seen);
                }
            }
            (None, None) => {}
        }
        if new.head == "Option" && old.head != "Option" {
            return match new.args.first() {
                Some(inner) => self.types(old, inner, seen),
                None => None,
            };
        }
        // A run that nobody waits for gives nothing that is read.
        if old.is_open() || new.is_open() || new.head == DETACHED {
            return None;
        }
        // Of what is made by `Wrapper::default()` the arguments are not written.
        let is_bare = old.args.is_empty() || new.args.is_empty();
        if old.head == new.head && is_bare && (old_def, new_def) == (None, None) {
            return None;
        }
        let same = old.head == new.head
            || widens(&old.head, &new.head)
            || is_list(&old.head) && is_list(&new.head)
            || is_map(&old.head) && is_map(&new.head);
        if !same || old.args.len() != new.args.len() {
            return Some(format!("`{}` became `{}`", old.text(), new.text()));
        }
        let mut pairs = old.args.iter().zip(&new.args);
        pairs.find_map(|(old, new)| self.types(old, new, seen))
    }

    fn defs(&self, old: &TypeDef, new: &TypeDef, seen: &mut Vec<Pair>) -> Option<String> {
        let name = &old.name;
        if old.serde != new.serde {
            let shown = |serde: &[String]| match serde {
                [] => "nothing".to_owned(),
                serde => format!("`#[serde({})]`", serde.join(", ")),
            };
            return Some(format!(
                "`{name}` had {} on it, and now has {}",
                shown(&old.serde),
                shown(&new.serde)
            ));
        }
        match (&old.shape, &new.shape) {
            (Shape::Enum(old), Shape::Enum(new)) => old.iter().find_map(|old| {
                let found = new
                    .iter()
                    .find(|new| new.name == old.name || new.aliases.contains(&old.name));
                let Some(found) = found else {
                    return Some(format!("`{name}` has no variant `{}` any more", old.name));
                };
                let of = format!("{name}::{}", old.name);
                self.shapes(&of, &old.shape, &found.shape, seen)
            }),
            (old, new) => self.shapes(name, old, new, seen),
        }
    }

    fn shapes(&self, of: &str, old: &Shape, new: &Shape, seen: &mut Vec<Pair>) -> Option<String> {
        match (old, new) {
            (Shape::Unit, Shape::Unit) => None,
            (Shape::Tuple(old), Shape::Tuple(new)) if old.len() == new.len() => {
                let mut pairs = old.iter().zip(new);
                pairs.find_map(|(old, new)| {
                    Some(format!("in `{of}`: {}", self.compare(old, new, seen)?))
                })
            }
            (Shape::Struct(old), Shape::Struct(new)) => self.members(of, old, new, seen),
            _ => Some(format!("`{of}` has another shape")),
        }
    }

    fn members(
        &self,
        of: &str,
        old: &[Member],
        new: &[Member],
        seen: &mut Vec<Pair>,
    ) -> Option<String> {
        for member in new {
            let before = old
                .iter()
                .find(|old| old.name == member.name || member.aliases.contains(&old.name));
            let name = &member.name;
            match before {
                None if !member.is_optional => {
                    return Some(format!(
                        "`{of}` has a new field `{name}`, which no recorded value has"
                    ));
                }
                None => {
                    // It reads as if it had been left out, and what was recorded is lost.
                    let is_gone = |old: &&Member| {
                        new.iter()
                            .all(|new| new.name != old.name && !new.aliases.contains(&old.name))
                    };
                    let mut gone = old.iter().filter(is_gone);
                    if let Some(before) = gone.find(|old| old.ty == member.ty) {
                        let before = &before.name;
                        return Some(format!(
                            "`{of}` has `{name}` where it had `{before}`, under which it is recorded"
                        ));
                    }
                }
                Some(before) if before.is_optional && !member.is_optional => {
                    return Some(format!(
                        "the field `{name}` of `{of}` may be missing in recorded values"
                    ));
                }
                Some(before) => {
                    if let Some(why) = self.compare(&before.ty, &member.ty, seen) {
                        return Some(format!("the field `{name}` of `{of}`: {why}"));
                    }
                }
            }
        }
        None
    }
}

fn define<'a>(table: &'a [TypeDef], ty: &Ty) -> Option<&'a TypeDef> {
    let is_name = ty.args.is_empty();
    table
        .iter()
        .find(|defined| is_name && defined.name == ty.head)
}

/// A type taken apart: `Vec<Item>` is `Vec` of `Item`. Paths are their last word: where a type stands may change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ty {
    head: String,
    args: Vec<Ty>,
}

impl Ty {
    fn read(text: &str) -> Self {
        let text = text.trim();
        // Read by a function: equal to what is read by the same.
        for by in [" with=", " deserialize_with="] {
            if let Some((ty, function)) = text.split_once(by) {
                return Self {
                    head: format!("{}{by}{function}", Self::read(ty).text()),
                    args: Vec::new(),
                };
            }
        }
        if let Some(inner) = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
        {
            let args = split(inner);
            return match args.as_slice() {
                [only] if !inner.trim_end().ends_with(',') => Self::read(only),
                _ => Self::of("()", inner),
            };
        }
        if let Some(inner) = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            return match inner.rsplit_once(';') {
                Some((item, many)) => Self {
                    head: format!("[;{}]", many.trim()),
                    args: vec![Self::read(item)],
                },
                None => Self::of("[]", inner),
            };
        }
        match text.split_once('<') {
            Some((head, args)) => Self::of(last(head), args.strip_suffix('>').unwrap_or(args)),
            None => Self {
                // A `Box<str>` and a `Cow<str>` are recorded as a `String`.
                head: match last(text) {
                    "str" => "String".to_owned(),
                    head => head.to_owned(),
                },
                args: Vec::new(),
            },
        }
    }

    fn of(head: &str, args: &str) -> Self {
        let args = split(args);
        Self {
            head: head.to_owned(),
            // A lifetime is not recorded.
            args: args
                .iter()
                .filter(|arg| !arg.starts_with('\''))
                .map(|arg| Self::read(arg))
                .collect(),
        }
    }

    /// Without what is not in the payload: a box is what is in it.
    fn unwrapped(&self) -> &Self {
        match (self.head.as_str(), self.args.as_slice()) {
            ("Box" | "Arc" | "Rc" | "Cow", [inner]) => inner.unwrapped(),
            _ => self,
        }
    }

    /// Nothing is said of it.
    fn is_open(&self) -> bool {
        self.head == "_"
    }

    fn text(&self) -> String {
        let args: Vec<_> = self.args.iter().map(Self::text).collect();
        let args = args.join(", ");
        match self.head.as_str() {
            "()" => format!("({args})"),
            "[]" => format!("[{args}]"),
            head if head.starts_with("[;") => {
                format!("[{args}; {}", head.trim_start_matches("[;"))
            }
            head if args.is_empty() => head.to_owned(),
            head => format!("{head}<{args}>"),
        }
    }
}

/// What a child run gives that is not waited for.
pub(crate) const DETACHED: &str = "detached";

/// Whether a type is an `Option`, as `Deserialize` sees it.
pub(crate) fn is_option(ty: &str) -> bool {
    Ty::read(ty).head == "Option"
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path).trim()
}

/// Whether every number of the one type is one of the other, and written the same.
fn widens(old: &str, new: &str) -> bool {
    let bits = |text: &str| match text {
        "usize" | "isize" => Some(64),
        text => text.parse::<u32>().ok(),
    };
    let signed = |ty: &str| {
        let (sign, rest) = ty.split_at_checked(1)?;
        match sign {
            "i" | "u" => Some((
                sign == "i",
                if ty.ends_with("size") {
                    64
                } else {
                    bits(rest)?
                },
            )),
            _ => None,
        }
    };
    match (signed(old), signed(new)) {
        (Some((old_signed, old_bits)), Some((new_signed, new_bits))) => {
            old_signed == new_signed && new_bits >= old_bits
                || !old_signed && new_signed && new_bits > old_bits
        }
        _ => (old, new) == ("f32", "f64"),
    }
}

fn is_list(head: &str) -> bool {
    matches!(
        head,
        "Vec" | "VecDeque" | "BTreeSet" | "HashSet" | "IndexSet" | "LinkedList" | "[]"
    )
}

fn is_map(head: &str) -> bool {
    matches!(head, "BTreeMap" | "HashMap" | "IndexMap")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::text::Lock;

    fn broken(locked: &str, found: &str, ty: &str) -> Option<String> {
        let read = |text: &str| Lock::parse(&format!("version 1\n{text}")).unwrap().types;
        let (locked, found) = (read(locked), read(found));
        let tables = Tables {
            locked: &locked,
            found: &found,
        };
        tables.broken(ty, ty)
    }

    #[test]
    fn what_still_reads_every_recorded_value_is_compatible() {
        let order = "type Order\n  id: String\n  lines: Vec<Line>\ntype Line\n  count: u32\n";
        for now in [
            // the same, a field more that may be missing, a field less, another order
            order,
            "type Order\n  id: String\n  note?: Option<String>\n  lines: Vec<Line>\ntype Line\n  count: u32\n",
            "type Order\n  lines: Vec<Line>\ntype Line\n  count: u32\n",
            "type Order\n  lines: Vec<Line>\n  id: String\ntype Line\n  count: u32\n",
            // wider numbers, an option around, a box, another list
            "type Order\n  id: Option<String>\n  lines: VecDeque<Box<Line>>\ntype Line\n  count: i64\n",
            // another name, and a newtype around
            "type Order\n  id: Id\n  lines: Vec<Row>\ntype Id(String)\ntype Row\n  count: u32\n",
            "type Order\n  id: Id\n  lines: Vec<crate::other::Line>\ntype Id = String\ntype Line\n  count: u32\n",
        ] {
            assert_eq!(broken(order, now, "Order"), None, "{now}");
        }
        let event = "type Event\n  | Paid(u32)\n  | Late\n";
        for now in [
            "type Event\n  | Late\n  | Refunded { at: u64 }\n  | Paid(u64)\n",
            event,
        ] {
            assert_eq!(broken(event, now, "Vec<Event>"), None, "{now}");
        }
    }

    #[test]
    fn what_some_recorded_value_does_not_fit_is_told() {
        let order = "type Order\n  id: String\n  note?: String\n  lines: Vec<Line>\ntype Line\n  count: u32\n";
        for (now, why) in [
            (
                order.replace("u32", "u16"),
                "the field `lines` of `Order`: the field `count` of `Line`: `u32` became `u16`",
            ),
            (
                order.replace("id:", "key:"),
                "`Order` has a new field `key`, which no recorded value has",
            ),
            (
                order.replace("note?", "note"),
                "the field `note` of `Order` may be missing in recorded values",
            ),
            (
                order.replace("Vec<Line>", "Line"),
                "the field `lines` of `Order`: `Vec<Line>` became `Line`",
            ),
            (
                order.replace("type Order", "type Order serde(rename_all=\"camelCase\")"),
                "`Order` had nothing on it, and now has `#[serde(rename_all=\"camelCase\")]`",
            ),
            (
                order.replace("note?", "remark?"),
                "`Order` has `remark` where it had `note`, under which it is recorded",
            ),
            (
                "type Order(String)\n".to_owned(),
                "`Order` has another shape",
            ),
        ] {
            assert_eq!(broken(order, &now, "Order").as_deref(), Some(why));
        }
        let event = "type Event\n  | Paid(u32)\n  | Late\n";
        for (now, why) in [
            (
                "type Event\n  | Paid(u32)\n",
                "`Event` has no variant `Late` any more",
            ),
            (
                "type Event\n  | Paid(String)\n  | Late\n",
                "in `Event::Paid`: `u32` became `String`",
            ),
            (
                "type Event\n  | Paid\n  | Late\n",
                "`Event::Paid` has another shape",
            ),
        ] {
            assert_eq!(broken(event, now, "Event").as_deref(), Some(why));
        }
    }

    #[test]
    fn a_type_that_holds_itself_is_compared_once() {
        let tree = "type Tree\n  value: u32\n  under: Vec<Tree>\n";
        assert_eq!(broken(tree, tree, "Tree"), None);
        let now = tree.replace("u32", "bool");
        assert_eq!(
            broken(tree, &now, "Tree").as_deref(),
            Some("the field `value` of `Tree`: `u32` became `bool`")
        );
    }
}
