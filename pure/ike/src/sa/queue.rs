//! What an established IKE SA asks of its peer: what waits, and what is under way.
//!
//! Under way together is only what may arrive, and be answered, in any order. So each [`Task`] has a
//! [`Subject`]: of one subject there is one task at a time, in the order in which they were asked for;
//! and what is about the whole SA is alone. Nothing overtakes that: it would wait for ever.

use super::task::Task;
use model::{ChildSaId, CsaId};
use std::collections::VecDeque;

/// What a task is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The IKE SA as a whole, its keys, its path or its end.
    Whole,
    /// A child.
    Child(ChildSaId),
    /// A child that is not there yet: which one is meant is told by what is there when it is asked for.
    NewChild,
    /// The keys of a composite SA, for a licensed node.
    Csa(CsaId),
    /// Who our neighbours are.
    Neighbours,
    /// Nothing that another task could be about.
    Nothing,
}

impl Subject {
    /// Whether two tasks must not be under way together.
    fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole, _) | (_, Self::Whole) => true,
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Child(_) | Self::NewChild | Self::Csa(_) | Self::Neighbours, _) => self == other,
        }
    }
}

/// Tasks, in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Task>,
    /// With their message IDs.
    running: Vec<(u32, Task)>,
}

impl Queue {
    pub(super) fn push(&mut self, task: Task) {
        self.waiting.push_back(task);
    }

    /// A task that comes before all that waits.
    pub(super) fn push_first(&mut self, task: Task) {
        self.waiting.push_front(task);
    }

    /// Takes out all such tasks that wait.
    pub(super) fn withdraw(&mut self, such: impl Fn(&Task) -> bool) {
        self.waiting.retain(|task| !such(task));
    }

    /// Takes out the first task that may be under way together with those that are.
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

    /// A task is under way in the request with this message ID.
    pub(super) fn run(&mut self, id: u32, task: Task) {
        self.running.reserve_exact(1);
        self.running.push((id, task));
    }

    /// The request with this message ID was answered.
    pub(super) fn finish(&mut self, id: u32) -> Option<Task> {
        let at = self
            .running
            .iter()
            .position(|(running, _)| *running == id)?;
        let (_, task) = self.running.remove(at);
        if self.running.is_empty() {
            // Nearly always nothing is under way: then it costs no memory.
            self.running = Vec::new();
        }
        Some(task)
    }

    /// The requests under way go with the keys that they were sealed by, and with them what waits
    /// and makes no sense any more.
    pub(super) fn reset(&mut self, stale: impl Fn(&Task) -> bool) {
        self.running = Vec::new();
        self.waiting.retain(|task| !stale(task));
    }

    /// Whether such a task is under way.
    pub(super) fn runs(&self, such: impl Fn(&Task) -> bool) -> bool {
        self.running().any(such)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|(_, task)| task)
    }

    pub(super) fn running_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.running.iter_mut().map(|(_, task)| task)
    }

    /// Everything that is asked of the peer or is going to be.
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

    /// Runs what may run; gives what that is about.
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

    /// The last one counts, so they arrive in order.
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
