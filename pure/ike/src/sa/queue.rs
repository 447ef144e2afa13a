//! Requests of an established IKE SA: queued and outstanding ones.
//!
//! Only requests that may arrive and be answered in any order are outstanding together. Each
//! [`Task`] therefore has a [`Subject`]. There is one outstanding task per subject, in the order of
//! the requests, and a task about the whole SA is outstanding alone. No later task overtakes that
//! one, which would otherwise wait forever.

use super::task::Task;
use model::{ChildSaId, CsaId};
use std::collections::VecDeque;

/// The subject of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The IKE SA as a whole: its keys, its path or its end.
    Whole,
    /// A child SA.
    Child(ChildSaId),
    /// A child SA that does not exist yet. The existing ones determine its identity when it is
    /// requested.
    NewChild,
    /// The keys of a composite SA, for a licensed node.
    Csa(CsaId),
    /// Our neighbours.
    Neighbours,
    /// No subject: the task excludes no other.
    Nothing,
}

impl Subject {
    /// Returns true if two tasks must not be outstanding together.
    fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole, _) | (_, Self::Whole) => true,
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Child(_) | Self::NewChild | Self::Csa(_) | Self::Neighbours, _) => self == other,
        }
    }
}

/// Tasks, in the order of the requests.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Task>,
    /// Outstanding tasks with their message IDs.
    running: Vec<(u32, Task)>,
}

impl Queue {
    pub(super) fn push(&mut self, task: Task) {
        self.waiting.push_back(task);
    }

    /// Queues a task ahead of all others.
    pub(super) fn push_first(&mut self, task: Task) {
        self.waiting.push_front(task);
    }

    /// Removes all queued tasks that match.
    pub(super) fn withdraw(&mut self, such: impl Fn(&Task) -> bool) {
        self.waiting.retain(|task| !such(task));
    }

    /// Removes and returns the first task that may be outstanding together with the current ones.
    pub(super) fn pop(&mut self) -> Option<Task> {
        let mut subjects = self.waiting.iter().map(Task::subject).enumerate();
        let at =
            subjects.find(|(_, subject)| *subject == Subject::Whole || !self.is_excluded(*subject));
        let (at, subject) = at?;
        match self.is_excluded(subject) {
            true => None,
            false => self.waiting.remove(at),
        }
    }

    fn is_excluded(&self, subject: Subject) -> bool {
        self.runs(|running| running.subject().excludes(subject))
    }

    /// Records a task as outstanding in the request with this message ID.
    pub(super) fn run(&mut self, id: u32, task: Task) {
        self.running.reserve_exact(1);
        self.running.push((id, task));
    }

    /// Returns the task whose request with this message ID was answered.
    pub(super) fn finish(&mut self, id: u32) -> Option<Task> {
        let at = self
            .running
            .iter()
            .position(|(running, _)| *running == id)?;
        let (_, task) = self.running.remove(at);
        if self.running.is_empty() {
            // An SA is nearly always idle, and then uses no memory here.
            self.running = Vec::new();
        }
        Some(task)
    }

    /// Drops the outstanding tasks, as their keys are gone, and the queued tasks that are stale.
    pub(super) fn reset(&mut self, stale: impl Fn(&Task) -> bool) {
        self.running = Vec::new();
        self.waiting.retain(|task| !stale(task));
    }

    /// Returns true if a matching task is outstanding.
    pub(super) fn runs(&self, such: impl Fn(&Task) -> bool) -> bool {
        self.running().any(such)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|(_, task)| task)
    }

    pub(super) fn running_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.running.iter_mut().map(|(_, task)| task)
    }

    /// Returns all queued and outstanding tasks.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.waiting.iter().chain(self.running())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spi;

    fn delete(child: u64) -> Task {
        Task::DeleteChild(Some(ChildSaId(child)), Spi(child as u32))
    }

    fn queue(tasks: impl IntoIterator<Item = Task>) -> Queue {
        let mut queue = Queue::default();
        tasks.into_iter().for_each(|task| queue.push(task));
        queue
    }

    /// Runs all tasks that may run, and returns their subjects.
    fn run(queue: &mut Queue) -> Vec<Subject> {
        let mut id = 100 + queue.running.len() as u32;
        let ran = std::iter::from_fn(|| {
            let task = queue.pop()?;
            let subject = task.subject();
            queue.run(id, task);
            id += 1;
            Some(subject)
        });
        ran.collect()
    }

    #[test]
    fn tasks_about_different_things_are_under_way_together() {
        let revokes = [1, 2].map(|csa| Task::Revoke(CsaId(csa)));
        let mut queue = queue(
            revokes
                .into_iter()
                .chain([delete(1), delete(2), Task::Liveness]),
        );
        assert_eq!(run(&mut queue).len(), 5);
    }

    #[test]
    fn of_one_subject_there_is_one_task_at_a_time_in_the_order_of_asking() {
        let mut queue = queue([delete(1), delete(1), delete(2), Task::Revoke(CsaId(1))]);
        let (one, two) = (ChildSaId(1), ChildSaId(2));
        let together = [
            Subject::Child(one),
            Subject::Child(two),
            Subject::Csa(CsaId(1)),
        ];
        assert_eq!(run(&mut queue), together);
        assert!(queue.finish(101).is_some() && run(&mut queue).is_empty());
        assert!(queue.finish(100).is_some());
        assert_eq!(run(&mut queue), [Subject::Child(one)]);
    }

    /// The last list counts, so the lists have to arrive in order.
    #[test]
    fn what_is_said_of_neighbours_is_said_one_after_the_other() {
        let mut queue = queue([Task::Neighbours(Vec::new()), Task::Neighbours(Vec::new())]);
        assert_eq!(run(&mut queue), [Subject::Neighbours]);
        assert!(run(&mut queue).is_empty());
        queue.withdraw(|task| matches!(task, Task::Neighbours(_)));
        assert!(queue.finish(100).is_some() && run(&mut queue).is_empty());
    }

    #[test]
    fn what_is_about_the_whole_sa_is_alone_and_nothing_overtakes_it() {
        let mut queue = queue([delete(1), Task::Leave, delete(2)]);
        assert_eq!(run(&mut queue), [Subject::Child(ChildSaId(1))]);
        assert!(queue.finish(100).is_some());
        assert_eq!(run(&mut queue), [Subject::Whole]);
        assert!(queue.finish(100).is_some());
        assert_eq!(run(&mut queue), [Subject::Child(ChildSaId(2))]);
    }

    #[test]
    fn what_a_request_was_about_is_told_by_its_message_id() {
        let mut queue = queue([delete(1), delete(2)]);
        run(&mut queue);
        assert!(queue.finish(99).is_none());
        assert!(matches!(
            queue.finish(101),
            Some(Task::DeleteChild(_, Spi(2)))
        ));
        assert!(queue.finish(101).is_none());
        assert_eq!(queue.tasks().count(), 1);
    }
}
