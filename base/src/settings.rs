//! Configuration sections whose documentation is their help text.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A section of the configuration: plain fields, each with documentation that is also its help text.
///
/// [`settings!`](crate::settings) declares the struct and implements `Default` and this trait.
pub trait Settings {
    /// Every field with its documentation.
    const HELP: &'static [(&'static str, &'static str)];

    /// Visits every field, in the order of the declaration.
    fn visit<V: Visit>(&mut self, visitor: &mut V);
}

/// A visitor of the fields of [`Settings`]. It reads or writes all settings with one function per type of field, where serde's `derive`
/// compiles a parser per struct.
pub trait Visit {
    /// Visits the field called `name`.
    fn field<T: Serialize + DeserializeOwned>(&mut self, name: &'static str, value: &mut T);
}

/// Declares a struct of settings: every field with its documentation and its default value.
///
/// ```
/// use gradus_base::{Settings, settings};
///
/// settings! {
///     /// How much the agent explores.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Exploration {
///         /// The probability of a random action, 0 to 1.
///         pub epsilon: f32 = 0.1,
///         /// Steps until epsilon has this value;
///         /// 0: at once.
///         pub steps: u64 = 0,
///     }
/// }
///
/// assert_eq!(Exploration::default().epsilon, 0.1);
/// assert_eq!(Exploration::HELP[1], ("steps", " Steps until epsilon has this value; 0: at once."));
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $(#[serde $serde:tt])* pub $field:ident: $type:ty = $default:expr ),+ $(,)?
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

            fn visit<V: $crate::Visit>(&mut self, visitor: &mut V) {
                $( visitor.field(stringify!($field), &mut self.$field); )+
            }
        }
    };
    // after `..`: a struct of settings that several structs share; its settings are in the same section
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident: $type:ty = $default:expr, )*
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
