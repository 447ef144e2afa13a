//! Requests of an established IKE SA: queued and outstanding ones.
//!
//! Only requests that may arrive and be answered in any order are outstanding together. Each
//! [`Task`] therefore has a [`Subject`]. There is one outstanding task per subject, in the order of
//! the requests, and a task about the whole SA is outstanding alone. No later task overtakes that
//! one, which would otherwise wait forever.

use super::task::{Subject, Task};
use std::any::Any;
use std::collections::VecDeque;

/// Tasks, in the order of the requests.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Box<dyn Task>>,
    /// Outstanding tasks with their message IDs.
    running: Vec<(u32, Box<dyn Task>)>,
}

impl Queue {
    pub(crate) fn push(&mut self, task: Box<dyn Task>) {
        self.waiting.push_back(task);
    }

    /// Queues a task ahead of all others.
    pub(crate) fn push_first(&mut self, task: Box<dyn Task>) {
        self.waiting.push_front(task);
    }

    /// Removes all queued tasks of one type that match.
    pub(crate) fn withdraw<T: Task>(&mut self, such: impl Fn(&T) -> bool) {
        self.waiting
            .retain(|task| !of_type(task.as_ref()).is_some_and(&such));
    }

    /// Removes and returns the first task that may be outstanding together with the current ones.
    pub(crate) fn pop(&mut self) -> Option<Box<dyn Task>> {
        let mut subjects = self.waiting.iter().map(|task| task.subject()).enumerate();
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
    pub(crate) fn run(&mut self, id: u32, task: Box<dyn Task>) {
        self.running.reserve_exact(1);
        self.running.push((id, task));
    }

    /// Returns the task whose request with this message ID was answered.
    pub(crate) fn finish(&mut self, id: u32) -> Option<Box<dyn Task>> {
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
    pub(crate) fn reset(&mut self, stale: impl Fn(&dyn Task) -> bool) {
        self.running = Vec::new();
        self.waiting.retain(|task| !stale(task.as_ref()));
    }

    /// Returns true if a matching task is outstanding.
    pub(crate) fn runs(&self, such: impl Fn(&dyn Task) -> bool) -> bool {
        self.running().any(such)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &dyn Task> {
        self.running.iter().map(|(_, task)| task.as_ref())
    }

    pub(crate) fn running_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Task>> {
        self.running.iter_mut().map(|(_, task)| task)
    }

    /// Returns the outstanding task in the request with this message ID.
    pub(crate) fn running_as(&mut self, id: u32) -> Option<&mut Box<dyn Task>> {
        let mut running = self.running.iter_mut();
        let found = running.find(|(running, _)| *running == id);
        found.map(|(_, task)| task)
    }

    /// Returns the outstanding tasks of one type.
    pub(crate) fn running_of<T: Task>(&self) -> impl Iterator<Item = &T> {
        self.running().filter_map(of_type)
    }

    /// Returns the same mutably.
    pub(crate) fn running_of_mut<T: Task>(&mut self) -> impl Iterator<Item = &mut T> {
        let tasks = self.running.iter_mut();
        tasks.filter_map(|(_, task)| {
            let task: &mut dyn Any = task.as_mut();
            task.downcast_mut()
        })
    }

    /// Returns the queued and outstanding tasks of one type.
    pub(crate) fn tasks_of<T: Task>(&self) -> impl Iterator<Item = &T> {
        self.tasks().filter_map(of_type)
    }

    /// Returns all queued and outstanding tasks.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &dyn Task> {
        self.waiting.iter().map(Box::as_ref).chain(self.running())
    }
}

fn of_type<T: Task>(task: &dyn Task) -> Option<&T> {
    let task: &dyn Any = task;
    task.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::delete::DeleteChild;
    use crate::task::grant::{Neighbours, Revoke};
    use crate::task::leave::Leave;
    use crate::task::liveness::Check;
    use model::{ChildSaId, CsaId, Spi};

    fn delete(child: u64) -> Box<dyn Task> {
        let (child, inbound) = (Some(ChildSaId(child)), Spi(child as u32));
        Box::new(DeleteChild { child, inbound })
    }

    fn neighbours() -> Box<dyn Task> {
        Box::new(Neighbours(Vec::new()))
    }

    fn queue(tasks: impl IntoIterator<Item = Box<dyn Task>>) -> Queue {
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
        let revokes = [1, 2].map(|csa| Box::new(Revoke(CsaId(csa))) as Box<dyn Task>);
        let mut queue =
            queue(
                revokes
                    .into_iter()
                    .chain([delete(1), delete(2), Box::new(Check::Liveness)]),
            );
        assert_eq!(run(&mut queue).len(), 5);
    }

    #[test]
    fn of_one_subject_there_is_one_task_at_a_time_in_the_order_of_asking() {
        let mut queue = queue([delete(1), delete(1), delete(2), Box::new(Revoke(CsaId(1)))]);
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
        let mut queue = queue([neighbours(), neighbours()]);
        assert_eq!(run(&mut queue), [Subject::Neighbours]);
        assert!(run(&mut queue).is_empty());
        queue.withdraw(|_: &Neighbours| true);
        assert!(queue.finish(100).is_some() && run(&mut queue).is_empty());
    }

    #[test]
    fn what_is_about_the_whole_sa_is_alone_and_nothing_overtakes_it() {
        let mut queue = queue([delete(1), Box::new(Leave), delete(2)]);
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
        let finished = queue.finish(101).expect("it is outstanding");
        let deleted = of_type::<DeleteChild>(finished.as_ref());
        assert_eq!(deleted.map(|task| task.inbound), Some(Spi(2)));
        assert!(queue.finish(101).is_none());
        assert_eq!(queue.tasks().count(), 1);
    }
}
