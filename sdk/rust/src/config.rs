//! Reading a plugin's configuration: JSON text into the plugin's own types, with errors that name
//! the place.
//!
//! Types derive `serde::Deserialize` as usual, with one convention: **an enum is an object tagged
//! by `type`**, and an enum whose variants carry nothing may also be a plain string. Nothing needs
//! to be said about it in the type; unlike serde's `tag` attribute, which reads the object twice,
//! errors inside keep their path.
//!
//! ```
//! use veeksha_plugin::config;
//!
//! #[derive(Debug, serde::Deserialize)]
//! #[serde(rename_all = "snake_case", deny_unknown_fields)]
//! enum Length {
//!     Fixed { value: u32 },
//!     Uniform { min: u32, max: u32 },
//! }
//!
//! #[derive(Debug, serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Config {
//!     lengths: Vec<Length>,
//! }
//!
//! let read = |text| config::from_json::<Config>(text);
//! assert!(read(r#"{ "lengths": [{ "type": "fixed", "value": 8 }] }"#).is_ok());
//!
//! let error = read(r#"{ "lengths": [{ "type": "uniform", "min": 1, "maxx": 2 }] }"#).unwrap_err();
//! assert_eq!(error.path.as_deref(), Some("/lengths/0/maxx"));
//! assert_eq!(error.message, "unknown key `maxx`; known here: `min`, `max`");
//! assert_eq!(error.hint.as_deref(), Some("did you mean `max`?"));
//! ```

mod deserializer;
mod failure;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::types::Error;
use deserializer::Reader;
use failure::Failure;

/// Reads a configuration.
///
/// # Errors
/// Code `config`, with the JSON pointer of the place that does not fit `T` and, for a misspelt
/// name, the nearest one.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::config("", format!("the configuration is not JSON: {error}")))?;
    T::deserialize(Reader(value)).map_err(Failure::into_error)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Shape {
        Point,
        Circle { radius: f64 },
        Nested(Inner),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(default)]
        many: Vec<Shape>,
        count: Option<u32>,
    }

    fn read(text: &str) -> Result<Shape, (String, String, Option<String>)> {
        from_json(text).map_err(|error| (error.path.unwrap_or_default(), error.message, error.hint))
    }

    fn refusal(text: &str) -> (String, String) {
        let (path, message, _) = read(text).unwrap_err();
        (path, message)
    }

    #[test]
    fn an_enum_is_tagged_by_type_wherever_the_tag_stands() {
        assert_eq!(
            read(r#"{ "radius": 2, "type": "circle" }"#),
            Ok(Shape::Circle { radius: 2.0 })
        );
        assert_eq!(read(r#"{ "type": "point" }"#), Ok(Shape::Point));
        assert_eq!(read(r#""point""#), Ok(Shape::Point));
        let inner = Inner {
            many: vec![Shape::Point],
            count: None,
        };
        assert_eq!(
            read(r#"{ "type": "nested", "count": null, "many": ["point"] }"#),
            Ok(Shape::Nested(inner))
        );
    }

    #[test]
    fn an_error_names_its_place_however_deep() {
        let deep = |inside: &str| {
            refusal(&format!(
                r#"{{ "type": "nested", "many": ["point", {{ "type": "nested", "many": [{inside}] }}] }}"#
            ))
        };
        let at = |place: &str, message: &str| (format!("/many/1/many/0{place}"), message.to_owned());
        assert_eq!(
            deep(r#"{ "type": "circle", "radius": "x" }"#),
            at("/radius", "expected a number, found string \"x\"")
        );
        assert_eq!(
            deep(r#"{ "type": "circle" }"#),
            at("", "the key `radius` is missing")
        );
        assert_eq!(
            deep(r#"{ "type": "point", "radius": 1 }"#),
            at("/radius", "unknown key `radius`; none is known here")
        );
        assert_eq!(
            deep(r#"{ "radius": 1 }"#),
            at(
                "",
                "the key `type` is missing; it is one of `point`, `circle`, `nested`"
            )
        );
        assert_eq!(
            deep(r#"{ "type": 3 }"#),
            at(
                "/type",
                "expected one of `point`, `circle`, `nested`, found integer `3`"
            )
        );
        assert_eq!(
            deep("7"),
            at(
                "",
                "expected an object whose `type` is one of `point`, `circle`, `nested`, found integer `7`"
            )
        );
        assert_eq!(
            deep(r#"{ "type": "nested", "count": -1 }"#),
            at(
                "/count",
                "expected a whole number from 0 to 4294967295, found integer `-1`"
            )
        );
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        let (path, message, hint) = read(r#"{ "type": "cirlce", "radius": 1 }"#).unwrap_err();
        assert_eq!(path, "/type");
        assert_eq!(
            message,
            "unknown name `cirlce`; known here: `point`, `circle`, `nested`"
        );
        assert_eq!(hint.as_deref(), Some("did you mean `circle`?"));
        let (_, _, hint) = read(r#"{ "type": "dodecahedron" }"#).unwrap_err();
        assert_eq!(hint, None);
    }

    #[test]
    fn a_path_is_a_json_pointer() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its errors are used")]
        struct Odd {
            #[serde(rename = "a/b~c")]
            odd: u32,
        }
        let error = from_json::<Odd>(r#"{ "a/b~c": "" }"#).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("/a~1b~0c"));
    }

    #[test]
    fn refuses_text_that_is_not_json_or_empty() {
        assert!(
            from_json::<()>("{")
                .unwrap_err()
                .message
                .starts_with("the configuration is not JSON: EOF")
        );
        assert_eq!(from_json::<()>("{}"), Ok(()));
        assert_eq!(from_json::<()>("null"), Ok(()));
        assert_eq!(
            from_json::<()>(r#"{ "x": 1 }"#).unwrap_err().message,
            "unknown key `x`; none is known here"
        );
    }
}
