// SPDX-License-Identifier: GPL-2.0

//! Tables in debugfs: one line a row, however many there are.
//!
//! A reader gets a page at a time and may never come back for the next. So nothing is locked and
//! nothing is referred to between two reads: the walk remembers a place, copies a few rows from
//! there on, and prints the copies.
//!
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)

use core::ptr::NonNull;

use kernel::{
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    types::ForeignOwnable, //
};

use super::{
    bindings,
    device::IbDevice, //
};

/// Rows that are copied at a time.
const BATCH: usize = 32;

/// Rows that were copied, as many as there is room for.
pub(crate) struct Rows<R>(KVec<R>);

impl<R> Rows<R> {
    /// How many more there is room for.
    pub(crate) fn room(&self) -> usize {
        BATCH.saturating_sub(self.0.len())
    }

    /// Adds a row. Returns whether there is room for one more.
    pub(crate) fn add(&mut self, row: R) -> bool {
        // Only what is full refuses a row, and then the caller was told before.
        let _ = self.0.push_within_capacity(row);
        self.room() > 0
    }
}

/// A table.
pub(crate) trait Table: 'static {
    /// Where a walk has got to.
    type Place: Default + Send;
    /// What is copied of an object.
    type Row: Send;
    /// The first line: the names of the columns; may be empty.
    const COLUMNS: &'static str;

    /// Copies what follows after `place`. Returns whether there may be more. It may stop for no
    /// other reason than that it has taken long.
    fn read(place: &mut Self::Place, rows: &mut Rows<Self::Row>) -> bool;

    /// Prints a row, without the end of the line.
    fn print(row: &Self::Row, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The walk of one reader.
struct Walk<T: Table> {
    place: T::Place,
    rows: Rows<T::Row>,
    /// Number of the first row that is copied now.
    first: u64,
    /// The row to print; the line with the columns when there is none.
    current: Option<usize>,
    more: bool,
}

/// A row as text.
struct Line<'a, T: Table>(&'a T::Row);

impl<T: Table> fmt::Display for Line<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::print(self.0, f)
    }
}

impl<T: Table> Walk<T> {
    fn new() -> Result<Self> {
        Ok(Walk {
            place: T::Place::default(),
            rows: Rows(KVec::with_capacity(BATCH, GFP_KERNEL)?),
            first: 0,
            current: None,
            more: true,
        })
    }

    fn rewind(&mut self) {
        self.place = T::Place::default();
        self.rows.0.clear();
        self.first = 0;
        self.more = true;
    }

    /// Goes to a line. Returns whether there is one.
    fn seek(&mut self, line: u64) -> bool {
        let row = if T::COLUMNS.is_empty() {
            line
        } else if let Some(row) = line.checked_sub(1) {
            row
        } else {
            self.current = None;
            return true;
        };
        if row < self.first {
            self.rewind();
        }
        loop {
            let at = row.saturating_sub(self.first);
            if at < self.rows.0.len() as u64 {
                self.current = Some(at as usize);
                return true;
            }
            if !self.more {
                return false;
            }
            self.first = self.first.saturating_add(self.rows.0.len() as u64);
            self.rows.0.clear();
            self.more = T::read(&mut self.place, &mut self.rows);
            // SAFETY: Process context, and nothing is locked.
            unsafe { bindings::ib_cm_helper_cond_resched() }
        }
    }

    fn print(&self, file: &SeqFile) {
        match self.current {
            None => seq_print!(file, "{}\n", T::COLUMNS),
            Some(at) => {
                if let Some(row) = self.rows.0.get(at) {
                    seq_print!(file, "{}\n", Line::<T>(row));
                }
            }
        }
    }
}

extern "C" fn open<T: Table>() -> *mut c_void {
    let walk = Walk::<T>::new().and_then(|walk| Ok(KBox::new(walk, GFP_KERNEL)?));
    walk.map_or(core::ptr::null_mut(), KBox::into_foreign)
}

/// # Safety
///
/// `walk` came from [`open`] of the same table and is used by nobody else.
unsafe extern "C" fn seek<T: Table>(walk: *mut c_void, line: u64) -> bool {
    // SAFETY: By this function's contract.
    unsafe { &mut *walk.cast::<Walk<T>>() }.seek(line)
}

/// # Safety
///
/// As [`seek`]; `file` is valid and used by nobody else.
unsafe extern "C" fn print<T: Table>(walk: *mut c_void, file: *mut bindings::seq_file) {
    // SAFETY: By this function's contract.
    unsafe { &*walk.cast::<Walk<T>>() }.print(unsafe { SeqFile::from_raw(file) });
}

/// # Safety
///
/// As [`seek`]; nobody uses the walk any more.
unsafe extern "C" fn release<T: Table>(walk: *mut c_void) {
    // SAFETY: By this function's contract.
    drop(unsafe { KBox::<Walk<T>>::from_foreign(walk) });
}

/// A table's functions, as C calls them.
struct Operations<T>(core::marker::PhantomData<T>);

impl<T: Table> Operations<T> {
    const TABLE: &'static bindings::ib_cm_table = &bindings::ib_cm_table {
        open: Some(open::<T>),
        seek: Some(seek::<T>),
        print: Some(print::<T>),
        release: Some(release::<T>),
    };
}

/// A directory of debugfs, which vanishes with it.
pub(crate) struct TableDir(NonNull<bindings::dentry>);

// SAFETY: The directory may be removed by any thread.
unsafe impl Send for TableDir {}
// SAFETY: Nothing is done through a shared reference but adding files, which debugfs orders.
unsafe impl Sync for TableDir {}

impl TableDir {
    /// Makes a directory. None without debugfs, which hinders nobody.
    pub(crate) fn new(name: &CStr) -> Option<Self> {
        // SAFETY: A name that ends.
        let dir = unsafe { bindings::ib_cm_helper_debug_dir(name.as_char_ptr()) };
        NonNull::new(kernel::error::from_err_ptr(dir).ok()?).map(TableDir)
    }

    /// Adds a table.
    pub(crate) fn add<T: Table>(&self, name: &CStr) {
        // SAFETY: A directory that has not been removed, a name that ends, and a table that lives
        // as long as the module, which an open file keeps.
        unsafe {
            bindings::ib_cm_helper_debug_table(
                self.0.as_ptr(),
                name.as_char_ptr(),
                Operations::<T>::TABLE,
            );
        }
    }
}

impl Drop for TableDir {
    fn drop(&mut self) {
        // SAFETY: It is ours. Waits for readers that are in one of our functions.
        unsafe { bindings::ib_cm_helper_debug_remove(self.0.as_ptr()) }
    }
}

/// A device's name, as it was a moment ago.
#[derive(Clone, Copy)]
pub(crate) struct DeviceName([u8; bindings::IB_DEVICE_NAME_MAX as usize]);

impl DeviceName {
    /// Of a device that has gone.
    pub(crate) const NONE: Self = DeviceName([0; bindings::IB_DEVICE_NAME_MAX as usize]);

    pub(crate) fn of(device: &IbDevice) -> Self {
        let mut name = Self::NONE;
        // SAFETY: Valid, and there is room for the longest name.
        unsafe {
            bindings::ib_cm_helper_copy_device_name(device.as_ptr(), name.0.as_mut_ptr().cast())
        }
        name
    }
}

impl core::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(&Word(text(&self.0)), f)
    }
}

/// Room for a function's name and its module's; a longer one is cut.
const SYMBOL_SIZE: usize = 256;

/// The module that a function belongs to, for people; the function's name where it is built in.
pub(crate) struct ModuleOf(pub(crate) usize);

impl core::fmt::Display for ModuleOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut symbol = [0; SYMBOL_SIZE];
        // SAFETY: There is room for the longest symbol; any address will do.
        unsafe { bindings::ib_cm_helper_symbol(symbol.as_mut_ptr().cast(), symbol.len(), self.0) };
        let symbol = text(&symbol);
        let module = symbol.split(|byte| matches!(byte, b'[' | b']')).nth(1);
        core::fmt::Display::fmt(&Word(module.unwrap_or(symbol)), f)
    }
}

impl fmt::Display for ModuleOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// The text before the first zero.
pub(crate) fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

/// Bytes as one column: what would end it is shown as `_`.
pub(crate) struct Word<'a>(pub(crate) &'a [u8]);

impl core::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;

        if self.0.is_empty() {
            return f.write_char('-');
        }
        for byte in self.0 {
            let shown = if byte.is_ascii_graphic() { *byte } else { b'_' };
            f.write_char(shown.into())?;
        }
        Ok(())
    }
}
