//! The server's only thread: an event queue over the listening socket, a timer, the commands and
//! the connections.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::time::Timespec;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use super::connection::{ReadOutcome, ServedConnection, WriteOutcome};
use super::plan::{ChildMessage, LogEntry, ResponsePlan, ServerCommand, ServerCounters, WriteMode};
use super::reply::PreparedReply;
use super::schedule::{Turn, TurnQueue};
use crate::error::BenchError;
use crate::lines::{LineReader, write_line};
use crate::timer::Timer;

/// Event-queue tokens that are not connections.
const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const COMMANDS: u64 = u64::MAX - 2;

/// Listen backlog: a burst of ten thousand connections must not lose SYN packets.
const BACKLOG: i32 = 4_096;

/// The server's state.
pub(crate) struct EventLoop<C, W> {
    clock: RunClock,
    queue: OwnedFd,
    listener: TcpListener,
    /// True while the queue reports new connections; paused while the limit of open files is
    /// reached.
    listens: bool,
    timer: Timer,
    commands: LineReader<C>,
    answers: W,
    connections: Vec<Option<ServedConnection>>,
    free: Vec<usize>,
    generations: u64,
    schedule: TurnQueue,
    plan: ResponsePlan,
    reply: Rc<PreparedReply>,
    answered: u64,
    log: Vec<LogEntry>,
    counts: ServerCounters,
    buffer: Vec<u8>,
}

impl<C: AsFd, W: Write> EventLoop<C, W> {
    /// Listens on a free loopback port and sends the address to `messages`. Log times are those of
    /// `CLOCK_MONOTONIC`.
    pub(crate) fn start(commands: LineReader<C>, mut answers: W) -> Result<Self, BenchError> {
        let failed = |error: Errno| BenchError::io("the bench server's socket")(error.into());
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(failed)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listen(&socket, BACKLOG).map_err(failed)?;
        let listener = TcpListener::from(socket);
        let address = listener
            .local_addr()
            .map_err(BenchError::io("the bench server's address"))?;
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let timer = Timer::new()?;
        let add = |source: &dyn AsFd, place| {
            epoll::add(&queue, source.as_fd(), EventData::new_u64(place), EventFlags::IN).map_err(failed)
        };
        add(&listener, LISTENER)?;
        add(&timer, TIMER)?;
        add(&commands, COMMANDS)?;
        write_line(&mut answers, &ChildMessage::Ready(address))?;
        let plan = ResponsePlan::busy(1, WriteMode::EachToken);
        Ok(EventLoop {
            clock: RunClock::with_origin(0),
            queue,
            listener,
            listens: true,
            timer,
            commands,
            answers,
            connections: Vec::new(),
            free: Vec::new(),
            generations: 0,
            schedule: TurnQueue::default(),
            plan,
            reply: Rc::new(PreparedReply::new(plan.tokens)),
            answered: 0,
            log: Vec::new(),
            counts: ServerCounters::default(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Serves until the end of the commands.
    pub(crate) fn run(mut self) -> Result<(), BenchError> {
        let mut events = Vec::with_capacity(1_024);
        loop {
            events.clear();
            let at_once = self.schedule.is_ready().then_some(Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            });
            match epoll::wait(&self.queue, spare_capacity(&mut events), at_once.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(BenchError::io("the bench server's event queue")(error.into())),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    // Due turns are handled below.
                    TIMER => self.timer.clear(),
                    COMMANDS => {
                        if !self.obey()? {
                            return Ok(());
                        }
                    }
                    place => self.serve(place as usize, event.flags),
                }
            }
            while let Some((due, turn)) = self.schedule.due(self.clock.now()) {
                self.turn(turn, due);
            }
            for turn in self.schedule.round() {
                let now = self.clock.now();
                self.turn(turn, now);
            }
            self.timer.arm(self.schedule.next_due())?;
        }
    }

    fn obey(&mut self) -> Result<bool, BenchError> {
        if !self.commands.fill()? {
            return Ok(false);
        }
        while let Some(line) = self.commands.take() {
            let message = match serde_json::from_str(&line) {
                Ok(ServerCommand::Plan(plan)) => {
                    self.plan = plan;
                    self.reply = Rc::new(PreparedReply::new(plan.tokens));
                    self.counts.peak_in_flight = self.counts.in_flight;
                    ChildMessage::Done
                }
                Ok(ServerCommand::Log) => ChildMessage::Log(std::mem::take(&mut self.log)),
                Ok(ServerCommand::ServerCounts) => ChildMessage::ServerCounts(self.counts),
                Err(error) => ChildMessage::Failed(format!("{line}: {error}")),
            };
            write_line(&mut self.answers, &message)?;
        }
        Ok(true)
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                        self.counts.broken += 1;
                        continue;
                    }
                    self.generations += 1;
                    let place = self.free.pop().unwrap_or_else(|| {
                        self.connections.push(None);
                        self.connections.len() - 1
                    });
                    let data = EventData::new_u64(place as u64);
                    if epoll::add(&self.queue, &stream, data, EventFlags::IN).is_err() {
                        self.counts.broken += 1;
                        self.free.push(place);
                        continue;
                    }
                    self.counts.connections += 1;
                    if let Some(slot) = self.connections.get_mut(place) {
                        *slot = Some(ServedConnection::new(stream, self.generations));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // The limit of open files is reached. Stop polling the listener until a
                    // connection closes; otherwise the queue would report it forever.
                    let full = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
                    if error.raw_os_error().is_some_and(|code| full.contains(&code)) {
                        self.listens = epoll::delete(&self.queue, &self.listener).is_err();
                        return;
                    }
                }
            }
        }
    }

    fn serve(&mut self, place: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        if flags.contains(EventFlags::OUT) && !connection.flush() {
            return self.end(place);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            match connection.read(&mut self.buffer) {
                ReadOutcome::Nothing => {}
                ReadOutcome::Asked(request) => self.begin(place, request),
                ReadOutcome::Ended => return self.end(place),
            }
        }
        self.watch(place);
    }

    fn begin(&mut self, place: usize, request: Option<String>) {
        let arrived = self.clock.now();
        let (plan, reply) = (self.plan, Rc::clone(&self.reply));
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let served = LogEntry {
            request,
            connection: connection.generation - 1,
            arrived,
            writes: Vec::new(),
        };
        connection.begin(plan, reply, self.answered, served);
        let turn = (place, connection.generation);
        self.answered += 1;
        self.counts.in_flight += 1;
        self.counts.peak_in_flight = self.counts.peak_in_flight.max(self.counts.in_flight);
        if plan.ttft == 0 {
            self.schedule.soon(turn);
        } else {
            self.schedule.at(arrived.saturating_add(plan.ttft), turn);
        }
    }

    /// Runs a connection's turn. The next token is due one interval after this one *was due*, so
    /// that lateness does not accumulate.
    fn turn(&mut self, turn: Turn, due: Nanos) {
        let (place, generation) = turn;
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        if connection.generation != generation {
            return;
        }
        let itl = connection.plan().map_or(0, |plan| plan.itl);
        let clock = self.clock;
        match connection.turn(|| clock.now()) {
            WriteOutcome::Idle => {}
            WriteOutcome::More if itl == 0 => self.schedule.soon(turn),
            WriteOutcome::More => self.schedule.at(due.saturating_add(itl), turn),
            WriteOutcome::Finished(served) => {
                self.log.extend(served);
                self.counts.replies += 1;
                self.counts.in_flight -= 1;
                match connection.next_request() {
                    ReadOutcome::Nothing => {}
                    ReadOutcome::Asked(request) => self.begin(place, request),
                    ReadOutcome::Ended => return self.end(place),
                }
            }
            WriteOutcome::Ended => return self.end(place),
        }
        self.watch(place);
    }

    /// Polls for a writable socket exactly while bytes wait for it.
    fn watch(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        // Sends what a read queued, such as the list of models.
        if connection.has_unsent() && !connection.waits_to_write && !connection.flush() {
            return self.end(place);
        }
        let wants = connection.has_unsent();
        if wants == connection.waits_to_write {
            return;
        }
        let flags = if wants {
            EventFlags::IN | EventFlags::OUT
        } else {
            EventFlags::IN
        };
        let data = EventData::new_u64(place as u64);
        if epoll::modify(&self.queue, &connection.stream, data, flags).is_ok() {
            connection.waits_to_write = wants;
        }
    }

    fn end(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::take) else {
            return;
        };
        if connection.is_answering() {
            self.counts.in_flight -= 1;
            self.counts.broken += 1;
        }
        // Closing the socket removes it from the queue.
        drop(connection);
        self.free.push(place);
        if !self.listens {
            let data = EventData::new_u64(LISTENER);
            self.listens = epoll::add(&self.queue, &self.listener, data, EventFlags::IN).is_ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread::sleep;
    use std::time::Duration;

    use veeksha_clock::RunClock;

    use super::super::plan::{ChildMessage, LogMode, ResponsePlan, WriteMode};
    use crate::in_process_child::server;

    const MS: u64 = 1_000_000;

    fn ask(stream: &mut TcpStream, id: &str) {
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nX-Request-Id: {id}\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
    }

    fn read_answer(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        let mut buffer = [0; 1 << 16];
        while !answer.ends_with(b"0\r\n\r\n") {
            let count = stream.read(&mut buffer).expect("an answer");
            assert!(count > 0, "the server closed the connection");
            answer.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn paces_and_logs_responses() {
        let (mut server, address) = server(ResponsePlan::paced(5, 2, 4));
        let mut stream = TcpStream::connect(address).expect("a connection");
        let clock = RunClock::with_origin(0);
        let before = clock.now();
        for id in ["1/0", "2/0"] {
            ask(&mut stream, id);
            assert_eq!(read_answer(&mut stream).matches("\"content\":").count(), 1 + 4);
        }
        let after = clock.now();
        let log = server.log();
        let ids: Vec<Option<&str>> = log.iter().map(|served| served.request.as_deref()).collect();
        assert_eq!(ids, [Some("1/0"), Some("2/0")]);
        assert_eq!((log[0].connection, log[1].connection), (0, 0));
        for served in &log {
            assert_eq!(served.writes.len(), 4);
            // Never early; the lateness depends on the machine.
            for (index, at) in served.writes.iter().enumerate() {
                let due = served.arrived + 5 * MS + 2 * MS * index as u64;
                assert!(*at >= due && *at < after, "write {index} at {at}, due {due}");
            }
            assert!(served.arrived > before);
        }
        assert!(server.log().is_empty(), "the log is cleared");
        assert_eq!(server.counts().replies, 2);
        server.end().expect("an end");
    }

    #[test]
    fn writes_a_whole_response_at_once() {
        let plan = ResponsePlan {
            keep: LogMode::Times,
            ..ResponsePlan::busy(300, WriteMode::Whole)
        };
        let (mut server, address) = server(plan);
        let mut stream = TcpStream::connect(address).expect("a connection");
        ask(&mut stream, "7/0");
        assert_eq!(read_answer(&mut stream).matches("\"content\":").count(), 1 + 300);
        assert_eq!(server.log()[0].writes.len(), 1);
        server.end().expect("an end");
    }

    #[test]
    fn keeps_unsent_bytes_for_a_slow_reader() {
        // 60,000 tokens are 14 MB, more than the socket buffers hold.
        let (server, address) = server(ResponsePlan::busy(60_000, WriteMode::Whole));
        let mut stream = TcpStream::connect(address).expect("a connection");
        ask(&mut stream, "1/0");
        sleep(Duration::from_millis(200));
        assert_eq!(read_answer(&mut stream).matches("data: {").count(), 60_002);
        ask(&mut stream, "2/0");
        assert_eq!(read_answer(&mut stream).matches("data: {").count(), 60_002);
        server.end().expect("an end");
    }

    #[test]
    fn counts_closed_and_invalid_connections() {
        let (mut server, address) = server(ResponsePlan::paced(50, 50, 100));
        let mut leaves = TcpStream::connect(address).expect("a connection");
        ask(&mut leaves, "1/0");
        while server.counts().in_flight == 0 {
            sleep(Duration::from_millis(1));
        }
        drop(leaves);
        let mut nonsense = TcpStream::connect(address).expect("a connection");
        nonsense.write_all(b"\0\0\0\0").expect("sent");
        assert_eq!(nonsense.read(&mut [0; 8]).expect("an end"), 0);
        while server.counts().in_flight > 0 {
            sleep(Duration::from_millis(1));
        }
        let counts = server.counts();
        assert_eq!((counts.connections, counts.replies, counts.broken), (2, 0, 1));
        assert!(server.log().is_empty());
        server.end().expect("an end");
    }

    #[test]
    fn accepts_split_and_pipelined_requests() {
        let (mut server, address) = server(ResponsePlan::paced(0, 0, 1));
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("set");
        stream
            .write_all(b"POST /v1 HTTP/1.1\r\ncontent-len")
            .expect("sent");
        sleep(Duration::from_millis(20));
        stream
            .write_all(b"gth: 3\r\n\r\nabcPOST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
            .expect("sent");
        let mut all = String::new();
        while all.matches("[DONE]").count() < 2 {
            all.push_str(&read_answer(&mut stream));
        }
        let log = server.log();
        assert_eq!(log.len(), 2);
        // The second starts when the first has ended.
        assert!(log[1].arrived >= log[0].writes[0]);
        server.end().expect("an end");
    }

    #[test]
    fn lists_models_and_rejects_unknown_commands() {
        let (mut server, address) = server(ResponsePlan::paced(0, 0, 1));
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream
            .write_all(b"GET /v1/models HTTP/1.1\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        while !answer.ends_with("}\n") {
            let mut buffer = [0; 512];
            let count = stream.read(&mut buffer).expect("an answer");
            answer.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        }
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {}", body.len())));
        assert!(matches!(server.raw("{\"sing\":1}"), ChildMessage::Failed(why) if why.contains("sing")));
        server.end().expect("an end");
    }
}
