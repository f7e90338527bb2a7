//! Configuration sections whose documentation is their help text.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::range::{OutOfRange, Range, at_least};

/// A section of the configuration: plain fields, each with documentation that is also its help text.
///
/// [`settings!`](crate::settings) declares the struct and implements `Default` and this trait.
pub trait Settings {
    /// Every field with its documentation.
    const HELP: &'static [(&'static str, &'static str)];

    /// The numeric fields that do not accept every number of their type, and what they accept.
    const RANGES: &'static [(&'static str, Range)];

    /// Checks that every number is in its range. `section` is the name of the section in the configuration, which the error mentions.
    fn check_ranges(&self, section: &str) -> Result<(), OutOfRange>;

    /// Visits every field, in the order of the declaration.
    fn visit<V: Visit>(&mut self, visitor: &mut V);
}

/// A visitor of the fields of [`Settings`]. It reads or writes all settings with one function per type of field, where serde's `derive`
/// compiles a parser per struct.
pub trait Visit {
    /// Visits the field called `name`.
    fn field<T: Serialize + DeserializeOwned>(&mut self, name: &'static str, value: &mut T);
}

/// Declares a struct of settings: every field with its documentation, its default value and, after `=>`, the numbers that it accepts.
///
/// ```
/// use gradus_base::range::from;
/// use gradus_base::{Settings, settings};
///
/// settings! {
///     /// How much the agent explores.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Exploration {
///         /// The probability of a random action.
///         pub epsilon: f32 = 0.1 => from(0.0).to(1.0),
///         /// Steps until epsilon has this value;
///         /// 0: at once.
///         pub steps: u64 = 0,
///     }
/// }
///
/// assert_eq!(Exploration::default().epsilon, 0.1);
/// assert_eq!(Exploration::HELP[1], ("steps", " Steps until epsilon has this value; 0: at once."));
/// let wrong = Exploration { epsilon: 1.5, ..Exploration::default() }.check_ranges("dqn").unwrap_err();
/// assert_eq!((wrong.key.as_str(), wrong.got.as_str()), ("dqn.epsilon", "1.5"));
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $(#[serde $serde:tt])* pub $field:ident: $type:ty = $default:expr $(=> $range:expr)? ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $( $(#[doc = $doc])+ $(#[serde $serde])* pub $field: $type, )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default ),+ }
            }
        }

        impl $crate::Settings for $name {
            const HELP: &'static [(&'static str, &'static str)] = &[ $( (stringify!($field), concat!($($doc),+)) ),+ ];
            const RANGES: &'static [(&'static str, $crate::range::Range)] = &[ $( $( (stringify!($field), $range), )? )+ ];

            #[allow(unused_variables, clippy::cast_lossless)] // there may be no ranges; a field may be an f64
            fn check_ranges(&self, section: &str) -> Result<(), $crate::range::OutOfRange> {
                $( $( $crate::range::check(section, stringify!($field), &$range, self.$field as f64, &self.$field)?; )? )+
                Ok(())
            }

            fn visit<V: $crate::Visit>(&mut self, visitor: &mut V) {
                $( visitor.field(stringify!($field), &mut self.$field); )+
            }
        }
    };
    // after `..`: a struct of settings that several structs share; its settings are in the same section
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident: $type:ty = $default:expr $(=> $range:expr)?, )*
            .. $(#[doc = $shared_doc:literal])+ pub $shared:ident: $shared_type:ty $(,)?
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )*
            $(#[doc = $shared_doc])+ pub $shared: $shared_type,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* $shared: <$shared_type>::default() }
            }
        }

        impl $crate::Settings for $name {
            const HELP: &'static [(&'static str, &'static str)] = {
                const OWN: &[(&str, &str)] = &[ $( (stringify!($field), concat!($($doc),+)) ),* ];
                const SHARED: &[(&str, &str)] = <$shared_type as $crate::Settings>::HELP;
                &$crate::concatenated::<{ OWN.len() + SHARED.len() }>(OWN, SHARED)
            };
            const RANGES: &'static [(&'static str, $crate::range::Range)] = {
                const OWN: &[(&str, $crate::range::Range)] = &[ $( $( (stringify!($field), $range), )? )* ];
                const SHARED: &[(&str, $crate::range::Range)] = <$shared_type as $crate::Settings>::RANGES;
                &$crate::concatenated_ranges::<{ OWN.len() + SHARED.len() }>(OWN, SHARED)
            };

            #[allow(unused_variables, clippy::cast_lossless)] // as above
            fn check_ranges(&self, section: &str) -> Result<(), $crate::range::OutOfRange> {
                $( $( $crate::range::check(section, stringify!($field), &$range, self.$field as f64, &self.$field)?; )? )*
                $crate::Settings::check_ranges(&self.$shared, section)
            }

            fn visit<V: $crate::Visit>(&mut self, visitor: &mut V) {
                $( visitor.field(stringify!($field), &mut self.$field); )*
                $crate::Settings::visit(&mut self.$shared, visitor);
            }
        }
    };
}

/// Returns the entries of `a`, then those of `b`; `N` is their number.
#[doc(hidden)]
pub const fn concatenated<const N: usize>(
    a: &[(&'static str, &'static str)],
    b: &[(&'static str, &'static str)],
) -> [(&'static str, &'static str); N] {
    let mut all = [("", ""); N];
    let mut i = 0;
    while i < N {
        all[i] = if i < a.len() { a[i] } else { b[i - a.len()] };
        i += 1;
    }
    all
}

/// As [`concatenated`], of ranges.
#[doc(hidden)]
pub const fn concatenated_ranges<const N: usize>(a: &[(&'static str, Range)], b: &[(&'static str, Range)]) -> [(&'static str, Range); N] {
    let mut all = [("", at_least(0)); N];
    let mut i = 0;
    while i < N {
        all[i] = if i < a.len() { a[i] } else { b[i - a.len()] };
        i += 1;
    }
    all
}
