//! Reads and writes of the simulator's connections.

use std::io;

use tokio::net::TcpStream;

use super::incoming::RequestReader;

/// Buffer size of one read.
const READ: usize = 16 << 10;

/// Reads what has arrived, and returns the number of bytes; 0 at the end.
pub(super) async fn read(socket: &TcpStream, reader: &mut RequestReader) -> io::Result<usize> {
    loop {
        socket.readable().await?;
        let buffer = reader.buffer();
        buffer.reserve(READ);
        match socket.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Writes all bytes.
pub(super) async fn write_all(socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        socket.writable().await?;
        match socket.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads and discards everything until the client closes its side.
pub(super) async fn drain(socket: &TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        if socket.readable().await.is_err() {
            return;
        }
        match socket.try_read(&mut buffer) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}
