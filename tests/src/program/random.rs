//! Numbers that a seed determines, or that are tried one after the other.

/// Where choices come from: a generator of pseudo-random numbers (`SplitMix64`), the same from the same seed everywhere; or a path
/// through all choices there are, see [`Random::exploring`].
#[derive(Debug, Clone)]
pub struct Random(Source);

#[derive(Debug, Clone)]
enum Source {
    Seed(u64),
    Path(Path),
}

#[derive(Debug, Clone)]
struct Path {
    /// What was chosen, of how many.
    choices: Vec<(u64, u64)>,
    /// How many of them were made again in this round.
    made: usize,
    /// How many times an exception may still be made in this round.
    exceptions: u32,
    most: u32,
    /// Whether it may come to other choices than it knows.
    leaves: bool,
}

impl Random {
    /// A generator that this seed determines.
    pub fn new(seed: u64) -> Self {
        Self(Source::Seed(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    /// Every choice in turn. A round goes from the first choice to the last; [`next_path`](Self::next_path) then changes the last one
    /// that has an alternative left. What happens so many times in a hundred, such as a store that fails, happens at most
    /// `exceptions` times a round, anywhere.
    pub fn exploring(exceptions: u32) -> Self {
        Self(Source::Path(Path {
            choices: Vec::new(),
            made: 0,
            exceptions,
            most: exceptions,
            leaves: false,
        }))
    }

    /// Whether it tries all choices.
    pub fn explores(&self) -> bool {
        matches!(self.0, Source::Path(_))
    }

    /// Begins the next round; false when there is none.
    pub fn next_path(&mut self) -> bool {
        let Source::Path(path) = &mut self.0 else {
            return true;
        };
        path.choices.truncate(path.made);
        (path.made, path.exceptions) = (0, path.most);
        while let Some((chosen, of)) = path.choices.pop() {
            if chosen + 1 < of {
                path.choices.push((chosen + 1, of));
                return true;
            }
        }
        false
    }

    /// The same round again, as far as it leads: where there are other choices than there were, the first one is made from then on.
    #[must_use]
    pub fn again(&self) -> Self {
        let mut again = self.clone();
        if let Source::Path(path) = &mut again.0 {
            (path.made, path.exceptions, path.leaves) = (0, path.most, true);
        }
        again
    }

    /// The next number. It is no choice: on a path it is always the same.
    pub fn number(&mut self) -> u64 {
        let Source::Seed(seed) = &mut self.0 else {
            return 0;
        };
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        match &mut self.0 {
            Source::Seed(_) => self.number() % end,
            Source::Path(path) => path.choose(end),
        }
    }

    /// An index into something of this length, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// A number from `from` to `to`, both included.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, times: u64) -> bool {
        match &mut self.0 {
            Source::Seed(_) => self.below(100) < times,
            Source::Path(path) => {
                let exception = path.exceptions > 0 && path.choose(2) == 1;
                path.exceptions -= u32::from(exception);
                exception
            }
        }
    }

    /// One of these, which are not none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// How many times something stands among the choices so that it is likelier than others: once where all are tried.
    pub fn times(&self, likelier: u64) -> u64 {
        if self.explores() { 1 } else { likelier }
    }
}

impl Path {
    fn choose(&mut self, of: u64) -> u64 {
        let chosen = match self.choices.get(self.made) {
            Some(&(chosen, before)) if before == of => chosen,
            known => {
                assert!(
                    known.is_none() || self.leaves,
                    "the same choices before lead to others after"
                );
                self.choices.truncate(self.made);
                self.choices.push((0, of));
                0
            }
        };
        self.made += 1;
        chosen
    }
}
