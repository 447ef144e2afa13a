//! Values that many owners share until one of them changes its own.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Most different values that [`Shares`] remembers.
const MOST: usize = 64;

/// A value that is shared with its clones. A change copies it first, so the others keep theirs.
#[derive(Debug, PartialEq, Eq)]
pub struct Shared<T: ?Sized>(Arc<T>);

/// Recent values, which later equal ones are replaced by.
#[derive(Debug)]
pub struct Shares<T: ?Sized>(Vec<Shared<T>>);

impl<T: ?Sized> Default for Shared<T>
where
    Arc<T>: Default,
{
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> From<Vec<T>> for Shared<[T]> {
    fn from(values: Vec<T>) -> Self {
        Self(values.into())
    }
}

impl<T> FromIterator<T> for Shared<[T]> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a Shared<[T]> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: ?Sized> Default for Shares<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: ?Sized + PartialEq> Shares<T> {
    /// Replaces a value by an earlier one that equals it, if there is one. The peers of a file
    /// differ in few ways, so a short list finds nearly all.
    pub fn share(&mut self, value: &mut Shared<T>) {
        if let Some(found) = self.0.iter().rev().find(|one| *one == value) {
            *value = found.clone();
            return;
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared<T: Clone + PartialEq>(shares: &mut Shares<T>, value: T) -> Shared<T> {
        let mut value = value.into();
        shares.share(&mut value);
        value
    }

    fn are_one<T>(a: &Shared<T>, b: &Shared<T>) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    #[test]
    fn equal_values_are_one_until_one_changes() {
        let mut shares = Shares::default();
        let [a, mut b, other] = ["a", "a", "b"].map(|text| shared(&mut shares, text.to_owned()));
        assert!(are_one(&a, &b) && !are_one(&a, &other));
        b.push('c');
        assert_eq!([a.as_str(), b.as_str()], ["a", "ac"]);
    }

    #[test]
    fn only_recent_values_are_remembered() {
        let mut shares = Shares::default();
        let first = shared(&mut shares, 0);
        let rest: Vec<_> = (1..=MOST).map(|value| shared(&mut shares, value)).collect();
        assert!(are_one(&rest[MOST - 1], &shared(&mut shares, MOST)));
        assert!(!are_one(&first, &shared(&mut shares, 0)));
        assert_eq!(shares.0.len(), MOST);
    }
}
