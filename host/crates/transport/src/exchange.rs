//! One request and its answer on a pooled or new connection, with the one retry that is safe.
//!
//! A server may close an idle connection at the very moment a request is written to it (llama.cpp
//! does so after every streamed reply). If a *reused* connection fails before any byte of an
//! answer, the request is sent once more on a new connection, and the outcome records this. A
//! request on a new connection is never retried: that failure is attributed to the server.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use veeksha_endpoint::Failure;
use veeksha_model::ErrorClass;

use crate::client_context::ClientContext;
use crate::connecting;
use crate::connection::{Connection, Exchange, Lost, SendResult};
use crate::flight::Flight;
use crate::pool::{ConnectionPool, Owner};
use crate::prepared_server::PreparedServer;

/// Sends a flight's request over HTTP/1.1 and reads its answer to the end.
pub(crate) async fn exchange(
    context: &ClientContext,
    pool: &RefCell<ConnectionPool>,
    flight: &RefCell<Flight>,
) -> Result<(), Failure> {
    let route = &context.route;
    let Some(of) = Requested::by(flight) else {
        return Ok(());
    };
    let server = &route.servers[usize::from(of.server)];
    let owner = Owner::of(route.connections, of.server, of.session);
    // Built before any connection is opened: a request that cannot be written fails without one.
    let mut request = written(server, flight)?;
    let pooled = owner.and_then(|owner| pool.borrow_mut().take(owner));
    if let Some(mut connection) = pooled {
        flight.borrow_mut().on_carried(true);
        route.counters.reused.fetch_add(1, Ordering::Relaxed);
        match converse(context, server, flight, &mut connection, request).await {
            Ok(()) => {
                release(pool, owner, connection);
                return Ok(());
            }
            Err(Lost::Unanswered(_)) => {
                flight.borrow_mut().on_lost_unanswered();
                route.counters.retried.fetch_add(1, Ordering::Relaxed);
            }
            Err(Lost::Failed(failure)) => return Err(failure),
        }
        // Rare, and therefore built again instead of copied for each request.
        request = written(server, flight)?;
    }
    let opening = Rc::clone(flight.borrow().opening());
    context.on_opening(&flight.borrow());
    // Boxed only while the connection is being opened: the futures of a handshake are large, and a
    // stream lives long.
    let wire = Box::pin(connecting::open(
        route,
        server,
        &context.receiver,
        &opening.used,
        &opening.step,
    ))
    .await?;
    route.counters.opened.fetch_add(1, Ordering::Relaxed);
    let mut connection = Connection::new(wire);
    flight.borrow_mut().on_carried(false);
    converse(context, server, flight, &mut connection, request).await?;
    release(pool, owner, connection);
    Ok(())
}

/// The parts of a job that determine its connection.
pub(crate) struct Requested {
    pub(crate) server: u16,
    pub(crate) session: veeksha_model::SessionId,
}

impl Requested {
    /// Returns the parts of the flight's job, or `None` for a flight that has landed.
    pub(crate) fn by(flight: &RefCell<Flight>) -> Option<Self> {
        let flight = flight.borrow();
        Some(Requested {
            server: flight.opening().used.get().server,
            session: flight.job()?.id.session,
        })
    }
}

/// Returns the head and the body of the request.
fn written(server: &PreparedServer, flight: &RefCell<Flight>) -> Result<[Vec<u8>; 2], Failure> {
    let body = flight.borrow_mut().build_body()?;
    let flight = flight.borrow();
    let Some(job) = flight.job() else {
        return Ok(Default::default());
    };
    let mut head = Vec::new();
    let headers = server.headers.of(job)?;
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    server
        .template
        .write(&mut head, &headers, body.len())
        .map_err(|error| Failure::new(ErrorClass::Protocol, error.to_string()))?;
    Ok([head, body])
}

async fn converse(
    context: &ClientContext,
    server: &PreparedServer,
    flight: &RefCell<Flight>,
    connection: &mut Connection,
    request: [Vec<u8>; 2],
) -> Result<(), Lost> {
    let exchange = Exchange {
        context,
        server,
        flight,
    };
    connection.begin();
    let mut done = 0;
    let sent = poll_fn(|cx| connection.poll_send(cx, exchange, [&request[0], &request[1]], &mut done)).await;
    // The prompt is dropped so that it does not occupy memory while its answer streams.
    drop(request);
    match sent? {
        SendResult::EndedEarly => Ok(()),
        SendResult::Whole | SendResult::AnsweredEarly => {
            poll_fn(|cx| connection.poll_answer(cx, exchange)).await
        }
    }
}

fn release(pool: &RefCell<ConnectionPool>, owner: Option<Owner>, connection: Connection) {
    if let Some(owner) = owner
        && connection.can_be_reused()
    {
        pool.borrow_mut().give_back(owner, connection);
    }
}
