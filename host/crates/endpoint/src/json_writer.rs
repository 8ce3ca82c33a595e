//! JSON writer for byte buffers.

/// Replaces the comma after the last element, if there is one, with the closing bracket.
pub(crate) fn end_list(out: &mut Vec<u8>, bracket: u8) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(bracket);
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    json(out, text);
}

pub(crate) fn json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing strings, numbers and JSON values to memory cannot fail.
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok());
}

/// A writer of the fields of one object.
pub(crate) struct ObjectWriter {
    out: Vec<u8>,
}

impl ObjectWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        ObjectWriter { out }
    }

    pub(crate) fn field(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        string(&mut self.out, name);
        self.out.push(b':');
        write(&mut self.out);
        self.out.push(b',');
    }

    pub(crate) fn try_field<E>(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        self.field(name, |out| result = write(out));
        result
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        end_list(&mut self.out, b'}');
        self.out
    }
}
