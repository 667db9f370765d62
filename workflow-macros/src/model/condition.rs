//! What a condition says of the versions that it looks at: which arm a run takes that got an older one.

use syn::{BinOp, Expr, Lit, Pat, RangeLimits, UnOp};

use crate::syntax::peel;

/// A condition, as far as versions decide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The version of this path is in this range, both ends in it.
    Within(String, u32, u32),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    /// Something else decides: it may hold, and may not.
    Free,
    /// It looks at a version in a way that is not understood here.
    Unread,
}

/// What something is bound to that a version decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    /// The number itself, of the version of this path.
    Number(String),
    Truth(Condition),
}

impl Condition {
    pub(crate) fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Whether it may hold in a run that got this number. Of what is not understood that is not said.
    pub(crate) fn may_hold(&self, path: &str, number: u32) -> bool {
        match self {
            Self::Within(of, from, to) => of != path || (*from..=*to).contains(&number),
            Self::Not(condition) => condition.may_fail(path, number),
            Self::All(list) => list.iter().all(|one| one.may_hold(path, number)),
            Self::Any(list) => list.iter().any(|one| one.may_hold(path, number)),
            Self::Free => true,
            Self::Unread => false,
        }
    }

    fn may_fail(&self, path: &str, number: u32) -> bool {
        match self {
            Self::Within(of, from, to) => of != path || !(*from..=*to).contains(&number),
            Self::Not(condition) => condition.may_hold(path, number),
            Self::All(list) => list.iter().any(|one| one.may_fail(path, number)),
            Self::Any(list) => list.iter().all(|one| one.may_fail(path, number)),
            Self::Free => true,
            Self::Unread => false,
        }
    }

    /// The numbers at which it may change.
    fn numbers(&self, numbers: &mut Vec<u32>) {
        match self {
            Self::Within(_, from, to) => {
                numbers.extend([from.saturating_sub(1), *from, *to, to.saturating_add(1)]);
            }
            Self::Not(condition) => condition.numbers(numbers),
            Self::All(list) | Self::Any(list) => list.iter().for_each(|one| one.numbers(numbers)),
            Self::Free | Self::Unread => {}
        }
    }

    /// Whether a run may come here that got one of the numbers up to `last`.
    pub(crate) fn lets_in(&self, path: &str, last: u32) -> bool {
        let mut numbers = vec![1, last];
        self.numbers(&mut numbers);
        let mut old = numbers
            .into_iter()
            .filter(|number| (1..=last).contains(number));
        old.any(|number| self.may_hold(path, number))
    }
}

/// Reads conditions: `decided` says what an expression is, if a version decided it; `looks` whether it looks at one at all.
pub(super) struct Reader<'a> {
    pub(super) decided: &'a dyn Fn(&Expr) -> Option<Decided>,
    pub(super) looks: &'a dyn Fn(&Expr) -> bool,
}

impl Reader<'_> {
    pub(super) fn condition(&self, expr: &Expr) -> Condition {
        let expr = peel(expr);
        if let Some(Decided::Truth(condition)) = (self.decided)(expr) {
            return condition;
        }
        match expr {
            Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) => self.condition(&of.expr).not(),
            Expr::Binary(of) => match of.op {
                BinOp::And(_) => {
                    Condition::All(vec![self.condition(&of.left), self.condition(&of.right)])
                }
                BinOp::Or(_) => {
                    Condition::Any(vec![self.condition(&of.left), self.condition(&of.right)])
                }
                _ => self.compared(of).unwrap_or_else(|| self.unread(expr)),
            },
            _ => self.unread(expr),
        }
    }

    fn unread(&self, expr: &Expr) -> Condition {
        if (self.looks)(expr) {
            Condition::Unread
        } else {
            Condition::Free
        }
    }

    fn compared(&self, of: &syn::ExprBinary) -> Option<Condition> {
        let (path, number, is_turned) = match (self.number(&of.left), self.number(&of.right)) {
            (Some(path), None) => (path, literal(&of.right)?, false),
            (None, Some(path)) => (path, literal(&of.left)?, true),
            _ => return None,
        };
        let within = |from, to| Condition::Within(path.clone(), from, to);
        let less = || match number {
            0 => within(1, 0),
            number => within(0, number - 1),
        };
        Some(match (of.op, is_turned) {
            (BinOp::Eq(_), _) => within(number, number),
            (BinOp::Ne(_), _) => within(number, number).not(),
            (BinOp::Ge(_), false) | (BinOp::Le(_), true) => less().not(),
            (BinOp::Lt(_), false) | (BinOp::Gt(_), true) => less(),
            (BinOp::Le(_), false) | (BinOp::Ge(_), true) => within(0, number),
            (BinOp::Gt(_), false) | (BinOp::Lt(_), true) => within(0, number).not(),
            _ => return None,
        })
    }

    fn number(&self, expr: &Expr) -> Option<String> {
        match (self.decided)(peel(expr))? {
            Decided::Number(path) => Some(path),
            Decided::Truth(_) => None,
        }
    }

    /// When each arm of a `match` is taken.
    pub(super) fn arms(&self, of: &syn::ExprMatch) -> Vec<Condition> {
        let mut before: Vec<Condition> = Vec::new();
        let arms = of.arms.iter().map(|arm| {
            let mut all: Vec<_> = before.iter().map(|before| before.clone().not()).collect();
            if let Pat::Guard(guarded) = &arm.pat {
                // What it keeps out goes on.
                all.push(self.pattern(&of.expr, &guarded.pat));
                all.push(self.condition(&guarded.guard));
            } else {
                let fits = self.pattern(&of.expr, &arm.pat);
                all.push(fits.clone());
                before.push(fits);
            }
            Condition::All(all)
        });
        arms.collect()
    }

    fn pattern(&self, of: &Expr, pat: &Pat) -> Condition {
        let unread = || self.unread(of);
        match (pat, (self.decided)(peel(of))) {
            (Pat::Wild(_), _) => Condition::All(Vec::new()),
            (Pat::Ident(named), _) if named.subpat.is_none() => Condition::All(Vec::new()),
            (Pat::Paren(paren), _) => self.pattern(of, &paren.pat),
            (Pat::Or(list), _) => {
                let cases = list.cases.iter().map(|pat| self.pattern(of, pat));
                Condition::Any(cases.collect())
            }
            (Pat::Lit(value), Some(Decided::Number(path))) => match int(&value.lit) {
                Some(number) => Condition::Within(path, number, number),
                None => unread(),
            },
            (Pat::Range(range), Some(Decided::Number(path))) => {
                let from = range.start.as_deref().map_or(Some(0), literal);
                let to = range.end.as_deref().map_or(Some(u32::MAX), literal);
                match (from, to, &range.limits) {
                    (Some(from), Some(to), RangeLimits::HalfOpen(_)) if range.end.is_some() => {
                        match to.checked_sub(1) {
                            Some(to) => Condition::Within(path, from, to),
                            None => Condition::Within(path, 1, 0),
                        }
                    }
                    (Some(from), Some(to), _) => Condition::Within(path, from, to),
                    _ => unread(),
                }
            }
            (Pat::Lit(value), Some(Decided::Truth(condition))) => match &value.lit {
                Lit::Bool(truth) if truth.value => condition,
                Lit::Bool(_) => condition.not(),
                _ => unread(),
            },
            _ => unread(),
        }
    }
}

fn literal(expr: &Expr) -> Option<u32> {
    match peel(expr) {
        Expr::Lit(value) => int(&value.lit),
        _ => None,
    }
}

fn int(literal: &Lit) -> Option<u32> {
    match literal {
        Lit::Int(number) => number.base10_parse().ok(),
        _ => None,
    }
}
