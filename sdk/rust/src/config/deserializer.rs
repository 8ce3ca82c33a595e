//! A `serde` reader of JSON values that knows where it is and reads enums as objects tagged by
//! `type`.

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::failure::{Failure, list};

const TAG: &str = "type";

pub(super) struct Reader(pub(super) Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(value) => visitor.visit_string(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(values) => visitor.visit_seq(List {
                rest: values.into_iter(),
                index: 0,
            }),
            Value::Object(members) => visitor.visit_map(Object::new(members)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    /// No configuration may be written as `null` or as `{}`.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Object(members) => {
                nothing_left(&members)?;
                visitor.visit_unit()
            }
            other => Reader(other).deserialize_any(visitor),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.into_deserializer()),
            Value::Object(mut members) => match members.remove(TAG) {
                Some(Value::String(name)) => visitor.visit_enum(Tagged { name, members }),
                other => Err(untagged(other.as_ref(), variants)),
            },
            other => Err(mismatch(
                &other,
                &format!("an object whose `{TAG}` is one of {}", list(variants)).as_str(),
            )),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

/// An object whose tag is not text, or that has none.
#[cold]
fn untagged(tag: Option<&Value>, variants: &[&str]) -> Failure {
    let names = list(variants);
    match tag {
        Some(other) => mismatch(other, &format!("one of {names}").as_str()).below(TAG.into()),
        None => Failure::new(format!("the key `{TAG}` is missing; it is one of {names}")),
    }
}

#[cold]
fn mismatch(value: &Value, expected: &dyn serde::de::Expected) -> Failure {
    let unexpected = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::String(value) => Unexpected::Str(value),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Unexpected::Unsigned(value),
            (None, Some(value)) => Unexpected::Signed(value),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
    };
    Failure::invalid_type(unexpected, expected)
}

fn nothing_left(members: &Map<String, Value>) -> Result<(), Failure> {
    match members.keys().next() {
        Some(key) => Err(Failure::unknown_field(key, &[])),
        None => Ok(()),
    }
}

struct List {
    rest: std::vec::IntoIter<Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for List {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(value) = self.rest.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader(value))
            .map(Some)
            .map_err(|failure| failure.at(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Object {
    rest: serde_json::map::IntoIter,
    open: Option<(String, Value)>,
}

impl Object {
    fn new(members: Map<String, Value>) -> Self {
        Object {
            rest: members.into_iter(),
            open: None,
        }
    }
}

impl<'de> MapAccess<'de> for Object {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        let name: StringDeserializer<Failure> = key.clone().into_deserializer();
        self.open = Some((key, value));
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let (key, value) = self.open.take().unwrap_or_default();
        seed.deserialize(Reader(value))
            .map_err(|failure| failure.below(key.into()))
    }
}

/// An object without its tag.
struct Tagged {
    name: String,
    members: Map<String, Value>,
}

impl<'de> EnumAccess<'de> for Tagged {
    type Error = Failure;
    type Variant = Members;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Members), Failure> {
        let name: StringDeserializer<Failure> = self.name.into_deserializer();
        let variant = seed
            .deserialize(name)
            .map_err(|failure| failure.below(TAG.into()))?;
        Ok((variant, Members(self.members)))
    }
}

struct Members(Map<String, Value>);

impl<'de> VariantAccess<'de> for Members {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        nothing_left(&self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(Reader(Value::Object(self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Failure> {
        Err(Failure::invalid_type(Unexpected::Map, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_map(Object::new(self.0))
    }
}
