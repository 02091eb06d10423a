//! A small HTTP server: it answers GET and HEAD of few paths, one request for each connection.
//!
//! Ready servers were looked at: `tiny_http` (0.12, of 2022) has no time limits and no limit of threads, so one client
//! that sends nothing is a thread for ever; `hyper` has what is needed and brings a runtime of threads of its own, for
//! one request in fifteen seconds. So sockets and threads are the standard library's, and the head of a request is read
//! by `httparse`, hyper's parser.
//!
//! Clients are all that reach the port, hostile ones too. Bounds:
//!
//! * a request has 8 KiB and five seconds, an answer ten seconds, whatever is sent or taken meanwhile;
//! * of 32 connections the oldest is closed when another one comes. So clients that are slow on purpose cannot keep
//!   others out: each lasts only until 32 more have come, and a request that is sent at once is read at once;
//! * there are at most 128 threads; while there are, new connections are closed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the head of a request at most.
const REQUEST_MOST: usize = 8 << 10;
/// Lines of it at most.
const LINES_MOST: usize = 64;
/// How long a request may take to come.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// How long an answer may take to be taken.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// How long what a client still sends is read after the answer: else the system may throw the answer away.
const LINGER_TIME: Duration = Duration::from_millis(500);
/// Connections at most.
const CONNECTIONS_MOST: usize = 32;
/// Threads at most: those of connections that were closed may take a moment to end.
const THREADS_MOST: usize = 128;

/// A request for something that may be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, without what follows a question mark.
    pub path: String,
    /// The media types that the client accepts; empty: it does not say.
    pub accept: String,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The code with its words.
    pub status: &'static str,
    /// The media type of the body.
    pub media_type: &'static str,
    /// The body.
    pub body: Arc<str>,
}

impl Answer {
    /// An answer that is one line of text.
    pub fn line(status: &'static str, line: &str) -> Self {
        Answer { status, media_type: "text/plain; charset=utf-8", body: format!("{line}\n").into() }
    }
}

/// Answers requests for ever, each connection in a thread of its own.
pub fn serve(listener: &TcpListener, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
    let (answer, open) = (Arc::new(answer), Arc::new(Open::default()));
    loop {
        // It fails where a client has gone already, or no descriptor is free.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let Some(entry) = Entry::new(&open, &stream) else { continue };
        let answer = Arc::clone(&answer);
        let work = move || {
            let _entry = entry;
            // A client that breaks off gets no answer, and no one else waits for one.
            let _ = converse(stream, &*answer);
        };
        // Where the system has no thread, the connection is closed with its value.
        let _ = thread::Builder::new().name("request".into()).spawn(work);
    }
}

/// The connections that are open, oldest first, and the threads.
#[derive(Default)]
struct Open {
    connections: Mutex<Vec<(usize, TcpStream)>>,
    threads: AtomicUsize,
    next: AtomicUsize,
}

/// A place among them, which is given back with this value.
struct Entry {
    open: Arc<Open>,
    number: usize,
}

impl Entry {
    /// Takes a place for a connection. `None`: there is none.
    fn new(open: &Arc<Open>, stream: &TcpStream) -> Option<Entry> {
        let twin = stream.try_clone().ok()?;
        if open.threads.fetch_add(1, SeqCst) >= THREADS_MOST {
            open.threads.fetch_sub(1, SeqCst);
            return None;
        }
        let entry = Entry { open: Arc::clone(open), number: open.next.fetch_add(1, SeqCst) };
        let mut connections = open.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if connections.len() >= CONNECTIONS_MOST {
            let (_, oldest) = connections.remove(0);
            // Its thread finds the end of the request, and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        connections.push((entry.number, twin));
        Some(entry)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut connections = self.open.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|(number, _)| *number != self.number);
        self.open.threads.fetch_sub(1, SeqCst);
    }
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    let (answer, with_body) = match read_request(&mut stream)? {
        Came::Request { request, is_head } => (answer(&request), !is_head),
        Came::Refused(answer) => (answer, true),
        Came::Ended => return Ok(()),
    };
    let allow = if answer.status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n\r\n",
        answer.status,
        answer.media_type,
        answer.body.len()
    );
    let end = Instant::now() + ANSWER_TIME;
    write_until(&mut stream, head.as_bytes(), end)?;
    if with_body {
        write_until(&mut stream, answer.body.as_bytes(), end)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let end = Instant::now() + LINGER_TIME;
    let mut rest = [0; 1024];
    while read_until(&mut stream, &mut rest, end)? > 0 {}
    Ok(())
}

/// The outcome of reading a request.
enum Came {
    Request {
        request: Request,
        is_head: bool,
    },
    /// Something that is answered without a question.
    Refused(Answer),
    /// Nothing more comes.
    Ended,
}

fn read_request(stream: &mut TcpStream) -> io::Result<Came> {
    let end = Instant::now() + REQUEST_TIME;
    let mut head = [0; REQUEST_MOST];
    let mut have = 0;
    loop {
        if let Some(came) = parse(&head[..have]) {
            return Ok(came);
        }
        if have == head.len() {
            return Ok(Came::Refused(Answer::line("431 Request Header Fields Too Large", "too long")));
        }
        match read_until(stream, &mut head[have..], end) {
            Ok(0) => return Ok(Came::Ended),
            Ok(more) => have += more,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Came::Refused(Answer::line("408 Request Timeout", "too slow")));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The head of a request, understood; `None`: more has to come.
fn parse(head: &[u8]) -> Option<Came> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MOST];
    let mut parsed = httparse::Request::new(&mut lines);
    match parsed.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Came::Refused(Answer::line("400 Bad Request", "this is no request of HTTP/1.1"))),
    }
    let is_head = match parsed.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Some(Came::Refused(Answer::line("405 Method Not Allowed", "ask by GET"))),
    };
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    // Several lines are as one with commas between.
    let accept = parsed.headers.iter().filter(|line| line.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accept.map(|line| String::from_utf8_lossy(line.value)).collect();
    Some(Came::Request { request: Request { path, accept: accept.join(",") }, is_head })
}

/// The time left until a moment, as a time limit of a socket, which must not be zero.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_until(stream: &mut TcpStream, bytes: &mut [u8], end: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn write_until(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// A server that tells what it was asked.
    fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            serve(&listener, |request| Answer::line("200 OK", &format!("{} {}", request.path, request.accept)))
        });
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        // Bytes that the server has not read when it closes may break the connection behind the answer.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn requests_get_answers_and_others_are_refused() {
        let address = start();
        for (request, status, end) in [
            (
                &b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\naccept: a/b\r\nAccept: c/d\r\n\r\n"[..],
                "200 OK",
                "/metrics a/b,c/d\n",
            ),
            (b"GET / HTTP/1.0\r\n\r\n", "200 OK", "/ \n"),
            (b"HEAD / HTTP/1.1\r\n\r\n", "200 OK", "\r\n\r\n"),
            (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed", "ask by GET\n"),
            (b"\x16\x03\x01\x02\0\x01", "400 Bad Request", "HTTP/1.1\n"),
            (b"GET / HTTP/9\r\n\r\n", "400 Bad Request", "HTTP/1.1\n"),
            (&[b'a'; 3 * REQUEST_MOST], "431 Request Header Fields Too Large", "too long\n"),
            (
                &[&b"GET / HTTP/1.1\r\n"[..], &b"A: b\r\n".repeat(LINES_MOST + 1), b"\r\n"].concat(),
                "400 Bad Request",
                "1\n",
            ),
        ] {
            let answer = ask(address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")) && answer.ends_with(end), "{answer}");
        }
    }

    #[test]
    fn clients_that_say_nothing_keep_no_other_out() {
        let address = start();
        let request = b"GET /x HTTP/1.1\r\n\r\n";
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..3 * CONNECTIONS_MOST {
            silent.push(TcpStream::connect(address).unwrap());
            silent.last_mut().unwrap().write_all(b"GET /").unwrap();
        }
        assert!(ask(address, request).ends_with("/x \n"));
        // The first of them were closed long before their time was over.
        let closed = silent[0].read(&mut [0; 100]);
        assert!(matches!(closed, Ok(0)) || closed.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
    }
}
