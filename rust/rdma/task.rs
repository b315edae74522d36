// SPDX-License-Identifier: GPL-2.0

//! The task that runs now.

use kernel::current;

use super::bindings;

/// Bytes of a task's name, with the zero at its end.
const NAME_SIZE: usize = bindings::TASK_COMM_LEN as usize;

/// A task's number and name, as `ps` shows them.
#[derive(Clone, Copy)]
pub(crate) struct TaskName {
    pub(crate) pid: i32,
    name: [u8; NAME_SIZE],
}

impl TaskName {
    /// That of the task that runs now.
    pub(crate) fn current() -> Self {
        let mut name = [0; NAME_SIZE];
        // SAFETY: There is room for the longest name.
        unsafe { bindings::ib_cm_helper_copy_task_name(name.as_mut_ptr()) }
        TaskName {
            pid: current!().group_leader().pid(),
            name,
        }
    }

    /// The name, without its end.
    pub(crate) fn name(&self) -> &[u8] {
        super::table::text(&self.name)
    }
}
