//! Panics in code that users write (environments, tasks and agents), as errors.
//!
//! [`catch`] turns a panic into a [`Panic`]. The library never replaces the panic hook of a program, so the default hook still prints the
//! panic before the error is returned. A program that reports errors itself, such as `gradus`, calls [`keep_quiet`].

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook};

thread_local! {
    /// Where the last panic of this thread began, as `file:line:column`. Set only by the hook of [`keep_quiet`].
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A caught panic.
pub struct Panic {
    payload: Box<dyn Any + Send>,
    place: Option<String>,
}

impl Panic {
    /// Returns the message in one line. If [`keep_quiet`] was called, the place in the source follows.
    pub fn message(&self) -> String {
        let text = self.payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| self.payload.downcast_ref::<&str>().copied()).unwrap_or("panicked without a message");
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(", at {place}"));
        format!("{}{place}", lines.join("; "))
    }

    /// Returns the error that [`raise`] was called with, if it has this type; otherwise the panic.
    pub fn into_error<E: Send + 'static>(self) -> Result<E, Self> {
        let Self { payload, place } = self;
        payload.downcast().map(|error| *error).map_err(|payload| Self { payload, place })
    }

    /// Continues the panic.
    pub fn resume(self) -> ! {
        PLACE.set(self.place);
        resume_unwind(self.payload)
    }
}

/// Calls `work`. Returns its result, or its panic. After a panic, the values that `work` has changed may be inconsistent.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panic { payload, place: PLACE.take() })
}

/// Panics with `error`, without calling the panic hook. For functions that cannot return an error; [`catch`] and [`Panic::into_error`]
/// bring the error to a caller that can.
pub fn raise<E: Send + 'static>(error: E) -> ! {
    resume_unwind(Box::new(error))
}

/// Replaces the panic hook of this process by one that prints nothing and remembers the place for [`Panic::message`]. If the environment
/// variable `RUST_BACKTRACE` is set to a value other than 0, the former hook is also called.
pub fn keep_quiet() {
    let former = take_hook();
    let is_loud = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        PLACE.set(panic.location().map(ToString::to_string));
        if is_loud {
            former(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_one_line() {
        let message = |work: fn()| catch(work).err().unwrap().message();
        assert_eq!(message(|| panic!("two\n  lines\n")), "two; lines");
        assert_eq!(message(|| panic!("expected {}", 3)), "expected 3");
        assert_eq!(message(|| std::panic::panic_any(3)), "panicked without a message");
        assert_eq!(catch(|| 3).ok(), Some(3));
    }

    #[test]
    fn a_raised_error_is_returned() {
        let raised = || catch(|| -> () { raise(String::from("no reward")) }).err().unwrap();
        assert_eq!(raised().into_error::<String>().ok().as_deref(), Some("no reward"));
        assert!(raised().into_error::<u32>().is_err(), "an error of another type");
        assert_eq!(catch(|| panic!("other")).err().unwrap().into_error::<String>().err().unwrap().message(), "other");
        let resumed = catch(|| catch(|| panic!("again")).unwrap_or_else(|panic| panic.resume()));
        assert_eq!(resumed.err().unwrap().message(), "again");
    }
}
